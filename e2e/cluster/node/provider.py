"""The provider `node`: brings the one-node cluster up and down from the host's side."""

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from e2e.cluster import binaries, cache, console, images, packages
from e2e.cluster.errors import ClusterError
from e2e.cluster.node import cgroups
from e2e.cluster.node.config import NODE_NAME, TOOLS, NodeConfig
from e2e.cluster.node.image_store import ImageStore
from e2e.cluster.node.network import SLOTS, Network
from e2e.cluster.processes import kill, start_time, tail, wait_until
from e2e.cluster.providers import Status
from e2e.cluster.readiness import is_ready
from e2e.cluster.state import State, load, load_all

PROJECT: Final = Path(__file__).parents[3]
NAMESPACES: Final = ("--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
INIT: Final = ("-m", "e2e.cluster.node.init")
NODE_IMAGES: Final = ("pause", "busybox")
"""Every pod needs the first, every volume the second."""

SPACE_BYTES: Final = 3 * 2**30
STEP_SECONDS: Final = 120.0
FIRST_SECONDS: Final = 15.0
MODULES: Final = ("br_netfilter", "overlay", "nfnetlink_queue", "xt_NFQUEUE", "veth")


class NodeCluster:
    """One node made on this machine."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._network = Network(state.slot)
        self._images = ImageStore(state.folder / "containerd", self.run_inside)

    def up(self) -> None:
        """Start the node unless it serves already."""
        if self.is_recorded and self._init_pid() is not None and not self.status().problems:
            console.say(f"cluster {self.state.name} is up already")
            return
        if os.geteuid() != 0:
            raise ClusterError("the node needs root: its namespaces and containers are the kernel's own")
        packages.ensure(["node", "images"])
        cache.require_free_space(self.state.folder, SPACE_BYTES, "a node")
        built = images.ensure(NODE_IMAGES)
        tools = binaries.ensure(TOOLS)
        self.down(everything=False)
        config = NodeConfig(self.state.name, self.state.folder, self._network, tools)
        config.write()
        self.state.save()
        with console.Step(f"starting node {self.state.name}"):
            self._start(config)
            self._wait_until_serving(config, [image.archive for image in built.values()])

    @property
    def is_recorded(self) -> bool:
        """False when somebody removed the record, or there never was one."""
        return load(self.state.name) == self.state

    @property
    def has_left_traces(self) -> bool:
        """Return whether a node of this name runs or ran here, recorded or not."""
        return bool(self._processes()) or (self.state.folder / "run").exists()

    def down(self, *, everything: bool) -> None:
        """End every process of the node and remove its link, groups and files."""
        for pid in self._processes():
            if started := start_time(pid):
                kill(pid, started)
        self._network.disconnect(self._mark)
        cgroups.remove(f"cachewright-{self.state.name}")
        shutil.rmtree(self.state.folder / "run", ignore_errors=True)
        if everything:
            shutil.rmtree(self.state.folder, ignore_errors=True)

    def load(self, archives: Iterable[Path]) -> None:
        """Import image archives into the node's containerd, each once."""
        self._images.load(archives)

    def status(self) -> Status:
        """Ask the API server and the node's own record of ended processes."""
        problems = []
        if self._init_pid() is None:
            problems.append("it is down")
        else:
            config = NodeConfig.read(self.state.folder)
            problems += [f"process ended: {line}" for line in self._ended()]
            # Each check needs those before it, so the first that fails says it all.
            failed = (what for what, check, _ in self._checks(config) if not check())
            problems += [f"{what}: no" for what in itertools.islice(failed, 1)]
        name, provider, kubeconfig = self.state.name, self.state.provider, str(self.state.kubeconfig)
        return Status(name, provider, not problems, kubeconfig, problems)

    def run_inside(self, command: Sequence[str], stdin: int | None = None) -> str:
        """Run a command in the node's namespaces and return what it printed."""
        done = subprocess.run(
            [*self.enter_command(), *command],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ClusterError(f"{' '.join(command)} in the node: {done.stderr.strip()}")
        return done.stdout

    def enter_command(self) -> list[str]:
        """Return the command that enters the node's namespaces, to put before another."""
        pid = self._init_pid()
        if pid is None:
            raise ClusterError(f"cluster {self.state.name} is down: run `python -m e2e.cluster up`")
        return ["nsenter", f"--target={pid}", "--net", "--mount", "--pid", "--uts", "--ipc", "--"]

    @property
    def _mark(self) -> str:
        return f"cachewright:{self.state.folder}"

    def _start(self, config: NodeConfig) -> None:
        if shutil.which(
            "modprobe"
        ):  # where they are built in, or nothing may be loaded, this fails and is no loss
            subprocess.run(["modprobe", "-a", "-q", *MODULES], check=False, capture_output=True)
        cgroups.make(config.cgroup)
        init = [sys.executable, *INIT, str(config.folder)]
        with config.log("init").open("wb") as log:
            subprocess.run(
                ["setsid", "--fork", "unshare", *NAMESPACES, *init],  # outlives this command and its terminal
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=os.environ | {"PYTHONPATH": str(PROJECT)},
                check=True,
            )
        explain = self._explain(config, "init")
        wait_until(lambda: self._init_pid() is not None, "the node's first process", FIRST_SECONDS, explain)
        pid = self._init_pid()
        assert pid is not None
        self._network.connect(pid, config.mark)

    def _wait_until_serving(self, config: NodeConfig, archives: Iterable[Path]) -> None:
        self._wait(config, "containerd", self._containerd_answers, ("containerd",))
        self._images.forget_removed()
        self.load(archives)
        for what, check, suspects in self._checks(config):
            self._wait(config, what, check, suspects)

    def _wait(
        self, config: NodeConfig, what: str, check: Callable[[], bool], suspects: Sequence[str]
    ) -> None:
        def checked() -> bool:
            if ended := self._ended():
                name, code = ended[0].split()
                raise ClusterError(f"{name} ended with {code}\n{tail(config.log(name))}")
            if self._init_pid() is None:
                raise ClusterError(f"the node's first process ended\n{tail(config.log('init'))}")
            return check()

        wait_until(checked, what, STEP_SECONDS, self._explain(config, "init", *suspects))

    def _checks(self, config: NodeConfig) -> list[tuple[str, Callable[[], bool], tuple[str, ...]]]:
        """Return what must hold for the node to serve, and whose logs tell why it does not."""
        url, ca = f"{config.network.api_url}/readyz", config.pki / "ca.crt"
        node = f"http://{config.network.node_ip}"
        ready = "-o=jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return [
            ("API server ready", lambda: is_ready(url, ca, config.admin), ("etcd", "kube-apiserver")),
            (
                "node Ready",
                lambda: _output(config, "get", "node", NODE_NAME, ready) == "True",
                ("containerd", "kubelet"),
            ),
            (
                "default service account",
                lambda: _output(config, "get", "serviceaccount", "default", "-o=name") != "",
                ("kube-controller-manager",),
            ),
            ("DNS ready", lambda: is_ready(f"{node}:8181/ready"), ("coredns",)),
            ("policy enforcement", lambda: is_ready(f"{node}:9080/metrics"), ("kube-network-policies",)),
        ]

    def _explain(self, config: NodeConfig, *suspects: str) -> Callable[[], str]:
        return lambda: "\n".join(tail(config.log(name)) for name in suspects)

    def _containerd_answers(self) -> bool:
        try:
            self.run_inside(["ctr", "version"])
        except ClusterError:
            return False
        return True

    def _ended(self) -> list[str]:
        record = self.state.folder / "run" / "ended"
        return record.read_text().splitlines() if record.exists() else []

    def _processes(self) -> dict[int, list[str]]:
        """Find what starts or is this node's init: the command line ends with the node's own folder."""
        wanted = [*INIT, str(self.state.folder)]
        return {pid: words for pid, words in _command_lines() if words[-3:] == wanted}

    def _init_pid(self) -> int | None:
        # Python with just these arguments; setsid and unshare have the same words behind their own.
        return next((pid for pid, words in self._processes().items() if len(words) == len(INIT) + 2), None)


def free_slot() -> int:
    """Return the lowest address range that no recorded node has and no link occupies."""
    taken = {state.slot for state in load_all() if state.provider == "node"}
    for slot in range(SLOTS):
        if slot not in taken and not Network(slot).is_taken():
            return slot
    raise ClusterError(f"all {SLOTS} address ranges are taken: see `python -m e2e.cluster status --all`")


def _output(config: NodeConfig, *arguments: str) -> str:
    command = [
        str(config.tools["kubectl"]),
        f"--kubeconfig={config.kubeconfig}",
        "--request-timeout=5s",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _command_lines() -> Iterable[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if words:
                yield int(folder.name), words
