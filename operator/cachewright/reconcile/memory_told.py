"""Whether the store runs out of memory: what is retained is given up for room then, and status says so. Pure.

Called by plan, which decides, and by status, which tells. Between the two bounds what was said last counts,
so that a store near one of them is not called full and well in turns.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.conditions import ConditionType, Reason
from cachewright.reconcile.readiness import Part
from cachewright.reconcile.state import Manifest, Observed

FULL_SHARE: Final = 0.9
"""Of the store's limit: beyond it the store is short of memory. It begins to evict at 1."""

ROOMY_SHARE: Final = 0.8
"""Below it the store is no longer short of memory."""

MEBIBYTE: Final = 1024 * 1024


def is_short_of_memory(observed: Observed) -> bool:
    """Tell whether the store has little room left; False where it does not tell."""
    filled = observed.store.filled
    if filled is None:
        return False
    return filled >= FULL_SHARE or (filled >= ROOMY_SHARE and bool(_former(observed)))


def memory_part(observed: Observed) -> Part | None:
    """Say that the store is short of memory; None where it is not.

    A store that did not answer says nothing about it, so what was told last stands.
    """
    server, filled = observed.store.server, observed.store.filled
    if filled is None and (observed.store.error is not None or not observed.store.asked):
        former = _former(observed)
        return _part(str(former["message"])) if former else None
    if server is None or filled is None or not is_short_of_memory(observed):
        return None
    # Rounded, so that status is not written each time the store is looked at.
    share, limit = round(20 * filled) * 5, server.max_bytes // MEBIBYTE
    message = (
        f"The store holds about {share} % of its {limit} MiB: of what is retained, only the latest keyspace"
        " of each layer is kept for a rollback."
    )
    return _part(message)


def _part(message: str) -> Part:
    return Part(ConditionType.MEMORY_PRESSURE, "True", Reason.STORE_NEARLY_FULL, message)


def _former(observed: Observed) -> Manifest:
    """Return the condition as it was told last; empty where it was not."""
    conditions = (observed.document.get("status") or {}).get("conditions") or []
    found: Manifest = next((c for c in conditions if c.get("type") == ConditionType.MEMORY_PRESSURE), {})
    return found
