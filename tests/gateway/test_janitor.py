"""The janitor in running gateways: what is given up goes, and the admin port and the metrics tell of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from cachewright.keys.record import KeyspaceState, PastKeyspace, Record
from cachewright.policy.document import QdrantPolicy
from cachewright.stores.redis_record import open_record_store
from cachewright.stores.vector_opening import open_vector_store
from e2e.engine import Engine
from tests.gateway.harness import CHAT, QUESTION, Gateway, root_client, running
from tests.gateway.semantic import SemanticGateway, embedding_server
from tests.support.qdrant_servers import QdrantServer
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

NOW = "2026-11-30T00:00:00Z"


async def published(gateway: Gateway, record: Record) -> Record:
    """Do as the operator does after it has changed the record."""
    store = open_record_store(gateway.redis.url("operator"))
    await store.publish_record(record)
    await store.aclose()
    return record


async def filled(gateway: Gateway, count: int) -> None:
    """Have answers stored."""
    for number in range(count):
        messages = [{"role": "user", "content": f"Question {number}?"}]
        await gateway.call(body={**QUESTION, "messages": messages})


def given_up(record: Record, state: KeyspaceState) -> Record:
    """Return the record after a rotation that leaves the old keyspace in a state."""
    old = record.layers["Exact"]
    past = PastKeyspace("Exact", old.keyspace, old.binding, state, NOW, NOW)
    return replace(record.with_layer("Exact", "e" * 16, old.binding, NOW), past=(past,))


async def keys(gateway: Gateway) -> list[str]:
    """List the entries in the store."""
    async with root_client(gateway.redis) as client:
        found = [str(key) for key in await client.keys("{cw1:*-[0-9]*")]
    return sorted(key for key in found if ":janitor" not in key)


async def told(gateway: Gateway) -> dict[str, Any]:
    """Return what the admin port tells of the store."""
    store: dict[str, Any] = (await gateway.admin("/stats")).json()["store"]
    return store


async def test_a_keyspace_that_is_given_up_is_emptied(gateway: Gateway) -> None:
    """Its entries go, the newer ones stay, and the operator finds the report."""
    await filled(gateway, 5)
    old = gateway.record.layers["Exact"].keyspace
    gateway.record = await published(gateway, given_up(gateway.record, KeyspaceState.DELETING))
    await filled(gateway, 3)
    await gateway.process.janitor.take_turn()
    left = await keys(gateway)
    assert len(left) == 3
    assert not any(str(old) in key for key in left)
    operator = open_record_store(gateway.redis.url("operator"))
    report = (await operator.read_reclaims(gateway.redis.cache_id, [old]))[old]
    await operator.aclose()
    assert (report.state, report.removed) == ("done", 5)
    assert await gateway.metric("cachewright_removed_total", by="keyspace") == 5
    assert await gateway.metric("cachewright_reclaimed_keyspaces_total", outcome="done") == 1


async def test_a_retained_keyspace_stays(gateway: Gateway) -> None:
    """A rollback needs its entries; the sweep counts them under their state."""
    await filled(gateway, 4)
    gateway.record = await published(gateway, given_up(gateway.record, KeyspaceState.RETAINED))
    await filled(gateway, 2)
    await gateway.process.janitor.take_turn()
    assert len(await keys(gateway)) == 6
    assert await gateway.metric("cachewright_entries", layer="Exact", state="retained") == 4
    assert await gateway.metric("cachewright_entries", layer="Exact", state="active") == 2


async def test_the_admin_port_tells_of_keyspaces(gateway: Gateway) -> None:
    """Every one that the record names, with entries once a sweep has counted them."""
    await filled(gateway, 3)
    active = str(gateway.record.layers["Exact"].keyspace)
    before = {"layer": "Exact", "keyspace": active, "state": "active", "entries": None}
    assert await told(gateway) == {"keyspaces": [before], "lastSweep": None}
    gateway.record = await published(gateway, given_up(gateway.record, KeyspaceState.DELETING))
    await filled(gateway, 1)
    await gateway.process.janitor.take_turn()
    after = await told(gateway)
    assert after["lastSweep"]["removed"] == 0
    assert after["keyspaces"] == [
        {
            "layer": "Exact",
            "keyspace": str(gateway.record.layers["Exact"].keyspace),
            "state": "active",
            "entries": 1,
        },
        {
            "layer": "Exact",
            "keyspace": active,
            "state": "deleting",
            "entries": 0,
            "until": NOW,
            "reclaim": {"state": "done", "removed": 3, "problem": None},
        },
    ]


async def test_of_two_gateways_one_cleans_and_both_tell(
    tmp_path: Path, redis: RedisServer, engine: Engine
) -> None:
    """The counts are those of the whole store, whichever of them counted."""
    pair = [Gateway(tmp_path / name, redis, engine.url) for name in ("one", "two")]
    async with running(pair[0]) as one, running(pair[1]) as two:
        await filled(one, 6)
        record = await published(one, given_up(one.record, KeyspaceState.DELETING))
        await filled(one, 2)
        await filled(two, 2)
        assert one.process._assembly.known_record(record.cache_id).best == record
        await asyncio.gather(one.process.janitor.take_turn(), two.process.janitor.take_turn())
        for gateway in (one, two):
            await gateway.process.janitor.take_turn()
        removed = [await gateway.metric("cachewright_removed_total", by="keyspace") for gateway in (one, two)]
        assert sorted(removed) == [0, 6]
        assert (await told(one)) == (await told(two))


async def test_a_store_that_is_away_stops_nothing(
    tmp_path: Path, own_redis: RedisServer, engine: Engine
) -> None:
    """The duty goes on when the store is back, without a restart of the gateway."""
    async with running(Gateway(tmp_path, own_redis, engine.url)) as gateway:
        duty = asyncio.create_task(gateway.process.janitor.run(turn_seconds=0.02))
        own_redis.kill()
        for _ in range(3):
            assert (await gateway.call()).status == 200
        own_redis.restart()

        async def is_swept() -> bool:
            return gateway.process.janitor.news.sweep is not None

        await until(is_swept)
        duty.cancel()
        assert engine.calls[CHAT] >= 1


async def test_vectors_of_a_given_up_keyspace_go(
    tmp_path: Path, redis: RedisServer, engine: Engine, qdrant: QdrantServer
) -> None:
    """The collection is dropped, its tickets in Redis go, and the sweep drops what nobody needs."""
    async with embedding_server() as embeddings:
        mounts = SemanticGateway(tmp_path, redis, engine.url, embeddings)
        mounts.mount("qdrant/api-key", qdrant.api_key)
        semantic = mounts.policy.semantic
        assert semantic is not None
        mounts.enact(
            qdrant=QdrantPolicy(url=qdrant.url, sends_key=True),
            semantic=semantic.model_copy(update={"store": "Qdrant"}),
        )
        async with running(mounts) as gateway:
            await gateway.call()
            await mounts.ask("How do I reset my password?")
            await mounts.kept()
            old = mounts.record.layers["Semantic"]
            cache_id = mounts.record.cache_id
            vectors = open_vector_store(qdrant.url, api_key=qdrant.api_key)
            assert await vectors.list_spaces(cache_id) == [old.keyspace]
            past = PastKeyspace("Semantic", old.keyspace, old.binding, KeyspaceState.DELETING, NOW, NOW)
            record = replace(mounts.record.with_layer("Semantic", "6" * 16, old.binding, NOW), past=(past,))
            await published(gateway, record)
            await mounts.ask("How do I reset my password?")  # learns of the newer record
            await gateway.process.janitor.take_turn()
            (report,) = gateway.process.janitor.news.reclaims.values()
            assert (report.state, report.problem) == ("done", "")
            assert report.removed >= 1
            assert old.keyspace not in await vectors.list_spaces(cache_id)
            for keyspace in await vectors.list_spaces(cache_id):
                await vectors.drop(cache_id, keyspace)
            await vectors.aclose()
