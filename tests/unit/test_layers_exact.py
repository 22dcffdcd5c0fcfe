"""The exact layer: which keyspace it uses, what it serves and stores, and that no store can hold it up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from cachewright.errors import StoreRefused, StoreUnavailable
from cachewright.keys.record import Record
from cachewright.layers.exact import Hit, Miss
from cachewright.layers.known_record import KnownRecord
from cachewright.policy.reasons import BypassReason, RefusalReason
from tests.support.exact_worlds import (
    CACHE,
    DIGEST,
    DOCUMENT,
    FIRST,
    REBOUND,
    SECOND,
    World,
    ask_with_counters,
    running_world,
)
from tests.support.waiting import until


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A layer whose store holds the first record, which is also the mounted one."""
    async with running_world() as made:
        yield made


async def test_an_answer_is_served_after_it_was_stored(world: World) -> None:
    """Miss, write, hit: the same body and type."""
    assert await world.layer.write(await world.miss(), "application/json", b"body") is None
    hit = await world.hit()
    assert (hit.entry.content_type, hit.entry.body) == ("application/json", b"body")
    assert not isinstance(await world.layer.look_up("other tenant", DIGEST), Hit)
    assert not isinstance(await world.layer.look_up("tag", "ac" * 32), Hit)


async def test_age_and_ttl_count_from_the_write_and_never_slide(world: World) -> None:
    """Reading prolongs nothing: after its TTL an answer is gone however often it was hit."""
    await world.layer.write(await world.miss(), "application/json", b"body")
    for age in (0, 20, 40, 59):
        world.now = 1_790_000_000.0 + age
        hit = await world.hit()
        assert (hit.age_seconds, hit.ttl_seconds) == (age, 60 - age)
    world.now += 1
    await world.miss()


async def test_the_ttl_is_checked_on_read_too(world: World) -> None:
    """A store whose clock stands still serves nothing that is too old."""
    await world.layer.write(await world.miss(), "application/json", b"body")
    world.store.clock = lambda: 0.0
    world.now += 60
    await world.miss()


async def test_a_shorter_ttl_counts_at_once(world: World) -> None:
    """An answer stored under a longer TTL is served no longer than the policy says now."""
    await world.layer.write(await world.miss(), "application/json", b"body")
    world.layer = world.with_settings(ttl_seconds=10)
    world.now += 10
    await world.miss()


async def test_a_clock_behind_the_writers_serves_with_age_zero(world: World) -> None:
    """Clocks of two gateways differ a little; no age is negative."""
    await world.layer.write(await world.miss(), "application/json", b"body")
    world.now -= 5
    assert (await world.hit()).age_seconds == 0


async def test_without_a_record_nothing_is_looked_up(world: World) -> None:
    """No record is no keyspace, and so no question to the store."""
    world.known = KnownRecord(CACHE)
    world.layer = world.with_settings()
    assert await world.ask() is BypassReason.NO_RECORD
    assert world.store.calls == 0


async def test_a_record_of_another_cache_is_refused(world: World) -> None:
    """However high its revision."""
    assert not world.known.offer(replace(SECOND, cache_id="d" * 16))
    assert world.known.best == FIRST


async def test_a_lower_revision_is_refused(world: World) -> None:
    """What was seen is a floor for ever."""
    assert world.known.offer(SECOND)
    assert not world.known.offer(FIRST)
    assert world.known.best == SECOND


async def test_a_switch_in_the_store_is_seen_by_the_next_request(world: World) -> None:
    """Before any mounted file changes, the next look-up is in the new keyspace and misses."""
    await world.layer.write(await world.miss(), "application/json", b"old")
    await world.store.publish_record(SECOND)
    place = await world.miss()
    assert str(place.name.keyspace) == f"{'2' * 16}-2"
    await world.layer.write(place, "application/json", b"new")
    assert (await world.hit()).entry.body == b"new"


