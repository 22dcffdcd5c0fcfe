"""A gateway cut off from its store by a black hole: it serves nothing old and stores nothing old."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from cachewright.keys.digest import tenant_tag
from cachewright.keys.generations import tenant_counter
from cachewright.layers.retraction import SETTLE_SECONDS
from cachewright.stores.redis_entries import open_cache_store
from e2e.engine import Engine, version_in
from tests.gateway.harness import CHAT, Gateway, Response, ScriptedUpstream, chat_answer, root_client, running
from tests.support.black_hole import Wire, wire_to
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

KEY = bytes.fromhex("ab" * 32)


def behind(wire: Wire, gateway: Gateway) -> Gateway:
    """Mount the store's URL so that it leads through the wire."""
    gateway.mount("redis/url", f"redis://gateway:gateway@127.0.0.1:{wire.port}/0")
    gateway.enact(exact={"budget_seconds": 0.25})
    return gateway


async def warm(gateway: Gateway) -> None:
    """Ask until the answer comes from the gateway's own memory."""

    async def is_local() -> bool:
        await gateway.call()
        return await gateway.metric("cachewright_requests_total", layer="local", outcome="hit") >= 1

    await until(is_local)


async def uses_its_store(gateway: Gateway) -> None:
    """Wait until the breaker has closed again."""

    async def is_used() -> bool:
        return (await gateway.call()).reason != "store"

    await until(is_used)


async def test_nothing_old_is_served_after_a_switch(
    tmp_path: Path, redis: RedisServer, engine: Engine
) -> None:
    """Not while the store is out of reach, once the switch counts as done, nor after it came back."""
    async with wire_to(redis.port) as wire:
        gateway = behind(wire, Gateway(tmp_path, redis, engine.url))
        async with running(gateway):
            await warm(gateway)
            wire.cut()
            engine.version = "2"
            store = open_cache_store(redis.url("operator"))
            await store.publish_record(gateway.rotate())
            await store.aclose()
            done = time.monotonic() + SETTLE_SECONDS

            async def is_done() -> bool:
                return time.monotonic() >= done

            await until(is_done)
            started = time.monotonic()
            during = [await gateway.call() for _ in range(5)]
            assert [each.reason for each in during] == ["store"] * 5
            assert time.monotonic() - started < 2  # the budget at most once, and nothing after it
            wire.mend()
            await uses_its_store(gateway)
            after = await gateway.call()
            assert after.is_hit
            assert version_in(after.json()["choices"][0]["message"]["content"]) == "2"


async def test_nothing_old_is_served_after_a_retraction(
    tmp_path: Path, redis: RedisServer, engine: Engine
) -> None:
    """The same for a counter that was raised while the gateway could not know."""
    async with wire_to(redis.port) as wire:
        gateway = behind(wire, Gateway(tmp_path, redis, engine.url))
        async with running(gateway):
            await warm(gateway)
            calls = engine.calls[CHAT]
            wire.cut()
            store = open_cache_store(redis.url("gateway"))
            await store.raise_generations(redis.cache_id, [tenant_counter(tenant_tag(KEY, b"acme"))])
            await store.aclose()
            wire.mend()
            await uses_its_store(gateway)

            async def is_hit() -> bool:
                return (await gateway.call()).is_hit

            await until(is_hit)
            assert engine.calls[CHAT] > calls


async def test_a_write_that_arrives_late_is_dropped(tmp_path: Path, redis: RedisServer) -> None:
    """It was sent before the switch, hung in the wire, and comes to the store after it."""
    cut = asyncio.Event()

    async def answer(_request: object) -> Response:
        wire.cut()
        cut.set()
        return Response(body=chat_answer("from before the switch"))

    async with wire_to(redis.port) as wire, ScriptedUpstream(answer) as upstream:
        gateway = behind(wire, Gateway(tmp_path, redis, upstream.url))
        async with running(gateway), root_client(redis) as root:
            assert (await gateway.call()).status == 200
            assert cut.is_set()

            async def was_sent() -> bool:
                return wire.held_bytes > 0

            await until(was_sent)
            store = open_cache_store(redis.url("operator"))
            await store.publish_record(gateway.rotate())
            await store.aclose()
            wire.mend()

            async def has_arrived() -> bool:
                return await gateway.metric("cachewright_not_stored_total", reason="changed") >= 1

            await until(has_arrived)
            entries = [key async for key in root.scan_iter(match="*") if key.count(b":") > 3]
            assert entries == []


async def test_a_late_write_of_a_gateway_that_gave_up_is_dropped(tmp_path: Path, redis: RedisServer) -> None:
    """The gateway has long closed the connection when its command reaches the store."""

    async def answer(_request: object) -> Response:
        if len(upstream.requests) == 1:
            wire.cut()
        return Response(body=chat_answer("from before the switch"))

    async with wire_to(redis.port) as wire, ScriptedUpstream(answer) as upstream:
        gateway = behind(wire, Gateway(tmp_path, redis, upstream.url))
        async with running(gateway), root_client(redis) as root:
            assert (await gateway.call()).status == 200

            async def gave_up() -> bool:
                return await gateway.metric("cachewright_not_stored_total", reason="store") >= 1

            await until(gave_up)
            store = open_cache_store(redis.url("operator"))
            await store.publish_record(gateway.rotate())
            await store.aclose()
            wire.mend()
            await uses_its_store(gateway)
            old = [key async for key in root.scan_iter(match=f"*:{'1' * 16}-1:*")]
            assert old == []
