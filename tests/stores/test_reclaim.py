"""What reclaiming needs of a store, on every implementation."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from redis.asyncio import Redis

from cachewright.errors import InvalidInput, StoreError
from cachewright.keys.digest import EntryName
from cachewright.keys.entry_key import janitor_key, keyspace_of_key
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.reclaim import ReclaimReport, ReclaimState, SweepReport
from cachewright.stores.redis_entries import open_cache_store
from tests.stores.conftest import Subject
from tests.support.redis_servers import FLAVORS, Flavor, run_redis
from tests.support.waiting import until

OLD, NEW = Keyspace("a" * 16, 1), Keyspace("b" * 16, 2)
PAGE_SIZE = 50


async def fill(subject: Subject, keyspace: Keyspace, count: int) -> list[str]:
    """Switch to a keyspace and store entries in it, spread over all hash tags; returns their keys."""
    record = subject.record(keyspace.incarnation, keyspace.id)
    await subject.store.publish_record(record)
    names = [
        EntryName(subject.cache_id, keyspace, "tag", f"{number:064x}"[::-1])
        for number in range(16, count + 16)
    ]

    async def write(name: EntryName) -> None:
        marks = (await subject.store.find(name)).marks
        assert marks is not None
        assert await subject.store.write(name, b"x" * 100, 600, marks)

    for start in range(0, count, 10):
        await asyncio.gather(*map(write, names[start : start + 10]))
    return sorted(name.key for name in names)


async def walked(subject: Subject, keyspace: Keyspace | None) -> list[str]:
    """Walk and return all keys found, in their order."""
    async with aclosing(subject.store.walk(subject.cache_id, keyspace, PAGE_SIZE)) as pages:
        return sorted({key async for page in pages for key in page.keys})


async def test_a_walk_finds_every_key_of_one_keyspace(subject: Subject) -> None:
    """Whatever their hash tags, and no key of another keyspace."""
    old, new = await fill(subject, OLD, 300), await fill(subject, NEW, 40)
    assert await walked(subject, OLD) == old
    assert await walked(subject, NEW) == new


async def test_a_walk_over_a_cache_finds_all_its_entries(subject: Subject) -> None:
    """Those of every keyspace; what is found beside them is no entry."""
    keys = await fill(subject, OLD, 100) + await fill(subject, NEW, 100)
    found = [key for key in await walked(subject, None) if keyspace_of_key(subject.cache_id, key)]
    assert found == sorted(keys)


async def test_a_walk_over_an_empty_store_ends(subject: Subject) -> None:
    """It finds nothing, and says so by ending."""
    assert await walked(subject, OLD) == []
    assert await walked(subject, None) == []


async def test_only_the_keys_that_are_named_are_removed(subject: Subject) -> None:
    """Their number is told; doing it again removes nothing."""
    old, new = await fill(subject, OLD, 700), await fill(subject, NEW, 5)
    assert await subject.store.unlink(subject.cache_id, OLD, old[:690]) == 690
    assert await subject.store.unlink(subject.cache_id, OLD, old[:690]) == 0
    assert await subject.store.unlink(subject.cache_id, OLD, []) == 0
    assert await walked(subject, OLD) == old[690:]
    assert await walked(subject, NEW) == new


async def test_a_key_outside_the_keyspace_stops_a_removal(subject: Subject) -> None:
    """Nothing at all is removed then, not even what lies inside."""
    old, new = await fill(subject, OLD, 3), await fill(subject, NEW, 3)
    record = subject.name().record_key
    other = new[0].replace(subject.cache_id, "f" * 16)
    for stranger in (new[0], record, other, "something else"):
        with pytest.raises(InvalidInput, match="not all of these keys"):
            await subject.store.unlink(subject.cache_id, OLD, [*old, stranger])
    assert await walked(subject, OLD) == old


async def test_a_key_outside_the_cache_stops_a_removal(subject: Subject) -> None:
    """Also where any key of the cache may go."""
    old, new = await fill(subject, OLD, 3), await fill(subject, NEW, 3)
    other = new[0].replace(subject.cache_id, "f" * 16)
    for stranger in (other, "something else", f"x{new[0]}"):
        with pytest.raises(InvalidInput, match="not all of these keys"):
            await subject.store.unlink(subject.cache_id, None, [*old, stranger])
    assert await subject.store.unlink(subject.cache_id, None, old + new) == 6
    assert await walked(subject, OLD) == await walked(subject, NEW) == []


async def test_one_janitor_holds_the_lock(subject: Subject) -> None:
    """It may prolong it; nobody else takes it or frees it."""
    store, cache_id = subject.store, subject.cache_id
    assert await store.hold_janitor(cache_id, "first", 60)
    assert await store.hold_janitor(cache_id, "first", 60)
    assert not await store.hold_janitor(cache_id, "second", 60)
    assert not await store.free_janitor(cache_id, "second")
    assert await store.free_janitor(cache_id, "first")
    assert not await store.free_janitor(cache_id, "first")
    assert await store.hold_janitor(cache_id, "second", 60)


async def test_the_lock_of_a_dead_janitor_ends(subject: Subject) -> None:
    """The next one takes over without anybody's help."""
    assert await subject.store.hold_janitor(subject.cache_id, "dead", 0.1)

    async def is_taken_over() -> bool:
        return await subject.store.hold_janitor(subject.cache_id, "next", 60)

    await until(is_taken_over)
    assert not await subject.store.free_janitor(subject.cache_id, "dead")


