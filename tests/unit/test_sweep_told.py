"""`status.sweep`: what the last sweep found, in round numbers and not too often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.reconcile.state import StoreState
from cachewright.reconcile.sweep_told import rounded, sweep_status
from cachewright.stores.reclaim import SweepReport
from tests.support.caches import cache_document
from tests.support.passes import observed

OLD, NEW = Keyspace("1" * 16, 1), Keyspace("2" * 16, 2)
ENDED_AT = 1_796_040_000.0
REPORT = SweepReport({NEW: 12_345, OLD: 678}, removed=91_234, ended_at=ENDED_AT)


def record() -> Record:
    """A record whose layer was switched once."""
    first = Record("c" * 16, 0, 0).with_layer("Exact", OLD.id, "binding", "2026-11-30T00:00:00Z")
    kept = first.with_layer("Exact", NEW.id, "binding", "2026-11-30T01:00:00Z")
    assert kept.layers["Exact"].keyspace == NEW
    return kept


def told(before: dict[str, Any], report: SweepReport | None) -> Any:
    """Tell of a sweep."""
    seen = observed(cache_document(), store=StoreState(sweep=report, asked=True))
    return sweep_status(before, seen, record())


def test_a_sweep_is_told_in_two_digits() -> None:
    """Entries by layer, those in use apart from those retained."""
    found = told({}, REPORT)
    assert found is not None
    assert (found["endedAt"], found["removed"]) == ("2026-11-30T12:00:00Z", 91_000)
    (layer,) = found["layers"]
    assert (layer["name"], layer["entries"]) == ("Exact", 12_000)


@pytest.mark.parametrize("seconds", [60.0, 899.0, -300.0])
def test_a_sweep_soon_after_is_not_told(seconds: float) -> None:
    """Status is at rest, however often is swept."""
    first = told({}, REPORT)
    later = replace(REPORT, entries={NEW: 1}, ended_at=ENDED_AT + seconds)
    assert told({"sweep": first}, later) == first


@pytest.mark.parametrize("seconds", [900.0, -86_400.0])
def test_a_later_sweep_is_told(seconds: float) -> None:
    """And one before a gateway whose clock was far ahead told of its own."""
    first = told({}, REPORT)
    assert told({"sweep": first}, replace(REPORT, ended_at=ENDED_AT + seconds)) != first


@pytest.mark.parametrize("report", [None, replace(REPORT, ended_at=1e300), replace(REPORT, ended_at=-1.0)])
def test_what_was_told_stands_where_nothing_can_be_read(report: SweepReport | None) -> None:
    """A store that does not answer, or holds nonsense, takes nothing away."""
    assert told({}, report) is None
    first = told({}, REPORT)
    assert told({"sweep": first}, report) == first


@pytest.mark.parametrize(
    ("number", "text"), [(0, 0), (7, 7), (99, 99), (101, 100), (12_345, 12_000), (9_960, 10_000)]
)
def test_numbers_keep_two_digits(number: int, text: int) -> None:
    """Nobody acts on a third."""
    assert rounded(number) == text
