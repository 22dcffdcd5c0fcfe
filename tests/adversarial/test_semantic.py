"""The adversarial set with the semantic layer on, and an embedder that finds all questions the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.upstream import Upstream
from tests.adversarial.cases import ALIAS, ARM_HEADER, ROLE_HEADER, VARY_HEADER, load_cases
from tests.adversarial.runner import Verdict, run_cases
from tests.adversarial.test_gateway import UNCACHEABLE
from tests.gateway.harness import running
from tests.gateway.semantic import SemanticGateway, embedding_server, one_direction
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

FUZZY = frozenset({"question", "unicode"})
"""Classes whose pairs may differ in the question alone: there the embedder and the guard decide."""


@pytest.fixture
async def gateway(tmp_path: Path, store: RedisServer, upstream: Upstream) -> AsyncIterator[SemanticGateway]:
    """A gateway without a guard, where nothing but the structure of requests keeps answers apart."""
    async with embedding_server() as embeddings:
        embeddings.vector = one_direction
        mounts = SemanticGateway(tmp_path, store, upstream.url, embeddings)
        mounts.enact(
            tenancy={"role_header": ROLE_HEADER.lower()},
            upstream={"vary_headers": (*mounts.policy.upstream.vary_headers, VARY_HEADER.lower())},
            model_aliases=(ALIAS,),
            routes=(mounts.policy.routes[0].model_copy(update={"arm_header": ARM_HEADER.lower()}),),
            semantic={"guard": (), "other_languages": True, "max_entries": 100_000},
        )
        async with running(mounts):
            yield mounts


async def test_structure_alone_keeps_answers_apart(gateway: SemanticGateway) -> None:
    """With a cosine of 1.0 for everything, no request gets what was computed for another structure."""

    async def settle() -> None:
        async def is_idle() -> bool:
            return await gateway.metric("cachewright_semantic_write_queue_depth") == 0

        await until(is_idle)

    results = await run_cases(gateway.url, load_cases(), settle=settle)
    assert [r.case.id for r in results if r.is_wrong and r.case.kind not in FUZZY] == []
    assert [r.case.id for r in results if r.is_lost] == []
    assert {r.case.id for r in results if r.verdict is Verdict.NOT_CACHED} == UNCACHEABLE
    shared = [r for r in results if r.is_wrong]
    assert len(shared) > 5, "the layer matched nothing, so the run proves nothing"
