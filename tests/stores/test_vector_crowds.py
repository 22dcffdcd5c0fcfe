"""A small tenant finds its own repeats among many entries of others, and a large one among its own.

`--crowd 100000` stores as many as the promise says; by default it is fewer, to be quick.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cachewright.stores import postgres_vectors
from cachewright.stores.vector_opening import open_vector_store
from tests.support.crowds import Crowd, fill, find
from tests.support.postgres_servers import PostgresServer
from tests.support.qdrant_servers import GivenServer, QdrantServer
from tests.support.vectors import VectorSubject

MIN_RECALL = 0.95


@pytest.fixture(params=["qdrant", "postgres"])
async def subject(
    request: pytest.FixtureRequest, qdrant: QdrantServer | GivenServer, postgres: PostgresServer
) -> AsyncIterator[VectorSubject]:
    """A store on the shared server of each kind."""
    if request.param == "qdrant":
        store = open_vector_store(qdrant.url, api_key=qdrant.api_key)
    else:
        store = open_vector_store(postgres.dsn())
    found = VectorSubject(store, dimensions=64)
    await store.check()
    yield found
    await store.drop(found.cache_id, found.space().keyspace)
    await store.aclose()


@pytest.fixture
def crowd_size(request: pytest.FixtureRequest) -> int:
    """Return how many entries others have."""
    return int(request.config.getoption("--crowd"))


async def test_a_small_tenant_finds_its_own(subject: VectorSubject, crowd_size: int) -> None:
    """With others' entries nearer to its questions than its own, and never one of theirs."""
    crowd = Crowd(crowd_size, dimensions=64)
    space = await subject.opened()
    await fill(subject.store, space, crowd)
    finding = await find(subject.store, space, crowd, 200)
    assert finding.recall >= MIN_RECALL
    assert await subject.store.count(space, "small-tenant") == 10


async def test_a_large_tenant_finds_its_own(
    subject: VectorSubject, crowd_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its graph, once its partition is too large to compare with every entry."""
    monkeypatch.setattr(postgres_vectors, "EXACT_MOST", crowd_size // 8)
    crowd = Crowd(crowd_size, own=crowd_size // 4, dimensions=64)
    space = await subject.opened()
    await fill(subject.store, space, crowd)
    finding = await find(subject.store, space, crowd, 100)
    assert finding.recall >= MIN_RECALL
