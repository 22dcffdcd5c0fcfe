"""Trouble with the store: no request fails, none is slower than the budget, and all is well afterwards."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cachewright.gateway.process import STORE_GRACE_SECONDS
from cachewright.keys.entry_key import probes_key
from cachewright.stores.redis_client import MAX_CONNECTIONS
from e2e.engine import Engine
from tests.gateway.harness import Gateway, root_client, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

BUDGET_SECONDS = 0.1


@pytest.fixture
async def fragile(tmp_path: Path, own_redis: RedisServer, engine: Engine) -> AsyncIterator[Gateway]:
    """A gateway whose store the test may break."""
    made = Gateway(tmp_path, own_redis, engine.url)
    # Without copies in the process, so that each request needs the store.
    made.enact(exact={"budget_seconds": BUDGET_SECONDS, "local_max_entries": 0})
    async with running(made):
        yield made
        own_redis.thaw()


async def timed(gateway: Gateway) -> tuple[float, str]:
    """Return how long a request took, in seconds, and its Cache-Status; it must succeed."""
    started = time.perf_counter()
    answer = await gateway.call()
    assert answer.status == 200
    return time.perf_counter() - started, answer.cache


async def hits_again(gateway: Gateway) -> None:
    """Wait until the cache is back in use."""

    async def is_hit() -> bool:
        return (await gateway.call()).is_hit

    await until(is_hit)


async def test_a_frozen_store_costs_one_budget_and_then_nothing(
    fragile: Gateway, own_redis: RedisServer
) -> None:
    """The first request waits for the budget, the others do not wait at all, and connections stay flat."""
    await hits_again(fragile)
    before = own_redis.connections()
    own_redis.freeze()
    first, status = await timed(fragile)
    assert status == "cachewright; fwd=bypass; detail=store"
    assert BUDGET_SECONDS <= first < BUDGET_SECONDS + 1.5
    later = [await timed(fragile) for _ in range(100)]
    assert {status for _, status in later} == {"cachewright; fwd=bypass; detail=store"}
    assert statistics.median(seconds for seconds, _ in later) < BUDGET_SECONDS / 2
    assert own_redis.connections() <= before + 2
    assert await fragile.metric("cachewright_breaker_open", store="redis") == 1
    own_redis.thaw()
    await hits_again(fragile)
    assert await fragile.metric("cachewright_breaker_open", store="redis") == 0


async def test_layers_are_tried_as_soon_as_the_store_is_back(
    fragile: Gateway, own_redis: RedisServer
) -> None:
    """The next turn tries them, although they were well less than a minute ago."""
    await hits_again(fragile)
    await fragile.process.probing.take_turn()
    async with root_client(own_redis) as client:
        first = await client.hget(probes_key(own_redis.cache_id), "Exact")
        await fragile.process.probing.take_turn()
        assert await client.hget(probes_key(own_redis.cache_id), "Exact") == first
        own_redis.freeze()
        await timed(fragile)
        own_redis.thaw()
        await hits_again(fragile)
        await fragile.process.probing.take_turn()
        assert await client.hget(probes_key(own_redis.cache_id), "Exact") != first


async def test_many_at_once_on_a_frozen_store(fragile: Gateway, own_redis: RedisServer) -> None:
    """Concurrent requests all answer within the budget, on a bounded number of connections."""
    await hits_again(fragile)
    own_redis.freeze()
    took_seconds = []
    for _ in range(2):  # the second time the store is left alone already
        started = time.perf_counter()
        answers = await asyncio.gather(*(fragile.call(seed=number) for number in range(100)))
        assert all(answer.status == 200 for answer in answers)
        took_seconds.append(time.perf_counter() - started)
    assert took_seconds[0] < 5 + 5 * took_seconds[1]
    assert own_redis.connections() <= MAX_CONNECTIONS
    own_redis.thaw()
    await hits_again(fragile)


async def test_a_killed_store_loses_hits_and_nothing_else(fragile: Gateway, own_redis: RedisServer) -> None:
    """Requests are answered while it is away, and cached again once it is back, empty."""
    await hits_again(fragile)
    own_redis.kill()
    for _ in range(20):
        seconds, status = await timed(fragile)
        assert status == "cachewright; fwd=bypass; detail=store"
        assert seconds < BUDGET_SECONDS + 1.5
    own_redis.restart()
    await hits_again(fragile)


async def test_a_restart_between_two_requests_fails_neither(fragile: Gateway, own_redis: RedisServer) -> None:
    """Connections that died unnoticed are no error to a client."""
    await hits_again(fragile)
    own_redis.restart()
    assert (await fragile.call()).status == 200
    await hits_again(fragile)


async def test_it_starts_without_a_store(tmp_path: Path, own_redis: RedisServer, engine: Engine) -> None:
    """A gateway whose store is away answers, is ready after a while, and uses the store when it comes."""
    own_redis.kill()
    made = Gateway(tmp_path, own_redis, engine.url)
    async with running(made):
        assert (await made.call()).reason == "store"

        async def is_ready() -> bool:
            return (await made.management("/readyz")).status == 200

        await until(is_ready, seconds=STORE_GRACE_SECONDS + 5)
        assert (await made.call()).reason == "store"
        own_redis.restart()
        await hits_again(made)


async def test_a_full_store_is_still_read(fragile: Gateway, own_redis: RedisServer) -> None:
    """Out of memory, writes are lost and counted; what is there is served."""
    await hits_again(fragile)
    async with root_client(own_redis) as client:
        await client.config_set("maxmemory-policy", "noeviction")
        await client.config_set("maxmemory", 1)
        assert (await fragile.call(seed=1)).cache == "cachewright; fwd=miss"
        assert (await fragile.call(seed=1)).cache == "cachewright; fwd=miss"
        assert (await fragile.call()).is_hit

        async def is_counted() -> bool:
            return await fragile.metric("cachewright_not_stored_total", reason="store") == 2

        await until(is_counted)
        await client.config_set("maxmemory", 0)
    await fragile.call(seed=1)
    assert (await fragile.call(seed=1)).is_hit


async def test_a_damaged_entry_is_a_miss_and_is_replaced(fragile: Gateway, own_redis: RedisServer) -> None:
    """Bytes that are not ours are never sent to a client."""
    await hits_again(fragile)
    async with root_client(own_redis) as client:
        for key in await client.keys("*:11*-*"):
            await client.setrange(key, 40, "damage")
    assert (await fragile.call()).cache == "cachewright; fwd=miss"
    assert (await fragile.call()).is_hit


async def test_a_wrong_password_is_a_reason(tmp_path: Path, redis: RedisServer, engine: Engine) -> None:
    """A store that refuses us is left alone, and no secret is logged."""
    made = Gateway(tmp_path, redis, engine.url)
    made.mount("redis/url", redis.url("gateway").replace(":gateway@", ":hunter2@"))
    async with running(made):
        assert (await made.call()).reason == "store"
