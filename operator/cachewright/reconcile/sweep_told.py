"""What the last sweep over a cache's keys found, as `status.sweep` tells it. Pure; called by status.

Sweeps may follow one another each minute, and status must be at rest: so numbers are rounded, and one sweep
is told for a quarter of an hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from cachewright.keys.record import Record
from cachewright.reconcile.state import Manifest, Observed
from cachewright.reconcile.timestamps import to_timestamp
from cachewright.stores.reclaim import SweepReport

TOLD_SECONDS: Final = 900.0
"""Between two sweeps that are told; as with hit rates."""

DIGITS: Final = 2

MOST_SECONDS: Final = 253_402_300_799
"""The year 9999, beyond which no date is written."""


def sweep_status(before: Manifest, observed: Observed, record: Record | None) -> Manifest | None:
    """Render for status; what was told last where the store did not answer, or where it is too early."""
    told: Manifest | None = before.get("sweep")
    report = observed.store.sweep
    if report is None or record is None or not 0 < report.ended_at < MOST_SECONDS:
        return told
    ended_at = to_timestamp(datetime.fromtimestamp(report.ended_at, UTC))
    # Either way: a gateway whose clock was ahead must not silence the others.
    if told is not None and abs(_seconds(ended_at) - _seconds(str(told["endedAt"]))) < TOLD_SECONDS:
        return told
    return {
        "endedAt": ended_at,
        "removed": rounded(report.removed),
        "layers": list(_layers(report, record)),
    }


def rounded(number: int) -> int:
    """Keep two digits."""
    step = int(10 ** max(0, len(str(number)) - DIGITS))
    return round(number / step) * step


def _layers(report: SweepReport, record: Record) -> Iterator[Manifest]:
    for name, layer in sorted(record.layers.items()):
        past = [each.keyspace for each in record.past if each.layer == name]
        yield {
            "name": name,
            "entries": rounded(report.entries.get(layer.keyspace, 0)),
            "retainedEntries": rounded(sum(report.entries.get(keyspace, 0) for keyspace in past)),
        }


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
