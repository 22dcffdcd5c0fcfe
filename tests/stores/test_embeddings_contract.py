"""The cold tier of embeddings: one suite on process memory and on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier

from cachewright.errors import SpaceNotFound, StoreRefused, StoreUnavailable, StoreUnfit
from cachewright.keys.embedding import embedding_counters
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.embeddings import ColdEmbedding, EmbeddingSpace, EmbeddingStore
from cachewright.stores.memory_embeddings import MemoryEmbeddingStore
from cachewright.stores.postgres_embeddings import MIGRATIONS, PostgresEmbeddingStore
from cachewright.stores.postgres_link import open_link
from tests.support.postgres_servers import PASSWORD, PostgresServer

CACHE = "0123456789abcdef"
SPACE = EmbeddingSpace(CACHE, Keyspace("ab" * 8, 3))
TABLE = f"emb_cw1_{CACHE}_{'ab' * 8}_3"
ACME, GLOBEX = "A" * 43, "G" * 43


def cold(number: int, n_tokens: int = 7) -> ColdEmbedding:
    """Make up a vector and its digest."""
    return ColdEmbedding(f"{number:064x}", array("f", [number, 0.5, -1]).tobytes(), n_tokens)


def execute(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def dsn(postgres: PostgresServer) -> Iterator[str]:
    """Return the connection string of an empty database."""
    name = f"test_{time.monotonic_ns()}"
    execute(postgres.dsn(), f"CREATE DATABASE {name}")
    yield postgres.dsn(database=name)
    execute(postgres.dsn(), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[EmbeddingStore]:
    """Return an empty store of each kind, with the space made."""
    kind = request.param
    made: EmbeddingStore = (
        MemoryEmbeddingStore()
        if kind == "memory"
        else PostgresEmbeddingStore(open_link(request.getfixturevalue("dsn")))
    )
    await made.ensure(SPACE)
    yield made
    await made.aclose()


async def test_what_was_stored_is_found_bit_by_bit(store: EmbeddingStore) -> None:
    """A vector comes back as the very float32 numbers, with its tokens; what is missing is left out."""
    assert await store.write(SPACE, ACME, [cold(1), cold(2, 0)], generation=0)
    found = await store.find(SPACE, ACME, [cold(1).digest, cold(9).digest, cold(2).digest])
    assert found.generation == 0
    assert found.embeddings == {cold(1).digest: cold(1), cold(2).digest: cold(2, 0)}


async def test_a_batch_with_one_digest_twice_is_stored_once(store: EmbeddingStore) -> None:
    """The later one wins, as if they had come one after the other."""
    assert await store.write(SPACE, ACME, [cold(1, 3), cold(1, 4)], generation=0)
    assert (await store.find(SPACE, ACME, [cold(1).digest])).embeddings[cold(1).digest].n_tokens == 4


async def test_a_vector_that_is_stored_again_replaces_the_former(store: EmbeddingStore) -> None:
    """Two gateways may compute the same; neither fails."""
    for n_tokens in (3, 5):
        assert await store.write(SPACE, ACME, [cold(1, n_tokens)], generation=0)
    assert await store.count(SPACE) == 1


async def test_tenants_do_not_see_each_other(store: EmbeddingStore) -> None:
    """The tenant is part of every look-up."""
    await store.write(SPACE, ACME, [cold(1)], generation=0)
    assert (await store.find(SPACE, GLOBEX, [cold(1).digest])).embeddings == {}


async def test_a_raised_tenant_counter_puts_its_vectors_out_of_reach(store: EmbeddingStore) -> None:
    """Retraction by tenant takes that tenant's vectors alone, and new ones are found again."""
    for tenant in (ACME, GLOBEX):
        await store.write(SPACE, tenant, [cold(1)], generation=0)
    await store.raise_generations(CACHE, embedding_counters(ACME)[:1])
    found = await store.find(SPACE, ACME, [cold(1).digest])
    assert (found.generation, found.embeddings) == (1, {})
    assert (await store.find(SPACE, GLOBEX, [cold(1).digest])).embeddings
    assert await store.write(SPACE, ACME, [cold(1)], generation=1)
    assert (await store.find(SPACE, ACME, [cold(1).digest])).embeddings


async def test_a_raised_layer_counter_puts_all_vectors_out_of_reach(store: EmbeddingStore) -> None:
    """Retraction of the layer is for everybody, and for this cache alone."""
    other = EmbeddingSpace("f" * 16, SPACE.keyspace)
    await store.ensure(other)
    for space in (SPACE, other):
        await store.write(space, ACME, [cold(1)], generation=0)
    await store.raise_generations(CACHE, embedding_counters(ACME)[1:])
    assert not (await store.find(SPACE, ACME, [cold(1).digest])).embeddings
    assert (await store.find(other, ACME, [cold(1).digest])).embeddings