async def test_an_answer_from_before_a_switch_is_not_stored(world: World) -> None:
    """Its write is dropped, in the old keyspace as in the new one."""
    place = await world.miss()
    await world.store.publish_record(SECOND)
    assert await world.layer.write(place, "application/json", b"late") is RefusalReason.CHANGED
    await world.miss()


async def test_a_gateway_with_an_old_policy_leaves_the_new_keyspace_alone(world: World) -> None:
    """Bound to another policy, a keyspace is neither read nor written."""
    place = await world.miss()
    await world.store.publish_record(REBOUND)
    assert await world.ask() is BypassReason.POLICY_OUTDATED
    assert await world.layer.write(place, "application/json", b"late") is RefusalReason.CHANGED
    newer = world.with_settings(binding="another binding")
    assert isinstance(await newer.look_up("tag", DIGEST), Miss)


async def test_a_gateway_with_a_new_policy_finds_its_record_in_the_store(world: World) -> None:
    """When the mounted record lags behind the policy, the store's copy ends the wait."""
    world.layer = world.with_settings(binding="another binding")
    assert await world.ask() is BypassReason.POLICY_OUTDATED
    await world.store.publish_record(REBOUND)
    await world.layer.catch_up()
    await world.miss()


async def test_an_emptied_store_heals_by_itself(world: World) -> None:
    """The record comes back from a gateway, with the operator away, and answers are stored at once."""
    await world.layer.write(await world.miss(), "application/json", b"old")
    await world.store.aclose()
    assert await world.layer.write(await world.miss(), "application/json", b"new") is None
    assert await world.store.read_record(CACHE) == FIRST
    assert (await world.hit()).entry.body == b"new"


async def test_a_store_with_an_older_record_is_brought_up_to_date(world: World) -> None:
    """The mounted copy is a floor: a store restored from a backup serves nothing of the old keyspace."""
    await world.layer.write(await world.miss(), "application/json", b"old")
    world.known.offer(SECOND)
    place = await world.miss()
    assert str(place.name.keyspace) == f"{'2' * 16}-2"
    assert await world.store.read_record(CACHE) == SECOND


async def test_a_switch_during_a_look_up_is_followed(world: World) -> None:
    """A record that changes between two rounds is read anew, not mixed with the one before."""
    await world.store.aclose()

    async def switch() -> None:
        await world.store.publish_record(SECOND)

    world.store.before_find = switch
    assert str((await world.miss()).name.keyspace) == f"{'2' * 16}-2"


async def test_a_store_that_claims_a_record_it_cannot_show_is_not_trusted(world: World) -> None:
    """A greater revision without its record is no keyspace to use."""

    async def nothing(_cache_id: str) -> Record | None:
        return None

    await world.store.publish_record(SECOND)
    world.store.read_record = nothing  # type: ignore[method-assign, assignment]
    assert await world.ask() is BypassReason.NO_RECORD


async def test_a_frozen_store_costs_the_budget_once_and_nothing_after(world: World) -> None:
    """The first look-up waits no longer than the budget, later ones not at all, until it answers again."""
    world.layer = world.with_settings(budget_seconds=0.05)
    world.store.frozen = True
    started = time.perf_counter()
    assert await world.ask() is BypassReason.STORE
    assert 0.05 <= time.perf_counter() - started < 0.5
    calls, started = world.store.calls, time.perf_counter()
    for _ in range(100):
        assert await world.ask() is BypassReason.STORE
    assert time.perf_counter() - started < 0.1
    assert world.store.calls <= calls + 1  # a probe at most
    assert world.breaker_states == [True]


@pytest.mark.parametrize("error", [StoreUnavailable("reset"), StoreRefused("NOPERM")])
async def test_a_failing_store_is_left_alone_and_used_again(world: World, error: Exception) -> None:
    """Errors open the breaker, a successful probe closes it, and requests only ever saw a reason."""
    place = await world.miss()
    world.store.error = error
    assert await world.ask() is BypassReason.STORE
    assert world.breaker.is_open
    assert await world.ask() is BypassReason.STORE
    assert await world.layer.write(place, "application/json", b"x") is RefusalReason.STORE
    world.store.error = None

    async def closed() -> bool:
        return not world.breaker.is_open

    await until(closed)
    await world.miss()
    assert world.breaker_states == [True, False]


