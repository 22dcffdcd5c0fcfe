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


def waits_for(children: Mapping[ChildId, Manifest], store: str, cache_name: str) -> str | None:
    """Say what a managed store waits for; None where it runs."""
    name = MANAGED_STORES[store](cache_name)
    live = children.get(("StatefulSet", name))
    if live is None:
        return f"The store's StatefulSet {name} is being created."
    if int((live.get("status") or {}).get("readyReplicas", 0)) < 1:
        return f"Pod {name}-0 is not ready{_unbound(children, name)}."
    return None


def _unbound(children: Mapping[ChildId, Manifest], name: str) -> str:
    """Name the usual reason of a pod that does not even start."""
    claim = children.get(("PersistentVolumeClaim", name))
    if claim is None or (claim.get("status") or {}).get("phase", "Pending") != "Pending":
        return ""
    return f": volume claim {name} is not bound"
