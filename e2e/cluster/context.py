"""The provider `context`: a cluster that somebody else made and named, used as it is and never torn down."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from e2e.cluster import binaries
from e2e.cluster.errors import ClusterError
from e2e.cluster.providers import Status
from e2e.cluster.state import State


class ContextCluster:
    """A cluster known by the name of a context in the caller's kubeconfig."""

    def __init__(self, state: State) -> None:
        self.state = state

    def up(self) -> None:
        """Copy the one context out of the caller's kubeconfig, and see that the cluster answers."""
        view = ("config", "view", "--minify", "--flatten", "--raw", f"--context={self.state.context}")
        content = kubectl(*view)
        self.state.save()
        self.state.kubeconfig.touch(mode=0o600)
        self.state.kubeconfig.write_text(content)
        if problems := self.status().problems:
            raise ClusterError(f"context {self.state.context} does not answer: {problems[0]}")

    def down(self, *, everything: bool) -> None:  # noqa: ARG002 - it is the interface's
        """Forget the context; the cluster is not ours to change."""
        shutil.rmtree(self.state.folder)

    def load(self, archives: Iterable[Path]) -> None:
        """Refuse: there is no way into the image store of a stranger's nodes."""
        names = " ".join(str(archive) for archive in archives)
        raise ClusterError(
            f"push the images to a registry that {self.state.context} pulls from, not: {names}"
        )

    def status(self) -> Status:
        """Ask whether the API server is ready."""
        problems = []
        try:
            kubectl(f"--kubeconfig={self.state.kubeconfig}", "--request-timeout=10s", "get", "--raw=/readyz")
        except ClusterError as error:
            problems.append(str(error))
        return Status(self.state.name, "context", not problems, str(self.state.kubeconfig), problems)


def kubectl(*arguments: str) -> str:
    """Run kubectl with the caller's own configuration and return what it printed."""
    done = subprocess.run(
        [str(binaries.client("kubectl")), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