async def test_a_write_that_began_before_a_retraction_is_dropped(store: EmbeddingStore) -> None:
    """A vector that was on its way must not come back after its tenant was retracted."""
    seen = (await store.find(SPACE, ACME, [cold(1).digest])).generation
    await store.raise_generations(CACHE, embedding_counters(ACME))
    assert not await store.write(SPACE, ACME, [cold(1)], seen)
    assert not (await store.find(SPACE, ACME, [cold(1).digest])).embeddings


async def test_unreachable_vectors_are_removed_in_steps(store: EmbeddingStore) -> None:
    """The sweep frees what nobody finds any more, and nothing else."""
    await store.write(SPACE, ACME, [cold(number) for number in range(5)], generation=0)
    await store.write(SPACE, GLOBEX, [cold(1)], generation=0)
    await store.raise_generations(CACHE, embedding_counters(ACME)[:1])
    assert [await store.delete_unreachable(SPACE, 3) for _ in range(3)] == [3, 2, 0]
    assert await store.count(SPACE) == 1


async def test_a_dropped_space_is_gone_and_stays_so(store: EmbeddingStore) -> None:
    """A write that comes late does not make it anew."""
    await store.write(SPACE, ACME, [cold(1)], generation=0)
    assert await store.list_spaces(CACHE) == [SPACE.keyspace]
    assert await store.drop(CACHE, SPACE.keyspace)
    assert not await store.drop(CACHE, SPACE.keyspace)
    assert await store.list_spaces(CACHE) == []
    with pytest.raises(SpaceNotFound):
        await store.write(SPACE, ACME, [cold(1)], generation=0)
    with pytest.raises(SpaceNotFound):
        await store.find(SPACE, ACME, [cold(1).digest])
    with pytest.raises(SpaceNotFound):
        await store.delete_unreachable(SPACE, 1)


async def test_a_space_is_made_once(store: EmbeddingStore) -> None:
    """Making it again leaves what is in it, also when many do so at the same time."""
    await store.write(SPACE, ACME, [cold(1)], generation=0)
    await asyncio.gather(*(store.ensure(SPACE) for _ in range(5)))
    assert await store.count(SPACE) == 1


async def test_gateways_that_start_together_make_the_tables_once(dsn: str) -> None:
    """An empty database, five processes at once: one migrates, the others wait for it."""
    stores = [PostgresEmbeddingStore(open_link(dsn)) for _ in range(5)]
    await asyncio.gather(*(store.ensure(SPACE) for store in stores))
    assert await stores[0].list_spaces(CACHE) == [SPACE.keyspace]
    await asyncio.gather(*(store.aclose() for store in stores))


async def test_a_database_of_a_newer_release_is_left_as_it_is(dsn: str) -> None:
    """Migrations go forward alone: an older gateway beside a newer one takes nothing back."""
    store = PostgresEmbeddingStore(open_link(dsn))
    await store.ensure(SPACE)
    execute(dsn, "UPDATE cachewright_migrations SET version = 99")
    await store.ensure(EmbeddingSpace(CACHE, Keyspace("cd" * 8, 4)))
    assert execute(dsn, "SELECT version FROM cachewright_migrations") == [(99,)]
    assert len(MIGRATIONS) < 99
    await store.aclose()


async def test_a_table_of_somebody_else_is_never_dropped(dsn: str) -> None:
    """Only what carries this cache's marker is removed, whatever its name."""
    store = PostgresEmbeddingStore(open_link(dsn))
    await store.ensure(SPACE)
    execute(dsn, "UPDATE cachewright_embedding_spaces SET cache_id = 'another'")
    with pytest.raises(StoreRefused, match="not marked"):
        await store.drop(CACHE, SPACE.keyspace)
    await store.aclose()


async def test_a_table_in_use_is_dropped_later(dsn: str) -> None:
    """A long reader is not waited for without end, and the space is whole afterwards."""
    store, reader = PostgresEmbeddingStore(open_link(dsn)), open_link(dsn)
    await store.ensure(SPACE)
    dropped: list[BaseException | bool] = []

    async def hold(connection: AsyncConnection[Any]) -> None:
        async with connection.transaction():
            await connection.execute(SQL("SELECT * FROM {}").format(Identifier(TABLE)))
            dropped.extend(await asyncio.gather(store.drop(CACHE, SPACE.keyspace), return_exceptions=True))

    async with reader.use("read for long", 20) as connection:
        await hold(connection)
    assert isinstance(dropped[0], StoreUnavailable)
    assert await store.list_spaces(CACHE) == [SPACE.keyspace]
    assert await store.drop(CACHE, SPACE.keyspace)
    await asyncio.gather(store.aclose(), reader.aclose())


async def test_a_role_that_may_make_no_table_is_told_so(dsn: str) -> None:
    """The message says what is missing instead of a code."""
    execute(dsn, "CREATE ROLE guest LOGIN PASSWORD 'guest'")
    store = PostgresEmbeddingStore(open_link(dsn.replace(f"postgres:{PASSWORD}", "guest:guest")))
    with pytest.raises(StoreUnfit, match="may not make tables"):
        await store.ensure(SPACE)
    await store.aclose()
    execute(dsn, "DROP ROLE guest")
