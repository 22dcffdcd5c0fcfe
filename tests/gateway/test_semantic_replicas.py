"""Similar answers that two replicas share in one database: what was retracted or switched away from is gone.

With a real PostgreSQL for vectors and answers, and a real store for the record, counters and tickets.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cachewright.layers.retraction import SETTLE_SECONDS
from cachewright.policy.document import PostgresPolicy
from cachewright.stores.redis_entries import open_cache_store
from e2e.engine import Engine, version_in
from tests.embedders.server import EmbeddingServer
from tests.gateway.harness import TENANT, Answered, Response, ScriptedUpstream, chat_answer, running
from tests.gateway.semantic import SemanticGateway, alike, embedding_server
from tests.support.black_hole import Wire, wire_to
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

QUOTING = {**TENANT, "Cachewright-Documents": "manual-7, faq"}
QUESTION = "How do I reset the password of my account?"
SIMILAR = tuple(
    f"How {word} I reset the password of my account?" for word in ("can", "could", "should", "may")
)


@pytest.fixture
async def embeddings() -> AsyncIterator[EmbeddingServer]:
    """An embedding server to which these questions are one."""
    async with embedding_server() as server:
        server.vector = alike(QUESTION, *SIMILAR)
        yield server


class Replica(SemanticGateway):
    """A gateway whose route has its question marked, as it must be where there are documents."""

    async def ask(self, text: str, system: str = "Be brief.", **how: Any) -> Answered:
        """Ask one question."""
        return await super().ask(f"Answer <q>{text}</q>", system, **how)


def replica(
    folder: Path, redis: RedisServer, upstream_url: str, embeddings: EmbeddingServer, dsn: str
) -> Replica:
    """Mount a gateway that keeps its vectors in PostgreSQL."""
    gateway = Replica(folder, redis, upstream_url, embeddings)
    route = gateway.policy.routes[0].model_copy(update={"question_between": ("<q>", "</q>")})
    gateway.enact(routes=(route,), semantic={"store": "Postgres"}, postgres=PostgresPolicy())
    gateway.mount("postgres/dsn", dsn)
    return gateway


@pytest.fixture
async def pair(
    tmp_path: Path, redis: RedisServer, engine: Engine, embeddings: EmbeddingServer, dsn: str
) -> AsyncIterator[tuple[SemanticGateway, SemanticGateway]]:
    """Two replicas."""
    first = replica(tmp_path / "first", redis, engine.url, embeddings, dsn)
    second = replica(tmp_path / "second", redis, engine.url, embeddings, dsn)
    async with running(first), running(second):
        yield first, second


def version_of(answer: Answered) -> str:
    """Return which version of the engine gave it."""
    return version_in(answer.json()["choices"][0]["message"]["content"])


async def test_a_retracted_document_is_in_no_similar_answer_of_any_replica(
    pair: tuple[SemanticGateway, SemanticGateway], engine: Engine
) -> None:
    """Once it is done: neither from the database nor from what hits had filled; others are served on."""
    first, second = pair
    for number, headers in enumerate((QUOTING, TENANT), 1):
        assert not (await first.ask(QUESTION, headers=headers)).is_hit
        await first.kept(number)
        hit = await second.ask(SIMILAR[0], headers=headers)
        assert "detail=semantic" in hit.cache
    engine.version = "2"
    done = await first.admin("/retract", {"document": "manual-7", "dryRun": False})
    assert (done.status, done.json()["done"]) == (200, True)
    for text in (SIMILAR[0], SIMILAR[1], QUESTION, *SIMILAR[2:]):
        for gateway in pair:
            assert version_of(await gateway.ask(text, headers=QUOTING)) == "2"
    for text, gateway in zip(SIMILAR[1:3], pair, strict=True):
        kept = await gateway.ask(text)
        assert "detail=semantic" in kept.cache
        assert version_of(kept) == "1"


async def switch(gateway: SemanticGateway, redis: RedisServer) -> None:
    """Give both layers new keyspaces, in the store alone."""
    record = gateway.rotate().with_layer("Semantic", "6" * 16, "semantic binding", "2026-11-30T01:00:00Z")
    store = open_cache_store(redis.url("operator"))
    await store.publish_record(record)
    await store.aclose()


def behind(wire: Wire, gateway: SemanticGateway) -> SemanticGateway:
    """Mount the URL of Redis so that it leads through the wire."""
    gateway.mount("redis/url", f"redis://gateway:gateway@127.0.0.1:{wire.port}/0")
    gateway.enact(exact={"budget_seconds": 0.25})
    return gateway


async def uses_its_store(gateway: SemanticGateway) -> None:
    """Wait until the breaker has closed again."""

    async def is_used() -> bool:
        return (await gateway.ask("Who are you?")).reason != "store"

    await until(is_used)


async def test_a_gateway_cut_off_serves_no_similar_answer_of_before_the_switch(
    tmp_path: Path, redis: RedisServer, engine: Engine, embeddings: EmbeddingServer, dsn: str
) -> None:
    """Although the database with the vectors can be reached all the time, and Redis again afterwards."""
    async with wire_to(redis.port) as wire:
        gateway = behind(wire, replica(tmp_path, redis, engine.url, embeddings, dsn))
        async with running(gateway):
            await gateway.ask(QUESTION)
            await gateway.kept()
            assert "detail=semantic" in (await gateway.ask(SIMILAR[0])).cache
            wire.cut()
            engine.version = "2"
            await switch(gateway, redis)
            done = time.monotonic() + SETTLE_SECONDS

            async def is_done() -> bool:
                return time.monotonic() >= done

            await until(is_done)
            for text in SIMILAR[:3]:
                during = await gateway.ask(text)
                assert (during.reason, version_of(during)) == ("store", "2")
            wire.mend()
            await uses_its_store(gateway)
            for text in (QUESTION, *SIMILAR):
                assert version_of(await gateway.ask(text)) == "2"


async def test_a_similar_answer_that_arrives_late_is_dropped(
    tmp_path: Path, redis: RedisServer, embeddings: EmbeddingServer, dsn: str
) -> None:
    """It was given before the switch, and what makes it count comes to Redis after it."""
    cut = asyncio.Event()

    async def answer(_request: object) -> Response:
        if not cut.is_set():
            wire.cut()
            cut.set()
            return Response(body=chat_answer("from before the switch"))
        return Response(body=chat_answer("from after the switch"))

    async with wire_to(redis.port) as wire, ScriptedUpstream(answer) as upstream:
        gateway = behind(wire, replica(tmp_path, redis, upstream.url, embeddings, dsn))
        async with running(gateway):
            assert (await gateway.ask(QUESTION)).status == 200
            await switch(gateway, redis)
            wire.mend()
            await uses_its_store(gateway)
            for text in (QUESTION, *SIMILAR):
                answered = await gateway.ask(text)
                assert b"from after the switch" in answered.body
