"""What every way of having a cluster offers, and the record of what was seen of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from e2e.cluster.state import State


@dataclass(frozen=True)
class Status:
    """What `status` prints: whether the cluster serves, and what is wrong when it does not."""

    name: str
    provider: str
    healthy: bool
    kubeconfig: str
    problems: list[str] = field(default_factory=list)


class Cluster(Protocol):
    """A cluster for tests and demo."""

    state: State

    def up(self) -> None:
        """Make the cluster, or do nothing when it serves already."""

    def down(self, *, everything: bool) -> None:
        """Remove every trace; `everything` also removes what makes the next start quick."""

    def load(self, archives: Iterable[Path]) -> None:
        """Take image archives into the cluster's image store."""

    def status(self) -> Status:
        """Look at the cluster without changing it."""