async def test_a_store_without_memory_is_still_read(world: World) -> None:
    """A refused write says nothing about reading; an unavailable store does."""
    place = await world.miss()
    world.store.error = StoreRefused("OOM")
    assert await world.layer.write(place, "application/json", b"x") is RefusalReason.STORE
    assert not world.breaker.is_open
    world.store.error = StoreUnavailable("reset")
    assert await world.layer.write(place, "application/json", b"x") is RefusalReason.STORE
    assert world.breaker.is_open


async def test_a_cancelled_look_up_leaves_nothing_behind(world: World) -> None:
    """When its client has gone, a look-up ends without a complaint of the event loop."""
    world.store.frozen = True
    asking = asyncio.ensure_future(world.ask())
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not world.breaker.is_open


async def test_many_at_an_emptied_store_refill_it_once(world: World) -> None:
    """A hundred requests at the same moment publish one record."""
    await world.store.aclose()
    published = []
    publish = world.store.publish_record

    async def counted(record: Record) -> int:
        published.append(record.revision)
        await asyncio.sleep(0)
        return await publish(record)

    world.store.publish_record = counted  # type: ignore[method-assign]
    found = await asyncio.gather(*(world.ask() for _ in range(100)))
    assert all(isinstance(one, Miss) for one in found)
    assert published == [1]


async def test_a_raised_counter_puts_older_answers_out_of_reach(world: World) -> None:
    """On every replica, from the next look-up on; what is stored afterwards is served again."""
    other_replica = world.with_settings()
    for layer in (world.layer, other_replica):
        await world.store.raise_generations(CACHE, [DOCUMENT])
        for reader in (world.layer, other_replica):
            assert isinstance(await ask_with_counters(reader), Miss)
        miss = await ask_with_counters(layer)
        assert isinstance(miss, Miss)
        assert await layer.write(miss, "application/json", b"body") is None
        for reader in (world.layer, other_replica):
            assert isinstance(await ask_with_counters(reader), Hit)


async def test_a_raise_is_learnt_by_a_second_read_and_remembered(world: World) -> None:
    """One look-up costs one more round trip; those after it cost none."""
    await ask_with_counters(world.layer)
    await world.store.raise_generations(CACHE, [DOCUMENT])
    reads = []
    for _ in range(2):
        before = world.store.calls
        await ask_with_counters(world.layer)
        reads.append(world.store.calls - before)
    assert reads == [2, 1]


async def test_an_answer_from_before_a_raise_is_not_stored(world: World) -> None:
    """The upstream may still be answering with the retracted document."""
    miss = await ask_with_counters(world.layer)
    assert isinstance(miss, Miss)
    await world.store.raise_generations(CACHE, [DOCUMENT])
    assert await world.layer.write(miss, "application/json", b"late") is RefusalReason.CHANGED
    assert isinstance(await ask_with_counters(world.layer), Miss)


async def test_all_generations_lie_under_one_hash_tag(world: World) -> None:
    """Else a look-up could not read counters, marks and entry in one slot."""
    tags = set()
    for _ in range(5):
        miss = await ask_with_counters(world.layer)
        assert isinstance(miss, Miss)
        tags.add(miss.name.record_key)
        await world.store.raise_generations(CACHE, [DOCUMENT])
    assert len(tags) == 1


async def test_switch_and_raise_at_once_are_both_learnt(world: World) -> None:
    """A newer record and raised counters cost one look-up its rounds, not its answer."""
    await world.store.publish_record(SECOND)
    await world.store.raise_generations(CACHE, [DOCUMENT])
    assert isinstance(await ask_with_counters(world.layer), Miss)
