"""When an engine's prefix caches are to be emptied, and how far that came. Pure; for service and status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cachewright.api.conditions import Reason
from cachewright.keys.record import Record
from cachewright.reconcile.prefix.finding import PrefixFinding
from cachewright.reconcile.prefix.wish import PrefixWish

Manifest = dict[str, Any]

LAYERS: Final = ("Prefix", "Exact", "Semantic")
"""Layers whose keyspace tells of a switch to another model; the first that there is."""


@dataclass(frozen=True, slots=True)
class Flush:
    """A switch after which the caches are to be emptied."""

    switch: str
    """The keyspace that came into use."""
    since: str
    """When it did."""
    is_due: bool
    """True where it is not known that they were emptied since."""


@dataclass(frozen=True, slots=True)
class FlushSeen:
    """How far emptying has come."""

    switch: str
    left: int = 0
    """Pods that may still hold what was computed before the switch."""
    problem: str = ""
    """Why, as the end of a sentence."""


def flush_of(wish: PrefixWish | None, record: Record | None, flushed: str | None) -> Flush | None:
    """Return the latest switch; None where nothing is to be emptied, or nothing was switched yet.

    `flushed` is what status says. Where it says nothing, what is in use was there before anybody asked.
    """
    if wish is None or wish.layer.flush != "AfterSwitch" or record is None:
        return None
    layer = next((record.layers[name] for name in LAYERS if name in record.layers), None)
    if layer is None:
        return None
    switch = str(layer.keyspace)
    return Flush(switch, layer.since, is_due=flushed is not None and flushed != switch)


def flush_status(flush: Flush | None, seen: FlushSeen | None, flushed: str | None) -> Manifest:
    """Return which switch is done with."""
    if flush is None:
        return {}
    is_done = not flush.is_due or (seen is not None and seen.switch == flush.switch and not seen.left)
    done = flush.switch if is_done else flushed
    return {"flushed": done} if done else {}


def flush_finding(wish: PrefixWish, seen: FlushSeen | None) -> PrefixFinding | None:
    """Say where an engine may still answer from what an old model computed."""
    if seen is None or not seen.left:
        return None
    message = (
        f"{seen.left} pods of {wish.workload} may still hold prefixes of before the switch: {seen.problem};"
        " they are asked again."
    )
    return PrefixFinding(Reason.FLUSH_PENDING, message)
