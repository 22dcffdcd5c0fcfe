"""L0 through HTTP: what two gateways serve from their memory, and when they stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cachewright.stores.redis_entries import open_cache_store
from e2e.engine import Engine
from tests.gateway.harness import Answered, Gateway, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

DONE_SECONDS = 2.0
"""How long after a change in the store the operator reports it as done."""


@pytest.fixture
async def pair(
    tmp_path: Path, own_redis: RedisServer, engine: Engine
) -> AsyncIterator[tuple[Gateway, Gateway]]:
    """Two gateways over one store that the test may break."""
    made = [Gateway(tmp_path / name, own_redis, engine.url) for name in ("a", "b")]
    async with running(made[0]) as first, running(made[1]) as second:
        yield first, second
        own_redis.thaw()


async def local_hits(gateway: Gateway) -> float:
    """Count the hits from memory."""
    return await gateway.metric("cachewright_requests_total", layer="local", outcome="hit")


def entry_id(answer: Answered) -> str:
    """Return the id of the entry that an answer comes from."""
    return answer.headers["Cache-Status"].partition("key=")[2]


async def warmed(*gateways: Gateway) -> None:
    """Ask until each gateway answers from its memory."""
    for gateway in gateways:
        before = await local_hits(gateway)

        async def is_local(gateway: Gateway = gateway, before: float = before) -> bool:
            await gateway.call()
            return await local_hits(gateway) > before

        await until(is_local)


async def test_a_repeated_hit_needs_no_store(pair: tuple[Gateway, Gateway]) -> None:
    """It is a hit like any other to the client, and is counted apart."""
    first, _ = pair
    await first.call()
    await warmed(first)
    before = await local_hits(first)
    answers = [await first.call() for _ in range(20)]
    assert all(answer.is_hit and "ttl=" in answer.cache for answer in answers)
    assert await local_hits(first) >= before + 19  # one of them may find its marks too old


async def test_tenants_share_no_copies(pair: tuple[Gateway, Gateway]) -> None:
    """What is in memory for one is a miss for the other."""
    first, _ = pair
    await first.call()
    await warmed(first)
    assert not (await first.call(headers={"X-Tenant-Id": "other"})).is_hit


async def test_a_switch_reaches_all_copies_before_it_is_done(
    pair: tuple[Gateway, Gateway], own_redis: RedisServer, engine: Engine
) -> None:
    """Two seconds after the store was told, no gateway serves anything older from its memory."""
    for gateway in pair:
        await gateway.call()
    await warmed(*pair)
    old = entry_id(await pair[0].call())
    store = open_cache_store(own_redis.url("operator"))
    await store.publish_record(pair[0].rotate())
    done_at = time.monotonic() + DONE_SECONDS
    await store.aclose()
    while time.monotonic() < done_at:
        await asyncio.gather(*(gateway.call() for gateway in pair))
    for gateway in pair:
        answer = await gateway.call()
        assert answer.is_hit
        assert entry_id(answer) != old
    assert engine.calls.total() > 1


async def test_a_fresh_answer_replaces_copies_elsewhere(pair: tuple[Gateway, Gateway]) -> None:
    """A client that asks one gateway for a fresh answer changes what the other serves."""
    first, second = pair
    await first.call()
    await warmed(first, second)
    old = (await second.call()).body
    fresh = await first.call(headers={"X-Tenant-Id": "acme", "Cache-Control": "no-cache"})
    assert fresh.body != old

    async def is_fresh() -> bool:
        answer = await second.call()
        return answer.is_hit and int(answer.headers["Age"]) == 0 and answer.body == fresh.body

    await until(is_fresh)


async def test_a_frozen_store_is_noticed_within_a_second(
    pair: tuple[Gateway, Gateway], own_redis: RedisServer
) -> None:
    """Copies are served on while the store was asked of late, and not a second longer."""
    first, _ = pair
    first.enact(exact={"budget_seconds": 0.1})
    await first.call()
    await warmed(first)
    own_redis.freeze()
    frozen_at = time.monotonic()
    while (answer := await first.call()).is_hit:
        assert time.monotonic() - frozen_at < 1.5
    assert answer.reason == "store"


async def test_copies_can_be_switched_off(pair: tuple[Gateway, Gateway]) -> None:
    """With none allowed, every hit asks the store."""
    first, _ = pair
    await first.call()
    await warmed(first)
    first.enact(exact={"local_max_entries": 0})

    async def is_off() -> bool:
        before = await local_hits(first)
        answers = [await first.call() for _ in range(3)]
        return all(answer.is_hit for answer in answers) and await local_hits(first) == before

    await until(is_off)
