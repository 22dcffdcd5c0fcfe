"""Similar questions over HTTP: what is answered by another question's answer, and what is said about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from e2e.engine import Engine
from tests.embedders.server import EmbeddingServer
from tests.gateway.harness import CHAT, TENANT, running
from tests.gateway.semantic import (
    OTHER,
    PARAPHRASE,
    QUESTION,
    SemanticGateway,
    embedding_server,
    one_direction,
)
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until


@pytest.fixture
async def embeddings() -> AsyncIterator[EmbeddingServer]:
    """An embedding server."""
    async with embedding_server() as server:
        yield server


@pytest.fixture
def semantic_mounts(
    tmp_path: Path, redis: RedisServer, engine: Engine, embeddings: EmbeddingServer
) -> SemanticGateway:
    """A gateway that is not started yet."""
    return SemanticGateway(tmp_path, redis, engine.url, embeddings)


@pytest.fixture
async def gateway(semantic_mounts: SemanticGateway) -> AsyncIterator[SemanticGateway]:
    """A running gateway with the semantic layer."""
    async with running(semantic_mounts):
        yield semantic_mounts


async def test_a_paraphrase_is_answered_from_the_cache(gateway: SemanticGateway, engine: Engine) -> None:
    """It says so, how similar the questions are where that may be told, and the next time it is exact."""
    first = await gateway.ask(QUESTION)
    assert first.cache == "cachewright; fwd=miss; detail=empty"
    await gateway.kept()
    hit = await gateway.ask(PARAPHRASE)
    assert hit.is_hit
    assert "detail=semantic" in hit.cache
    assert hit.headers["Cachewright-Similarity"] == "1.0000"
    assert hit.body == first.body
    assert engine.calls[CHAT] == 1

    async def is_exact() -> bool:
        again = await gateway.ask(PARAPHRASE)
        assert again.is_hit
        assert again.entry_id == hit.entry_id
        return "Cachewright-Similarity" not in again.headers

    await until(is_exact)
    assert await gateway.metric("cachewright_requests_total", layer="semantic", outcome="hit") >= 1


async def test_another_question_is_asked_upstream(gateway: SemanticGateway, engine: Engine) -> None:
    """The reason is given and counted."""
    await gateway.ask(QUESTION)
    await gateway.kept()
    miss = await gateway.ask(OTHER)
    assert miss.cache == "cachewright; fwd=miss; detail=below"
    assert engine.calls[CHAT] == 2
    assert await gateway.metric("cachewright_semantic_misses_total", reason="below") == 1


async def test_a_swapped_number_is_asked_upstream(gateway: SemanticGateway) -> None:
    """The guard refuses what the embedder finds equal, and is counted by what it found."""
    gateway.embeddings.vector = one_direction
    await gateway.ask("What does a plan with 2 GB of memory cost?")
    await gateway.kept()
    miss = await gateway.ask("What does a plan with 4 GB of memory cost?")
    assert miss.cache == "cachewright; fwd=miss; detail=guard"
    assert miss.headers["Cachewright-Guard"] == "numbers"
    assert miss.headers["Cachewright-Similarity"] == "1.0000"
    assert await gateway.metric("cachewright_guard_refusals_total", check="numbers") == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "parts"),
        (
            {
                "messages": [
                    {"role": "user", "content": "How are you?"},
                    {"role": "assistant", "content": "Fine."},
                    {"role": "user", "content": "What is new?"},
                ]
            },
            "turns",
        ),
        ({"messages": [{"role": "user", "content": "Wachtwoord opnieuw instellen alstublieft"}]}, "language"),
        (
            {"metadata": {"cachewright_documents": ["a"]}},
            "documents",
        ),
    ],
)
async def test_what_has_no_fuzzy_part_is_exact_only(
    gateway: SemanticGateway, changes: dict[str, Any], reason: str
) -> None:
    """Each with its reason; it is cached exactly all the same."""
    assert (await gateway.call(**changes)).cache == f"cachewright; fwd=miss; detail={reason}"
    assert (await gateway.call(**changes)).is_hit


async def test_clients_may_narrow(gateway: SemanticGateway, engine: Engine) -> None:
    """To their own words, or to more similar questions; what they say never widens."""
    gateway.embeddings.vector = one_direction
    await gateway.ask(QUESTION)
    await gateway.kept()
    for control in ({"Cachewright-Layers": "exact"}, {"Cachewright-Threshold": "much"}):
        narrowed = await gateway.ask(PARAPHRASE, headers={**TENANT, **control, "Cache-Control": "no-store"})
        assert not narrowed.is_hit
    narrowed = await gateway.ask(PARAPHRASE, headers={**TENANT, "Cachewright-Layers": "Exact"})
    assert narrowed.cache == "cachewright; fwd=miss; detail=narrowed"
    assert engine.calls[CHAT] == 4
    widened = "How may I reset the password of my account?"
    hit = await gateway.ask(widened, headers={**TENANT, "Cachewright-Threshold": "0.1"})
    assert hit.is_hit


async def test_a_copy_is_not_given_to_who_wants_its_own_words(gateway: SemanticGateway) -> None:
    """Also when it has become an exact entry."""
    await gateway.ask(QUESTION)
    await gateway.kept()
    assert (await gateway.ask(PARAPHRASE)).is_hit

    async def is_exact() -> bool:
        return "Cachewright-Similarity" not in (await gateway.ask(PARAPHRASE)).headers

    await until(is_exact)
    own = await gateway.ask(PARAPHRASE, headers={**TENANT, "Cachewright-Layers": "exact"})
    assert own.cache == "cachewright; fwd=request; detail=client"


async def test_shadow_serves_nothing_and_samples(semantic_mounts: SemanticGateway, engine: Engine) -> None:
    """What it would have served is counted."""
    semantic_mounts.enact(semantic={"mode": "Shadow"})
    async with running(semantic_mounts) as gateway:
        assert isinstance(gateway, SemanticGateway)
        await gateway.ask(QUESTION)
        await gateway.kept()
        assert (await gateway.ask(PARAPHRASE)).cache == "cachewright; fwd=miss; detail=shadow"
        assert engine.calls[CHAT] == 2
        assert await gateway.metric("cachewright_semantic_misses_total", reason="shadow") == 1
        (sample,) = (await gateway.admin("/samples")).json()
        assert sample == {"asked": PARAPHRASE, "stored": QUESTION, "similarity": 1.0, "refused": []}


async def test_a_switch_ends_similar_answers_too(gateway: SemanticGateway) -> None:
    """The first request after it goes upstream."""
    await gateway.ask(QUESTION)
    await gateway.kept()
    gateway.record = gateway.rotate().with_layer(
        "Semantic", "6" * 16, "semantic binding", "2026-11-30T01:00:00Z"
    )
    store = gateway.process._assembly._store
    assert store is not None
    await store.store.publish_record(gateway.record)
    assert not (await gateway.ask(PARAPHRASE)).is_hit


async def test_fifty_at_once_make_one_call_and_one_embedding(
    gateway: SemanticGateway, engine: Engine
) -> None:
    """Of the upstream and of the embedder, whichever of them asks first."""
    await gateway.ask(OTHER)
    await gateway.kept()
    gateway.embeddings.requests.clear()
    await asyncio.gather(*(gateway.ask(QUESTION) for _ in range(50)))
    assert engine.calls[CHAT] == 2
    await gateway.kept(2)
    asked = [request["input"] for request in gateway.embeddings.requests]
    assert asked.count([QUESTION]) == 1


async def test_streams_and_whole_answers_are_one(gateway: SemanticGateway, engine: Engine) -> None:
    """A similar question gets the form that it asks for."""
    await gateway.ask(QUESTION, stream=True)
    await gateway.kept()
    whole = await gateway.ask(PARAPHRASE)
    assert whole.is_hit
    assert whole.json()["object"] == "chat.completion"
    assert engine.calls[CHAT] == 1


async def test_a_false_hit_is_removed_with_all_its_copies(gateway: SemanticGateway, engine: Engine) -> None:
    """By the id that the wrong answer carried: neither question gets it any more, in whatever way."""
    await gateway.ask(QUESTION)
    await gateway.kept()
    wrong = await gateway.ask(PARAPHRASE)
    assert wrong.is_hit

    async def is_copied() -> bool:
        return "Cachewright-Similarity" not in (await gateway.ask(PARAPHRASE)).headers

    await until(is_copied)
    report = (await gateway.admin("/purge", {"id": wrong.entry_id, "dryRun": False})).json()
    assert (report["removed"], report["related"]) == (True, 2)
    assert engine.calls[CHAT] == 1
    assert not (await gateway.ask(PARAPHRASE)).is_hit
    assert not (await gateway.ask(QUESTION, headers={**TENANT, "Cachewright-Layers": "exact"})).is_hit
    assert engine.calls[CHAT] == 3
