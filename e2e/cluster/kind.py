"""The provider `kind`: Kubernetes in Docker, where a Docker daemon answers and kind is installed."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from e2e.cluster import console
from e2e.cluster.errors import ClusterError
from e2e.cluster.providers import Status
from e2e.cluster.state import State

READY_TIMEOUT: Final = "180s"


def is_usable() -> bool:
    """Return whether kind is on PATH and a Docker daemon answers."""
    if shutil.which("kind") is None or shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


class KindCluster:
    """One kind cluster, whose name begins with the project's."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.kind_name = f"cachewright-{state.name}"

    def up(self) -> None:
        """Create the cluster unless the one we made is there; one that we did not make is refused."""
        ours = (self.state.folder / "state.json").exists()
        if self.kind_name in self._existing():
            if not ours:
                raise ClusterError(
                    f"a kind cluster {self.kind_name} exists that was not made here; "
                    f"choose another --name, or delete it with `kind delete cluster --name {self.kind_name}`"
                )
            if self.status().healthy:
                console.say(f"cluster {self.state.name} is up already")
                return
            self.down(everything=False)
        self.state.save()
        with console.Step(f"kind create cluster {self.kind_name}"):
            self._kind("create", "cluster", f"--wait={READY_TIMEOUT}")

    def down(self, *, everything: bool) -> None:
        """Delete the cluster."""
        if self.kind_name in self._existing():
            self._kind("delete", "cluster")
        if everything:
            shutil.rmtree(self.state.folder)

    def load(self, archives: Iterable[Path]) -> None:
        """Load image archives into the cluster's nodes."""
        for archive in archives:
            with console.Step(f"importing {archive.name}"):
                _run("kind", "load", "image-archive", str(archive), f"--name={self.kind_name}")

    def status(self) -> Status:
        """Ask Docker for the cluster and its API server for readiness."""
        problems = []
        if self.kind_name not in self._existing():
            problems.append("it is down")
        else:
            probe = ["docker", "exec", f"{self.kind_name}-control-plane", "kubectl"]
            credentials = "--kubeconfig=/etc/kubernetes/admin.conf"
            try:
                _run(*probe, credentials, "get", "--raw=/readyz")
            except ClusterError as error:
                problems.append(str(error))
        return Status(self.state.name, "kind", not problems, str(self.state.kubeconfig), problems)

    def _kind(self, *arguments: str) -> None:
        _run("kind", *arguments, f"--name={self.kind_name}", f"--kubeconfig={self.state.kubeconfig}")

    def _existing(self) -> list[str]:
        return _run("kind", "get", "clusters").split()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ClusterError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
