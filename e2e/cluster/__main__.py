"""The command line of the test cluster; results on standard output, progress on standard error."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from e2e.cluster import binaries, cache, clusters, packages
from e2e.cluster.apiserver import ApiServer
from e2e.cluster.errors import ClusterError
from e2e.cluster.node.provider import NodeCluster
from e2e.cluster.state import load_all

EXAMPLES: Final = """examples:
  python -m e2e.cluster up                      make the cluster, or reuse it; prints its kubeconfig
  export KUBECONFIG=$(python -m e2e.cluster kubeconfig)
  python -m e2e.cluster load my-image.tar       take an image archive into it
  python -m e2e.cluster down                    remove every trace; the next `up` is quick
  python -m e2e.cluster down --all              and forget its image store too
  python -m e2e.cluster up --provider context --context my-dev-cluster
"""


def command_up(options: argparse.Namespace) -> None:
    """Bring the cluster up and print its kubeconfig."""
    print(clusters.up(options.name, options.provider, options.context).state.kubeconfig)


def command_down(options: argparse.Namespace) -> None:
    """Take the cluster down."""
    removed = clusters.down(options.name, everything=options.all)
    print(f"cluster {options.name} {'removed' if removed else 'does not exist'}")


def command_status(options: argparse.Namespace) -> None:
    """Print the state of every cluster made here; the exit code tells of the one that was named."""
    found = [clusters.find(state.name).status() for state in load_all()]
    if options.output == "json":
        print(json.dumps([asdict(status) for status in found], indent=1))
    elif not found:
        print("no cluster was made here")
    else:
        for status in found:
            print(
                f"{status.name}\t{status.provider}\t{'up' if status.healthy else '; '.join(status.problems)}"
            )
    if not any(status.healthy for status in found if status.name == options.name):
        raise SystemExit(1)


def command_kubeconfig(options: argparse.Namespace) -> None:
    """Print where the kubeconfig is."""
    print(clusters.find(options.name).state.kubeconfig)


def command_load(options: argparse.Namespace) -> None:
    """Import image archives."""
    absent = [str(archive) for archive in options.archives if not archive.is_file()]
    if absent:
        raise ClusterError(f"no such file: {', '.join(absent)}")
    clusters.find(options.name).load(options.archives)


def command_exec(options: argparse.Namespace) -> None:
    """Become a command inside the node's namespaces."""
    cluster = clusters.find(options.name)
    if not isinstance(cluster, NodeCluster):
        raise ClusterError(
            f"cluster {options.name} is of provider {cluster.state.provider}, which has no namespaces here"
        )
    command = [*cluster.enter_command(), *options.command]
    os.execvp(command[0], command)  # noqa: S606 - the point of this command


def command_tools(options: argparse.Namespace) -> None:
    """Build pinned binaries and print where they are."""
    places = {name: str(path) for name, path in binaries.ensure(options.tools or binaries.TOOLS).items()}
    if options.output == "json":
        print(json.dumps(places, indent=1))
    else:
        print("\n".join(places.values()))


def command_packages(options: argparse.Namespace) -> None:
    """Install the Debian packages that are missing."""
    packages.ensure(options.groups or packages.GROUPS)


def command_apiserver(_: argparse.Namespace) -> None:
    """Run an API server until interrupted."""
    with ApiServer() as server:
        print(server.kubeconfig, flush=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            print("stopping", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """Describe the commands and their options."""
    top = argparse.ArgumentParser(
        prog="python -m e2e.cluster",
        description=f"A throwaway Kubernetes for tests and demo. Everything it keeps is in {cache.root()}.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, run: Callable[[argparse.Namespace], None], help_text: str, **options: Any
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help_text, description=help_text, **options)
        command.set_defaults(run=run)
        return command

    def add_for_cluster(
        name: str, run: Callable[[argparse.Namespace], None], help_text: str
    ) -> argparse.ArgumentParser:
        command = add(name, run, help_text)
        command.add_argument(
            "--name", default=clusters.DEFAULT_NAME, help="which cluster (default: %(default)s)"
        )
        return command

    up = add_for_cluster("up", command_up, "make the cluster, or reuse it; prints its kubeconfig")
    up.add_argument(
        "--provider", choices=sorted(clusters.CLASSES), help="default: kind where it works, else node"
    )
    up.add_argument("--context", default="", help="with --provider context: the kubeconfig context to use")
    down = add_for_cluster("down", command_down, "remove every trace of the cluster")
    down.add_argument("--all", action="store_true", help="also its image store and state")
    status = add_for_cluster(
        "status", command_status, "show the clusters made here; exit code 1 unless --name is up"
    )
    add_for_cluster("kubeconfig", command_kubeconfig, "print the kubeconfig's path")
    load = add_for_cluster(
        "load", command_load, "import image archives (docker save, buildah push docker-archive:)"
    )
    load.add_argument("archives", nargs="+", type=Path, metavar="IMAGE_TAR")
    inside = add_for_cluster(
        "exec", command_exec, "run a command inside the node's namespaces: exec -- ctr -n k8s.io images ls"
    )
    inside.add_argument("command", nargs="+", metavar="COMMAND")
    tools = add(
        "tools", command_tools, f"build pinned binaries and print their paths: {', '.join(binaries.TOOLS)}"
    )
    tools.add_argument("tools", nargs="*", metavar="NAME")
    debian = add(
        "packages", command_packages, f"install missing Debian packages of: {', '.join(packages.GROUPS)}"
    )
    debian.add_argument("groups", nargs="*", metavar="GROUP")
    add(
        "apiserver",
        command_apiserver,
        "run etcd and kube-apiserver alone, as the API tests do, until interrupted",
    )
    for command in (status, tools):
        command.add_argument("--output", choices=["text", "json"], default="text")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code, 1 after printing what went wrong."""
    options = parser().parse_args(arguments)
    try:
        options.run(options)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
