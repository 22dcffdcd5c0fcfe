"""What copies outside a store can rely on: marks of all tags, and hearing of keys that changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis

from cachewright.errors import StoreUnavailable
from cachewright.keys.scheme import TAGS
from cachewright.stores import redis_tracking
from cachewright.stores.protocols import CacheStore
from cachewright.stores.redis_client import RedisLink
from cachewright.stores.redis_entries import open_cache_store
from tests.stores.conftest import Subject
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until


@dataclass
class Notes:
    """A listener that writes down what it hears."""

    changed: list[str] = field(default_factory=list)
    lost: int = 0

    def keys_changed(self, keys: Sequence[str]) -> None:
        """Note the keys."""
        self.changed += keys

    def keys_lost(self) -> None:
        """Count it."""
        self.lost += 1

    async def heard(self, key: str) -> None:
        """Wait until a key was heard of."""

        async def is_heard() -> bool:
            return key in self.changed

        await until(is_heard)

    async def lost_more_often_than(self, times: int) -> None:
        """Wait until more was lost."""

        async def is_lost() -> bool:
            return self.lost > times

        await until(is_lost)


@asynccontextmanager
async def following(store: CacheStore, cache_id: str, servers: int = 1) -> AsyncIterator[Notes]:
    """Follow a cache's keys until the block ends."""
    notes = Notes()
    task = asyncio.create_task(store.follow_keys(cache_id, notes))
    try:
        await notes.lost_more_often_than(servers - 1)
        yield notes
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def servers_of(request: pytest.FixtureRequest) -> int:
    """Count the servers that the subject of a test writes to."""
    return 3 if "cluster" in request.node.name else 1


async def test_the_marks_of_all_tags_are_read(subject: Subject) -> None:
    """None before a record is there, then the same that look-ups see."""
    assert await subject.store.read_marks(subject.cache_id) == {}
    await subject.store.publish_record(subject.record(1))
    await subject.store.publish_record(subject.record(3))
    seen = (await subject.store.find(subject.name())).marks
    assert seen is not None
    assert seen.revision == 3
    assert await subject.store.read_marks(subject.cache_id) == dict.fromkeys(TAGS, seen)
    await subject.store.remove(subject.name())
    found = await subject.store.find(subject.name())
    assert (await subject.store.read_marks(subject.cache_id))[subject.name().tag] == found.marks


async def test_changed_keys_are_heard_of(subject: Subject, request: pytest.FixtureRequest) -> None:
    """Entries that are written or removed and records that are published, whoever does it."""
    async with following(subject.store, subject.cache_id, servers_of(request)) as notes:
        names = [subject.name(digest) for digest in ("00" * 32, "1f" * 32, "2e" * 32, "3d" * 32)]
        await subject.store.publish_record(subject.record(1))
        for name in names:
            await notes.heard(name.record_key)
        for name in names:
            marks = (await subject.store.find(name)).marks
            assert marks is not None
            assert await subject.store.write(name, b"x", 60, marks)
            await notes.heard(name.key)
            notes.changed.clear()
            await subject.store.remove(name)
            await notes.heard(name.key)


async def test_other_caches_are_not_heard_of(subject: Subject, request: pytest.FixtureRequest) -> None:
    """A listener hears of its own cache alone."""
    async with following(subject.store, "f" * 16, servers_of(request)) as notes:
        await subject.store.publish_record(subject.record(1))
        async with following(subject.store, subject.cache_id, servers_of(request)) as own:
            await subject.store.publish_record(subject.record(2))
            await own.heard(subject.name().record_key)
        assert notes.changed == []


async def test_an_emptied_server_is_all_lost(server: RedisServer) -> None:
    """Nothing that was kept may be kept on, whoever emptied it."""
    store = open_cache_store(server.url("gateway"))
    async with following(store, server.cache_id) as notes, Redis.from_url(server.url("root")) as root:
        await Subject(store, server.cache_id).store.publish_record(Subject(store, server.cache_id).record(1))
        lost = notes.lost
        await root.flushall()
        await notes.lost_more_often_than(lost)
    await store.aclose()


