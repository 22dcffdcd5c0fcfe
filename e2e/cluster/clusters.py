"""Finds or chooses the cluster of a name: the entry of the command line and of the tests' fixtures.

`up()` is all a test needs: it returns a cluster that serves, made, reused, or named by the caller.
"""

import shutil
from collections.abc import Callable, Mapping
from typing import Final

from e2e.cluster import cache, kind
from e2e.cluster.context import ContextCluster
from e2e.cluster.errors import ClusterError
from e2e.cluster.node.provider import NodeCluster, free_slot
from e2e.cluster.providers import Cluster
from e2e.cluster.state import ProviderName, State, load

DEFAULT_NAME: Final = "test"
CLASSES: Final[Mapping[ProviderName, Callable[[State], Cluster]]] = {
    "node": NodeCluster,
    "kind": kind.KindCluster,
    "context": ContextCluster,
}


def up(name: str = DEFAULT_NAME, provider: ProviderName | None = None, context: str = "") -> Cluster:
    """Return the cluster of this name, serving; a provider that is not named is chosen, but never `context`.

    Raises ClusterError, with the end of the log of whatever did not start.
    """
    if (provider == "context") != bool(context):
        raise ClusterError("--provider context and --context NAME belong together")
    with cache.lock(cache.clusters() / ".lock", "another command on the test cluster"):
        state = load(name)
        if state is None:
            state = _new_state(name, provider or _chosen(), context)
        elif (provider, context) not in ((None, ""), (state.provider, state.context)):
            raise ClusterError(
                f"cluster {name} is of provider {state.provider}: take it down with `down --all` first"
            )
        cluster = CLASSES[state.provider](state)
        cluster.up()
    return cluster


def find(name: str = DEFAULT_NAME) -> Cluster:
    """Return the cluster of this name as it is; raises ClusterError when none was made."""
    state = load(name)
    if state is None:
        raise ClusterError(f"no cluster {name} was made here: run `python -m e2e.cluster up`")
    return CLASSES[state.provider](state)


def down(name: str = DEFAULT_NAME, *, everything: bool = False) -> bool:
    """Remove a cluster that was made here; return False when there is none."""
    with cache.lock(cache.clusters() / ".lock", "another command on the test cluster"):
        state = load(name)
        if state is None:
            # The folder says whose the processes are, so a node can be removed even without its record.
            state = State(name, "node")
            if not NodeCluster(state).has_left_traces:
                return False
        CLASSES[state.provider](state).down(everything=everything)
    return True


def _new_state(name: str, provider: ProviderName, context: str) -> State:
    slot = free_slot() if provider == "node" else 0
    return State(name, provider, slot, context)


def _chosen() -> ProviderName:
    """Prefer kind where it works: it needs neither root nor Go."""
    if kind.is_usable():
        return "kind"
    if shutil.which("unshare") and shutil.which("nsenter"):
        return "node"
    raise ClusterError(
        "neither Docker with kind nor Linux with namespaces: name a cluster with --provider context"
    )