async def test_a_report_is_read_as_written(subject: Subject) -> None:
    """The last one on each keyspace, and only those that are asked for."""
    store, cache_id = subject.store, subject.cache_id
    assert await store.read_reclaims(cache_id, [OLD]) == {}
    done = ReclaimReport(ReclaimState.DONE, 12, "", 1.5)
    failed = ReclaimReport(ReclaimState.FAILED, 3, "the store is gone", 2.25)
    await store.write_reclaim(cache_id, OLD, ReclaimReport(ReclaimState.RUNNING))
    await store.write_reclaim(cache_id, OLD, done)
    await store.write_reclaim(cache_id, NEW, failed)
    assert await store.read_reclaims(cache_id, [OLD, NEW]) == {OLD: done, NEW: failed}
    assert await store.read_reclaims(cache_id, [NEW]) == {NEW: failed}
    assert await store.read_reclaims(cache_id, []) == {}


async def test_reports_nobody_needs_are_dropped(subject: Subject) -> None:
    """Those that are kept stay, and those on keyspaces younger than whoever drops them knows of."""
    store, cache_id = subject.store, subject.cache_id
    await store.forget_reclaims(cache_id, 9, [])
    young = Keyspace("c" * 16, 10)
    for keyspace in (OLD, NEW, young):
        await store.write_reclaim(cache_id, keyspace, ReclaimReport(ReclaimState.DONE))
    await store.forget_reclaims(cache_id, 9, [NEW])
    assert set(await store.read_reclaims(cache_id, [OLD, NEW, young])) == {NEW, young}


async def test_a_sweep_is_due_until_one_was_made(subject: Subject) -> None:
    """Its report stays; when the pause is over, the next one is due."""
    store, cache_id = subject.store, subject.cache_id
    assert await store.sweep_is_due(cache_id)
    assert await store.read_sweep(cache_id) is None
    report = SweepReport({OLD: 3, NEW: 4}, 7, 1.5, 0.25)
    await store.write_sweep(cache_id, report, 60)
    assert not await store.sweep_is_due(cache_id)
    assert await store.read_sweep(cache_id) == report
    await store.write_sweep(cache_id, report, 0.05)
    await until(lambda: store.sweep_is_due(cache_id))
    await store.forget_reclaims(cache_id, 99, [])
    assert await store.read_sweep(cache_id) == report


@pytest.mark.parametrize("flavor", FLAVORS)
async def test_a_walk_that_lost_its_server_is_no_complete_one(flavor: Flavor) -> None:
    """It ends with an error, even if the server is back before the next page; a new walk finds everything."""
    with run_redis(flavor) as server:
        subject = Subject(open_cache_store(server.url("gateway")), server.cache_id)
        await fill(subject, OLD, 500)
        async with aclosing(subject.store.walk(subject.cache_id, OLD, 20)) as pages:
            await anext(pages)
            server.restart()
            with pytest.raises(StoreError):
                await anext(pages)
        assert await walked(subject, OLD) == []
        await subject.store.aclose()


@pytest.mark.parametrize("flavor", FLAVORS)
async def test_reports_that_do_not_parse_count_as_none(flavor: Flavor) -> None:
    """What somebody else wrote there is nobody's word that a keyspace is empty."""
    with run_redis(flavor) as server:
        store = open_cache_store(server.url("gateway"))
        root = Redis.from_url(server.url("gateway").replace("gateway:gateway", "root:root"))
        await root.hset(janitor_key(server.cache_id), str(OLD), '{"format": 1, "state": "gone"}')
        await root.hset(janitor_key(server.cache_id), str(NEW), "done")
        await root.hset(janitor_key(server.cache_id), "sweep", "swept")
        assert await store.read_reclaims(server.cache_id, [OLD, NEW]) == {}
        assert await store.read_sweep(server.cache_id) is None
        await root.aclose()
        await store.aclose()
