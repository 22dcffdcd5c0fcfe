"""Whether a store that the operator runs is there to be asked. Pure; called by observe and status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cachewright.api.names import postgres_name, qdrant_name
from cachewright.reconcile.state import ChildId, Manifest
from cachewright.render.metadata import redis_name

MANAGED_STORES: Final[Mapping[str, Callable[[str], str]]] = {
    "redis": redis_name,
    "qdrant": qdrant_name,
    "postgres": postgres_name,
}
"""By field of `spec.stores`: how everything of such a store is named."""


MAX_SAID: Final = 512
"""Characters of what CloudNativePG says that are passed on."""


def waits_for(children: Mapping[ChildId, Manifest], store: str, cache_name: str) -> str | None:
    """Say what a managed store waits for; None where it runs."""
    name = MANAGED_STORES[store](cache_name)
    cluster = children.get(("Cluster", name))
    if cluster is not None:
        return _cluster_waits_for(cluster, children.get(("Database", name)))
    live = children.get(("StatefulSet", name))
    if live is None:
        return f"Store {name} is being created."
    if int((live.get("status") or {}).get("readyReplicas", 0)) < 1:
        return f"Pod {name}-0 is not ready{_unbound(children, name)}."
    return None


def instances(cluster: Manifest) -> tuple[int, int]:
    """Return how many servers of a Cluster are ready, and how many are wanted."""
    return int((cluster.get("status") or {}).get("readyInstances", 0)), int(cluster["spec"]["instances"])


def phase(cluster: Manifest) -> str:
    """Say what CloudNativePG says of a Cluster, as the end of a sentence; empty where it says nothing."""
    said = str((cluster.get("status") or {}).get("phase", "")).rstrip(".")
    return f": {said}" if said else ""


def _cluster_waits_for(cluster: Manifest, database: Manifest | None) -> str | None:
    name = cluster["metadata"]["name"]
    ready, wanted = instances(cluster)
    if ready < 1:
        return f"Cluster {name} has 0 of {wanted} instances ready{phase(cluster)}."
    status: Manifest = (database or {}).get("status") or {}
    if status.get("applied") is True:
        return None
    said = str(status.get("message", ""))[:MAX_SAID].rstrip(".")
    return f"Database {name} is not there yet{f': {said}' if said else ''}."


def _unbound(children: Mapping[ChildId, Manifest], name: str) -> str:
    """Name the usual reason of a pod that does not even start."""
    claim = children.get(("PersistentVolumeClaim", name))
    if claim is None or (claim.get("status") or {}).get("phase", "Pending") != "Pending":
        return ""
    return f": volume claim {name} is not bound"
