"""Look-ups that share round trips: each gets its own answer, and one that fails spoils no other."""

from __future__ import annotations

import asyncio
import time

import pytest
from redis.asyncio import Redis

from cachewright.errors import StoreRefused, StoreUnavailable
from cachewright.stores import redis_client
from cachewright.stores.protocols import Found
from cachewright.stores.redis_entries import open_cache_store
from cachewright.stores.redis_lookups import MOST_ROUND_TRIPS, MOST_TOGETHER
from tests.stores.conftest import Subject
from tests.support.redis_servers import run_redis
from tests.support.waiting import PATIENCE_SECONDS

BURST = 300


def digest(number: int) -> str:
    """Return one of many digests, spread over the hash tags."""
    return f"{number % 256:02x}" + f"{number:062x}"


async def test_a_burst_gets_each_its_own_answer(subject: Subject) -> None:
    """Every second entry is there, and each of a burst of look-ups finds its own or nothing."""
    await subject.store.publish_record(subject.record(1))
    names = [subject.name(digest(number)) for number in range(BURST)]
    marks = (await subject.store.find(names[0])).marks
    assert marks is not None
    for number in range(0, BURST, 2):
        assert await subject.store.write(names[number], b"%d" % number, 60, marks)
    found = await asyncio.gather(*(subject.store.find(name) for name in names))
    wanted = [b"%d" % number if number % 2 == 0 else None for number in range(BURST)]
    assert [answer.value for answer in found] == wanted
    assert {answer.marks for answer in found} == {marks}


async def test_a_burst_needs_few_connections() -> None:
    """What waits goes together instead of opening a connection each."""
    with run_redis("valkey") as server:
        store = open_cache_store(server.url("gateway"))
        name = Subject(store, server.cache_id).name
        await asyncio.gather(*(store.find(name(digest(number))) for number in range(BURST)))
        assert server.connections() <= MOST_ROUND_TRIPS
        await store.aclose()


async def test_a_spoilt_entry_spoils_no_other() -> None:
    """A key of another kind in the middle of a burst is refused alone."""
    with run_redis("valkey") as server:
        store = open_cache_store(server.url("gateway"))
        name = Subject(store, server.cache_id).name
        async with Redis.from_url(server.url("root")) as root:
            await root.lpush(name(digest(MOST_TOGETHER)).key, "x")
        burst = (store.find(name(digest(number))) for number in range(2 * MOST_TOGETHER))
        answers = await asyncio.gather(*burst, return_exceptions=True)
        failed = [number for number, answer in enumerate(answers) if isinstance(answer, StoreRefused)]
        assert failed == [MOST_TOGETHER]
        assert answers.count(Found(None, None)) == 2 * MOST_TOGETHER - 1
        await store.aclose()


async def test_a_frozen_server_fails_all_who_wait_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody in the line waits longer than two calls may take, and the next look-up works again."""
    with run_redis("valkey") as server:
        store = open_cache_store(server.url("gateway"))
        name = Subject(store, server.cache_id).name
        await store.find(name())
        server.freeze()
        monkeypatch.setattr(redis_client, "COMMAND_TIMEOUT_SECONDS", 0.2)
        began = time.monotonic()
        burst = (store.find(name(digest(number))) for number in range(MOST_TOGETHER))
        answers = await asyncio.gather(*burst, return_exceptions=True)
        assert all(isinstance(answer, StoreUnavailable) for answer in answers)
        assert time.monotonic() - began < 5  # one after the other they would take longer
        monkeypatch.setattr(redis_client, "COMMAND_TIMEOUT_SECONDS", PATIENCE_SECONDS)
        server.thaw()
        assert await store.find(name()) == Found(None, None)
        await store.aclose()


async def test_who_gives_up_disturbs_nobody() -> None:
    """Cancelled look-ups, first in the line or waiting in it, leave the others their answers."""
    with run_redis("valkey") as server:
        store = open_cache_store(server.url("gateway"))
        name = Subject(store, server.cache_id).name
        await store.find(name())
        tasks = [asyncio.create_task(store.find(name(digest(number)))) for number in range(40)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[::2])
        assert answers[1::2] == [Found(None, None)] * 20
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        await store.aclose()
