"""A gateway tries its layers, and says in the store what came of it; the operator's side is a unit test."""

from __future__ import annotations

from pathlib import Path

from cachewright.gateway.probing import ProbeDuty
from cachewright.stores.probes import ProbeReport, ProbeState
from cachewright.stores.redis_record import open_record_store
from e2e.engine import Engine
from tests.gateway.harness import running
from tests.gateway.semantic import SemanticGateway, embedding_server
from tests.support.redis_servers import RedisServer
from tests.support.vectors import random_vector

LAYERS = ("Exact", "Semantic")


async def reports(redis: RedisServer) -> dict[str, ProbeReport]:
    """Read them with the operator's rights."""
    store = open_record_store(redis.url("operator"))
    try:
        return await store.read_probes(redis.cache_id, LAYERS)
    finally:
        await store.aclose()


async def tried_at_once(duty: ProbeDuty, redis: RedisServer) -> bool:
    """Tell whether a duty that just tried its layers does so again when asked, and when a store was away."""
    store = open_record_store(redis.url("operator"))
    try:
        before = (await reports(redis))["Exact"]
        await duty.take_turn()
        not_due = (await reports(redis))["Exact"] == before
        await store.request_probes(redis.cache_id, "pods of now")
        await duty.take_turn()
        asked = (await reports(redis))["Exact"]
        await duty.take_turn()
        once = (await reports(redis))["Exact"] == asked
        duty.connections_changed()
        await duty.take_turn()
        again = (await reports(redis))["Exact"].at > asked.at
        return not_due and asked.request == "pods of now" and once and again
    finally:
        await store.aclose()


async def test_layers_are_tried_and_what_is_wrong_is_told(
    tmp_path: Path, redis: RedisServer, engine: Engine
) -> None:
    """All well; the embedder down; another one in its place; and back: nothing of a try is left behind."""
    async with embedding_server() as embeddings:
        mounts = SemanticGateway(tmp_path, redis, engine.url, embeddings)
        async with running(mounts):
            duty = ProbeDuty(mounts.process._parts_and_record)
            usual = embeddings.vector
            await duty.take_turn()
            assert {layer: each.state for layer, each in (await reports(redis)).items()} == {
                "Exact": ProbeState.WELL,
                "Semantic": ProbeState.WELL,
            }

            async def told(duty: ProbeDuty = duty) -> ProbeReport:
                duty._next = 0.0
                await duty.take_turn()
                return (await reports(redis))["Semantic"]

            embeddings.status = 500
            assert (await told()).state is ProbeState.EMBEDDER
            embeddings.status = 200
            embeddings.vector = lambda _value, dimensions: list(random_vector("another model", dimensions))
            mismatch = await told()
            assert mismatch.state is ProbeState.MISMATCH
            assert "no longer gives the vectors" in mismatch.problem

            assert await tried_at_once(duty, redis), "asked, or a connection changed"
            other = ProbeDuty(mounts.process._parts_and_record)
            embeddings.vector = usual
            assert (await told(other)).state is ProbeState.MISMATCH, "the one in trouble is heard"
            assert (await told()).state is ProbeState.WELL
            assert (await reports(redis))["Exact"].state is ProbeState.WELL
            assert await mounts.metric("cachewright_semantic_stored_total") == 0
