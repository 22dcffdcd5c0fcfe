"""The fence, seen from a client: what is read-only is served and not stored, and nobody waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cachewright.keys.record import KeyspaceState, Record
from cachewright.stores.redis_record import open_record_store
from e2e.engine import Engine
from tests.gateway.harness import CHAT, TENANT, Gateway, Response, ScriptedUpstream, chat_answer, running


def fenced(record: Record, state: KeyspaceState = KeyspaceState.ACTIVE) -> Record:
    """Return the next record, bound to a workload that has to be watched."""
    layer = replace(record.layers["Exact"], state=state, model_version="1", workload="w1")
    return replace(record, revision=record.revision + 1, layers={"Exact": layer}, fenced=True)


async def publish(gateway: Gateway, record: Record, beat_seconds: float = 0) -> None:
    """Do as the operator does; 0: its heart does not beat."""
    store = open_record_store(gateway.redis.url("operator"))
    await store.publish_record(record)
    assert not beat_seconds or await store.beat(record.cache_id, record.revision, beat_seconds)
    await store.aclose()


async def test_a_readonly_keyspace_serves_what_it_has(gateway: Gateway, engine: Engine) -> None:
    """Old answers hit, new ones are relayed and counted as not stored; the gateway stays ready."""
    await gateway.call()
    await publish(gateway, fenced(gateway.record, KeyspaceState.READONLY), 60)
    assert (await gateway.call()).is_hit
    for _ in range(2):
        answered = await gateway.call(seed=7)
        assert answered.status == 200
        assert answered.cache == "cachewright; fwd=miss"
    assert engine.calls[CHAT] == 3
    assert await gateway.metric("cachewright_not_stored_total", reason="readonly") == 2
    assert (await gateway.management("/readyz")).status == 200


async def test_writes_resume_by_themselves(gateway: Gateway) -> None:
    """With the very record that makes the keyspace active again."""
    record = fenced(gateway.record, KeyspaceState.READONLY)
    await publish(gateway, record, 60)
    await gateway.call()
    assert not (await gateway.call()).is_hit
    await publish(gateway, fenced(record), 60)
    await gateway.call()
    assert (await gateway.call()).is_hit


async def test_without_a_heartbeat_nothing_is_stored(gateway: Gateway) -> None:
    """The operator is gone: nobody watches the pods, so what is there is served and nothing is added."""
    await publish(gateway, fenced(gateway.record), 60)
    await gateway.call()
    await publish(gateway, fenced(fenced(gateway.record)), 0.001)
    assert (await gateway.call()).is_hit
    for _ in range(2):
        assert (await gateway.call(seed=7)).cache == "cachewright; fwd=miss"
    assert await gateway.metric("cachewright_not_stored_total", reason="readonly") == 2


async def test_an_answer_from_before_the_fence_is_not_stored(mounts: Gateway) -> None:
    """It was asked for while all pods were alike, but who knows which pod answered."""

    async def answer_late(_request: object) -> Response:
        if len(upstream.requests) == 1:
            await publish(mounts, fenced(mounts.record, KeyspaceState.READONLY), 60)
        return Response(body=chat_answer())

    async with ScriptedUpstream(answer_late) as upstream:
        mounts.enact(upstream={"url": f"{upstream.url}/v1"})
        async with running(mounts):
            assert (await mounts.call()).status == 200
            assert not (await mounts.call()).is_hit
            assert await mounts.metric("cachewright_not_stored_total", reason="changed") == 1
            assert await mounts.metric("cachewright_not_stored_total", reason="readonly") == 1


async def test_nobody_waits_for_what_is_not_stored(mounts: Gateway) -> None:
    """Between two gateways no lease is taken: each asks the upstream, at the same time."""
    both = asyncio.Event()

    async def answer_together(_request: object) -> Response:
        if len(upstream.requests) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 5)
        return Response(body=chat_answer())

    async with ScriptedUpstream(answer_together) as upstream:
        mounts.enact(upstream={"url": f"{upstream.url}/v1"}, coalesce_timeout_seconds=30)
        other = Gateway(mounts.folder / "other", mounts.redis, upstream.url)
        other.enact(coalesce_timeout_seconds=30)
        async with running(mounts), running(other):
            await publish(mounts, fenced(mounts.record, KeyspaceState.READONLY), 60)
            answered = await asyncio.gather(mounts.call(headers=TENANT), other.call(headers=TENANT))
    assert [each.status for each in answered] == [200, 200]