async def test_expired_entries_are_heard_of(server: RedisServer) -> None:
    """An entry that ends is told of, too."""
    store = open_cache_store(server.url("gateway"))
    subject = Subject(store, server.cache_id)
    await store.publish_record(subject.record(1))
    marks = (await store.find(subject.name())).marks
    assert marks is not None
    assert await store.write(subject.name(), b"x", 0.05, marks)
    async with following(store, server.cache_id) as notes:
        notes.changed.clear()
        await notes.heard(subject.name().key)
    await store.aclose()


async def test_a_server_that_dies_is_followed_again(server: RedisServer) -> None:
    """What was kept is lost at once, and changes are heard of again after a restart."""
    store = open_cache_store(server.url("gateway"))
    subject = Subject(store, server.cache_id)
    async with following(store, server.cache_id) as notes:
        lost = notes.lost
        await asyncio.to_thread(server.restart)
        await notes.lost_more_often_than(lost + 1)  # once for the end, once for the new beginning
        await store.publish_record(subject.record(1))
        await notes.heard(subject.name().record_key)
    await store.aclose()


async def test_a_server_that_lets_nobody_listen_is_borne_with(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is called lost where nothing was followed: copies live by the marks alone."""
    monkeypatch.setattr(redis_tracking, "FIRST_PAUSE_SECONDS", 0.01)
    store, notes = open_cache_store(server.url("operator")), Notes()
    task = asyncio.create_task(store.follow_keys(server.cache_id, notes))
    done, _ = await asyncio.wait([task], timeout=0.3)
    assert not done
    assert notes == Notes()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.aclose()


async def test_a_silent_server_is_lost(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is there but says nothing is given up; one that is idle but alive is not."""
    monkeypatch.setattr(redis_tracking, "SILENCE_SECONDS", 0.05)
    store = open_cache_store(server.url("gateway"))
    async with following(store, server.cache_id) as notes:
        subject = Subject(store, server.cache_id)
        lost = notes.lost
        for _ in range(4):  # more than the silence that is allowed, if nobody answered
            await asyncio.sleep(0.05)
        assert notes.lost == lost
        server.freeze()
        try:
            await notes.lost_more_often_than(lost)
        finally:
            server.thaw()
        await store.publish_record(subject.record(7))
        await notes.lost_more_often_than(lost + 1)
    await store.aclose()


@pytest.mark.parametrize("turns", range(6))
async def test_following_ends_when_told_to_in_the_moment_in_which_it_fails(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """However many turns of the event loop lie between the failure and the cancellation."""
    follows: list[asyncio.Future[None]] = []

    async def follow(*_: object) -> None:
        follows.append(asyncio.get_running_loop().create_future())
        await follows[-1]

    monkeypatch.setattr(redis_tracking, "_follow", follow)
    monkeypatch.setattr(redis_tracking, "FIRST_PAUSE_SECONDS", 0.0)
    store = open_cache_store(server.url("gateway"))
    task = asyncio.create_task(store.follow_keys(server.cache_id, Notes()))

    async def is_following() -> bool:
        return bool(follows)

    await until(is_following)
    follows[0].set_exception(StoreUnavailable("gone"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=10)
    assert done
    assert task.cancelled()
    await store.aclose()


async def test_a_cluster_without_primaries_is_asked_again(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the moment there is nobody to follow, and that is no end."""
    asked = 0

    async def nobody(_link: RedisLink) -> dict[str, object]:
        nonlocal asked
        asked += 1
        return {}

    monkeypatch.setattr(RedisLink, "connections_to_primaries", nobody)
    monkeypatch.setattr(redis_tracking, "FIRST_PAUSE_SECONDS", 0.01)
    store = open_cache_store(server.url("gateway"))
    task = asyncio.create_task(store.follow_keys(server.cache_id, Notes()))

    async def is_asked_again() -> bool:
        return task.done() or asked > 1

    await until(is_asked_again)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.aclose()
