"""What an edit of the manifest, or time, did to what is cached: from two editions to sentences. Pure.

The keeper tells them once the gateway enacts the newer edition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, LayerRecord, PastKeyspace, Record
from cachewright.local.edition import Edition
from cachewright.stores.reclaim import ReclaimReport

NOTHING_MOVED: Final = "the manifest changed; what was cached stays in use"


def news_of(before: Edition, after: Edition) -> list[str]:
    """Say what an edit led to, a sentence for each layer that moved."""
    moved = [f"the manifest changed: {each}" for each in _moves(before, after)]
    return [*(moved or [NOTHING_MOVED]), *expiries(before.record, after.record)]


def expiries(before: Record, after: Record) -> list[str]:
    """Say which retained keyspaces are given up, because of their age or because there are too many."""
    retained = {past.keyspace for past in before.in_state(KeyspaceState.RETAINED)}
    return [
        f"keyspace {past.keyspace}{_version(past)} is no longer retained and is deleted"
        for past in after.in_state(KeyspaceState.DELETING)
        if past.keyspace in retained
    ]


def ends(reports: Mapping[Keyspace, ReclaimReport]) -> list[str]:
    """Say which keyspaces are gone."""
    return [
        f"keyspace {keyspace} is gone: a walk over the store found nothing of it, after {report.removed} keys"
        for keyspace, report in sorted(reports.items())
    ]


def shown_retained(past: PastKeyspace) -> str:
    """Write a retained keyspace in a few words."""
    return f"{past.keyspace}{_version(past)} until {past.until.removesuffix('Z').replace('T', ' ')} UTC"


def _moves(before: Edition, after: Edition) -> Iterator[str]:
    names = sorted({*before.record.layers, *after.record.layers})
    for name in names:
        former, active = before.record.layers.get(name), after.record.layers.get(name)
        if active is None:
            yield f"it has no {name.lower()} layer any more{_fate_of(former, after.record)}"
        elif former is None or former.keyspace != active.keyspace:
            model = after.cache.spec.model
            subject = f"{model.name} at version {model.version}" if active.model_version else name.lower()
            yield f"{subject} {_arrival(active)}{_fate_of(former, after.record)}"


def _arrival(active: LayerRecord) -> str:
    if active.rolled_back:
        return f"has keyspace {active.keyspace} back, with what is left of its answers"
    return f"starts with the empty keyspace {active.keyspace}"


def _fate_of(former: LayerRecord | None, after: Record) -> str:
    if former is None:
        return ""
    past = next((each for each in after.past if each.keyspace == former.keyspace), None)
    if past is None or past.state is KeyspaceState.DELETING:
        return f"; {former.keyspace} is deleted"
    return f"; retained is {shown_retained(past)}"


def _version(past: PastKeyspace) -> str:
    return f" (version {past.model_version})" if past.model_version else ""
