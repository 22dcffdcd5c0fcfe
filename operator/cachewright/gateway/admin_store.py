"""What a store holds: from the record and the janitor's reports to a part of the stats. Pure.

Counts are those of the last sweep, whichever gateway made it. Called by the admin port.
"""

from __future__ import annotations

from typing import Any

from cachewright.gateway.janitor import JanitorNews
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record


def tell_store(record: Record | None, news: JanitorNews) -> dict[str, Any]:
    """Return every keyspace that the record names with its entries, and what the janitor did last."""
    sweep = news.sweep
    return {
        "keyspaces": [] if record is None else _keyspaces(record, news),
        "lastSweep": None
        if sweep is None
        else {
            "endedAt": round(sweep.ended_at, 3),
            "tookSeconds": round(sweep.took_seconds, 3),
            "removed": sweep.removed,
        },
    }


def _keyspaces(record: Record, news: JanitorNews) -> list[dict[str, Any]]:
    in_use = [
        _keyspace(name, layer.keyspace, layer.state.value, news)
        for name, layer in sorted(record.layers.items())
    ]
    past = [
        _keyspace(one.layer, one.keyspace, one.state.value, news) | {"until": one.until}
        for one in record.past
    ]
    return in_use + past


def _keyspace(layer: str, keyspace: Keyspace, state: str, news: JanitorNews) -> dict[str, Any]:
    entries = news.sweep.entries.get(keyspace) if news.sweep else None
    told: dict[str, Any] = {"layer": layer, "keyspace": str(keyspace), "state": state, "entries": entries}
    if (report := news.reclaims.get(keyspace)) is not None:
        told["reclaim"] = {
            "state": report.state.value,
            "removed": report.removed,
            "problem": report.problem or None,
        }
    return told
