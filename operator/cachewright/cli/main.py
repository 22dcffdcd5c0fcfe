"""`cachewright COMMAND …`: turns the first argument into the module that does the work, and calls it.

The console script and `python -m cachewright.cli` call `main`. Only the chosen command's module is
imported, so that a gateway pod never loads the operator's libraries. Such a module has
`add_arguments(parser)`, `run(options)` and, if it likes, `EXAMPLES` for its help.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module, metadata
from typing import Final

COMMANDS: Final = {
    "validate": ("cachewright.cli.validate", "check InferenceCache manifests without a cluster"),
    "explain": ("cachewright.cli.explain", "tell which layers a change would empty, and why"),
    "size": ("cachewright.cli.size", "tell how much memory and disk a manifest's stores need"),
    "local": ("cachewright.cli.local", "serve a manifest on this machine, without a cluster"),
    "calibrate": (
        "cachewright.cli.calibrate",
        "find a threshold from labelled pairs",
    ),
    "stats": ("cachewright.cli.stats", "print what a gateway did, from its admin port"),
    "purge": ("cachewright.cli.purge", "remove one answer from the cache, by its id"),
    "retract": ("cachewright.cli.retract", "serve no answer any more of a tenant, document, role or layer"),
    "prefix": (
        "cachewright.cli.prefix",
        "tell what prefix caching can bring, and turn it on",
    ),
    "janitor": ("cachewright.cli.janitor", "tidy a cache's stores once, or remove all that they hold of it"),
    "crd": ("cachewright.cli.crd", "print the CustomResourceDefinition"),
    "operator": ("cachewright.controller.main", "run the operator (in the cluster)"),
    "embedder": ("cachewright.embedders.main", "serve the built-in embedding model"),
    "gateway": ("cachewright.gateway.main", "run one caching gateway"),
}
"""Each command's module and summary, in the order of the help."""

EXTRAS: Final = {
    "operator": "operator",
    "gateway": "gateway",
    "local": "local",
    "embedder": "embedder",
    "janitor": "gateway",
}
"""Commands that need more than a bare install, and the extra that each needs."""

EXAMPLES: Final = """\
examples:
  cachewright validate -f examples/quickstart.yaml
  cachewright validate -f manifests/ --output json
  cachewright explain -f old.yaml -f new.yaml
  cachewright size -f examples/all-managed.yaml --entries 100k
  cachewright local -f examples/quickstart.yaml
  cachewright crd | kubectl apply -f -
  cachewright COMMAND --help
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; 2 when the command line is wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in COMMANDS:
        return _run(words[0], words[1:])
    _overview().parse_args(words)
    return 2


def _run(command: str, words: list[str]) -> int:
    name, summary = COMMANDS[command]
    try:
        module = import_module(name)
    except ModuleNotFoundError as e:
        if command not in EXTRAS or (e.name or "").startswith("cachewright"):
            raise
        extra = EXTRAS[command]
        print(f"cachewright {command} needs more: pip install 'cachewright[{extra}]'  ({e})", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(
        prog=f"cachewright {command}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=getattr(module, "EXAMPLES", None),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return int(module.run(parser.parse_args(words)))


def _overview() -> argparse.ArgumentParser:
    """Build the parser for everything but a command: help, version, and complaints."""
    parser = argparse.ArgumentParser(
        prog="cachewright",
        description="Cache layers for LLM and model serving on Kubernetes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"cachewright {metadata.version('cachewright')}"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command, (_, summary) in COMMANDS.items():
        commands.add_parser(command, help=summary)
    return parser


if __name__ == "__main__":
    sys.exit(main())
