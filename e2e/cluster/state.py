"""What is known about a cluster between two commands: who made it, and where its kubeconfig is.

One `state.json` per cluster in the cache folder; a cluster without one was not made here and is not touched.
"""

import dataclasses
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from e2e.cluster import cache
from e2e.cluster.errors import ClusterError

ProviderName = Literal["node", "kind", "context"]
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")
"""Short, because it becomes part of cgroup and container names."""


@dataclass(frozen=True)
class State:
    """The record of one cluster."""

    name: str
    provider: ProviderName
    slot: int = 0
    """Which address range a node has; see `node.network`."""

    context: str = ""

    @property
    def folder(self) -> Path:
        """Where everything of this cluster is kept."""
        return folder_of(self.name)

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig with one context."""
        return self.folder / "kubeconfig"

    def save(self) -> None:
        """Write the record."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "state.json").write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")


def folder_of(name: str) -> Path:
    """Return the folder of a cluster of this name; raises ClusterError for a name that cannot be one."""
    if not NAME.fullmatch(name):
        raise ClusterError(f"{name!r} is no cluster name: up to 20 of a-z, 0-9 and '-', no '-' at either end")
    return cache.clusters() / name


def load(name: str) -> State | None:
    """Read the record of a cluster; None when there is none."""
    try:
        content = json.loads((folder_of(name) / "state.json").read_text())
    except FileNotFoundError:
        return None
    state = State(**content)
    if state.provider not in get_args(ProviderName):
        raise ClusterError(
            f"{state.folder}/state.json names an unknown provider, {state.provider}; remove the folder"
        )
    return state


def load_all() -> list[State]:
    """Read the records of all clusters, by name."""
    names = sorted(path.parent.name for path in cache.clusters().glob("*/state.json"))
    return [state for name in names if (state := load(name)) is not None]
