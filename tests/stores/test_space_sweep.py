"""The janitor in vector stores: what has expired, is too much or is nobody's goes, on every store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachewright.keys.record import KeyspaceState, LayerRecord, PastKeyspace, Record
from cachewright.layers.pace import Pace
from cachewright.layers.space_sweep import SpaceSweep
from cachewright.stores.vectors import VectorSpace
from tests.support.clocks import ManualClock
from tests.support.vectors import NOW, VectorSubject, vector_entry

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")

SINCE = "2026-11-30T00:00:00Z"


async def filled(vectors: VectorSubject, incarnation: int, fresh: int, expired: int = 0) -> VectorSpace:
    """Make a space with entries."""
    space = await vectors.opened(incarnation)
    for number in range(expired):
        await vectors.store.put(space, vector_entry(f"old {number}", stored_at=NOW - 100, ttl_seconds=10))
    for number in range(fresh):
        await vectors.store.put(space, vector_entry(number, stored_at=NOW + number))
    return space


def record_of(vectors: VectorSubject, active: VectorSpace, *retained: VectorSpace, newest: int) -> Record:
    """Return a record that names these spaces."""
    layer = LayerRecord(active.keyspace, "binding", SINCE)
    past = tuple(
        PastKeyspace("Semantic", space.keyspace, "binding", KeyspaceState.RETAINED, SINCE, SINCE)
        for space in retained
    )
    return Record(vectors.cache_id, 5, newest, layers={"Semantic": layer}, past=past)


async def sweep(vectors: VectorSubject, record: Record, max_entries: int | None = None) -> int:
    """Sweep once, in a time of its own."""
    clock = ManualClock()
    pace = Pace(1000, clock, clock.sleep)
    return await SpaceSweep(vectors.store, max_entries, lambda: NOW).run(record, pace)


async def test_expired_entries_go_from_every_keyspace(vectors: VectorSubject) -> None:
    """From the retained ones too; what has not expired stays."""
    active = await filled(vectors, 3, fresh=6, expired=4)
    retained = await filled(vectors, 2, fresh=5, expired=3)
    assert await sweep(vectors, record_of(vectors, active, retained, newest=3)) == 7
    assert await vectors.store.count(active) == 6
    assert await vectors.store.count(retained) == 5
    assert await sweep(vectors, record_of(vectors, active, retained, newest=3)) == 0


async def test_what_is_above_the_bound_goes_oldest_first(vectors: VectorSubject) -> None:
    """Where the bound was lowered, or writes outran it; a retained keyspace has none."""
    active = await filled(vectors, 3, fresh=12)
    retained = await filled(vectors, 2, fresh=8)
    removed = await sweep(vectors, record_of(vectors, active, retained, newest=3), max_entries=5)
    left = await vectors.store.count(active, "tenant-a")
    assert left <= 5
    assert removed == 12 - left
    assert await vectors.store.count(retained, "tenant-a") == 8
    newest = vector_entry(11, stored_at=NOW + 11)
    assert await vectors.store.read_body(active, newest.id, newest.nonce) is not None


async def test_spaces_nobody_needs_are_dropped(vectors: VectorSubject) -> None:
    """Those that the record no longer names; younger ones than it knows, and other caches', stay."""
    active, stray = await filled(vectors, 3, fresh=2), await filled(vectors, 1, fresh=2)
    young = await filled(vectors, 9, fresh=2)
    other = replace(active, cache_id="f" * 16)
    await vectors.ensure(other)
    await sweep(vectors, record_of(vectors, active, newest=3))
    assert set(await vectors.store.list_spaces(vectors.cache_id)) == {active.keyspace, young.keyspace}
    assert await vectors.store.list_spaces(other.cache_id) == [other.keyspace]
    assert stray.keyspace not in {active.keyspace, young.keyspace}
    await vectors.store.drop(other.cache_id, other.keyspace)
