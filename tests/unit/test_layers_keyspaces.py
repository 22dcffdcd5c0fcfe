"""The exact layer among keyspaces: which it reads, which it writes, what an older store cannot do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from cachewright.keys.record import KeyspaceState, PastKeyspace
from cachewright.layers.exact import Hit, Miss
from cachewright.policy.reasons import RefusalReason
from tests.support.exact_worlds import (
    CACHE,
    DOCUMENT,
    FIRST,
    READONLY,
    SECOND,
    World,
    ask_with_counters,
    copy_of,
    restore,
    running_world,
)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A layer whose store holds the first record, which is also the mounted one."""
    async with running_world() as made:
        yield made


async def test_a_keyspace_that_is_readonly_is_read_and_not_written(world: World) -> None:
    """Hits go on; an answer is not sent to the store at all, nor one from before let in."""
    await world.layer.write(await world.miss(), "application/json", b"kept")
    before = (await world.hit()).place
    await world.store.publish_record(READONLY)
    found = await world.hit()
    assert found.entry.body == b"kept"
    assert not found.place.is_writable
    calls = world.store.calls
    assert await world.layer.write(found.place, "application/json", b"late") is RefusalReason.READONLY
    assert world.store.calls == calls
    assert await world.layer.write(before, "application/json", b"late") is RefusalReason.CHANGED
    await world.store.publish_record(replace(READONLY, revision=3, layers=FIRST.layers))
    place = (await world.hit()).place
    assert await world.layer.write(place, "application/json", b"fresh") is None


async def test_without_a_heartbeat_a_fenced_keyspace_is_not_written(world: World) -> None:
    """The gateway cannot know; the store tells."""
    layer = replace(FIRST.layers["Exact"], model_version="v1", workload="w1")
    await world.store.publish_record(replace(FIRST, revision=2, layers={"Exact": layer}, fenced=True))
    place = await world.miss()
    assert place.is_writable
    assert await world.layer.write(place, "application/json", b"x") is RefusalReason.READONLY
    assert await world.store.beat(CACHE, 2, 60)
    assert await world.layer.write(place, "application/json", b"x") is RefusalReason.CHANGED
    place = await world.miss()
    assert await world.layer.write(place, "application/json", b"x") is None
    world.now += 61
    assert await world.layer.write(place, "application/json", b"x") is RefusalReason.READONLY


async def test_past_keyspaces_are_not_read(world: World) -> None:
    """Neither a retained one nor one that is being deleted, though their entries are still there."""
    await world.layer.write(await world.miss(), "application/json", b"old")
    old = FIRST.layers["Exact"]
    for revision, state in ((2, KeyspaceState.RETAINED), (3, KeyspaceState.DELETING)):
        past = PastKeyspace("Exact", old.keyspace, old.binding, state, "t", "t")
        await world.store.publish_record(replace(SECOND, revision=revision, past=(past,)))
        assert (await world.miss()).name.keyspace == SECOND.layers["Exact"].keyspace


async def test_a_rolled_back_keyspace_hits_again(world: World) -> None:
    """A retained one that is active again serves what it held, for what remains of its TTL."""
    await world.layer.write(await world.miss(), "application/json", b"old")
    await world.store.publish_record(SECOND)
    await world.miss()
    world.now += world.ttl_seconds / 2
    await world.store.publish_record(replace(FIRST, revision=3, incarnation=2))
    hit = await world.hit()
    assert hit.entry.body == b"old"
    assert hit.ttl_seconds == pytest.approx(world.ttl_seconds / 2)


async def test_a_store_that_went_back_serves_nothing_it_held(world: World) -> None:
    """A failover lost the retraction; whoever saw that it was made gives up all the rest too."""
    miss = await ask_with_counters(world.layer)
    assert isinstance(miss, Miss)
    assert await world.layer.write(miss, "application/json", b"retracted") is None
    older = copy_of(world.store)
    await world.store.raise_generations(CACHE, [DOCUMENT])
    assert isinstance(await ask_with_counters(world.layer), Miss)
    restore(world.store, older)
    found = await asyncio.gather(*(ask_with_counters(world.layer) for _ in range(5)))
    assert all(isinstance(each, Miss) for each in found)
    assert (await world.store.find(miss.name, ["l:Exact"])).generations == (1,)
    newcomer = world.with_settings()
    assert isinstance(await ask_with_counters(newcomer), Miss)
    fresh = await ask_with_counters(world.layer)
    assert isinstance(fresh, Miss)
    assert await world.layer.write(fresh, "application/json", b"fresh") is None
    assert isinstance(await ask_with_counters(world.layer), Hit)


async def test_whoever_looked_notices_what_was_lost(world: World) -> None:
    """Though it never asked for the answer since it was retracted: looking at the marks is enough."""
    miss = await ask_with_counters(world.layer)
    assert isinstance(miss, Miss)
    assert await world.layer.write(miss, "application/json", b"retracted") is None
    older = copy_of(world.store)
    await world.store.raise_generations(CACHE, [DOCUMENT])
    await world.layer.catch_up()
    restore(world.store, older)
    assert isinstance(await ask_with_counters(world.layer), Miss)


async def test_a_look_mends_a_store_that_nobody_asks(world: World) -> None:
    """One that went back is retracted whole, one that was emptied has the record again."""
    older = copy_of(world.store)
    await world.store.raise_generations(CACHE, [DOCUMENT])
    await world.layer.catch_up()
    restore(world.store, older)
    for _ in range(2):
        await world.layer.catch_up()
    assert await world.store.read_generations(CACHE, ["l:Exact"]) == (1,)
    world.store.forget_all()
    await world.layer.catch_up()
    assert await world.store.read_record(CACHE) == FIRST


async def test_a_write_from_before_a_failover_is_dropped(world: World) -> None:
    """However many changes the older copy has had since: it comes to no marks that somebody saw before."""
    older = copy_of(world.store)
    await world.store.raise_generations(CACHE, [DOCUMENT])
    place = await world.miss()
    restore(world.store, older)
    await world.store.raise_generations(CACHE, [DOCUMENT])
    assert await world.layer.write(place, "application/json", b"late") is RefusalReason.CHANGED
