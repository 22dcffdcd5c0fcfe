"""Vectors without a TTL in PostgreSQL: a table for each keyspace, and one that says whose each is.

    cachewright_migrations         how far the tables below have come; they only ever go forward
    cachewright_embedding_spaces   table name, cache id, keyspace
    cachewright_generations        counters of retractions
    emb_cw1_<cache id>_<keyspace>  tenant tag, digest, generation, tokens, vector as float32

Used by the embedding layer as its cold tier; needs no extension of PostgreSQL.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from psycopg import AsyncConnection, errors
from psycopg.sql import SQL, Identifier

from cachewright.errors import SpaceNotFound, StoreRefused, StoreUnfit
from cachewright.keys.embedding import embedding_counters
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.embeddings import ColdEmbedding, ColdFound, EmbeddingSpace
from cachewright.stores.postgres_link import UPKEEP_TIMEOUT_SECONDS, PostgresLink
from cachewright.stores.postgres_server import OLDEST_SERVER
from cachewright.stores.vectors import space_name

MIGRATION_LOCK: Final = 0x6361636865777269
"""Of all gateways that make or change tables at the same time, one goes first."""

COMPONENT: Final = "embeddings"

MIGRATIONS: Final = (
    """CREATE TABLE cachewright_embedding_spaces (
    table_name text PRIMARY KEY,
    cache_id text NOT NULL,
    keyspace text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now()
)""",
    """CREATE TABLE cachewright_generations (
    cache_id text NOT NULL,
    counter text NOT NULL,
    value bigint NOT NULL,
    PRIMARY KEY (cache_id, counter)
)""",
)
"""Each is applied once, in this order; a released one never changes."""

LOCK_TIMEOUT: Final = "2s"

_GENERATION: Final = SQL(
    """(SELECT coalesce(sum(value), 0)::bigint FROM cachewright_generations
WHERE cache_id = %(cache_id)s AND counter = ANY(%(counters)s))"""
)
"""Sum of the counters that the vectors of a tenant depend on."""

_FIND: Final = SQL(
    """SELECT at.generation, held.digest, held.tokens, held.vector
FROM (SELECT {generation} AS generation) AS at
LEFT JOIN {table} AS held ON held.tenant = %(tenant)s AND held.digest = ANY(%(digests)s)
    AND held.generation = at.generation"""
)

_WRITE: Final = SQL(
    """INSERT INTO {table} AS held (tenant, digest, generation, tokens, vector)
SELECT %(tenant)s, made.digest, %(generation)s, made.tokens, made.vector
FROM unnest(%(digests)s::bytea[], %(tokens)s::int[], %(vectors)s::bytea[]) AS made (digest, tokens, vector)
WHERE {generation} = %(generation)s
ON CONFLICT (tenant, digest) DO UPDATE
SET generation = excluded.generation, tokens = excluded.tokens, vector = excluded.vector
WHERE held.generation <= excluded.generation"""
)

_DELETE_UNREACHABLE: Final = SQL(
    """DELETE FROM {table} WHERE ctid = ANY(ARRAY(
    SELECT held.ctid FROM {table} AS held WHERE held.generation <> (
        SELECT coalesce(sum(value), 0) FROM cachewright_generations
        WHERE cache_id = %(cache_id)s AND counter IN ('t:' || held.tenant, %(layer)s)
    ) LIMIT %(limit)s
))"""
)

_Connection = AsyncConnection[Any]


class PostgresEmbeddingStore:
    """EmbeddingStore on PostgreSQL."""

    def __init__(self, link: PostgresLink) -> None:
        self._link = link

    async def ensure(self, space: EmbeddingSpace) -> None:
        """Make the space unless it is there, and bring the tables of all spaces up to date."""
        async with self._upkeep("make the embeddings' table") as connection:
            if connection.info.server_version < OLDEST_SERVER:
                raise StoreUnfit("cold embeddings need PostgreSQL 14 or newer")
            try:
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
                await _migrate(connection)
                await _make_space(connection, space)
            except errors.InsufficientPrivilege as e:
                raise StoreUnfit("the role of the connection string may not make tables in its schema") from e

    async def find(self, space: EmbeddingSpace, tenant_tag: str, digests: Sequence[str]) -> ColdFound:
        """Look up vectors of a tenant, and the sum of its counters, at one moment."""
        values = _values(space, tenant_tag) | {"digests": [bytes.fromhex(digest) for digest in digests]}
        statement = _FIND.format(table=_table(space), generation=_GENERATION)
        async with self._link.use("look up embeddings") as connection:
            cursor = await connection.execute(statement, values, binary=True)
            rows = await cursor.fetchall()
        held = [
            ColdEmbedding(bytes(digest).hex(), bytes(vector), int(tokens))
            for _, digest, tokens, vector in rows
            if digest is not None
        ]
        return ColdFound(int(rows[0][0]), {embedding.digest: embedding for embedding in held})

    async def write(
        self, space: EmbeddingSpace, tenant_tag: str, embeddings: Sequence[ColdEmbedding], generation: int
    ) -> bool:
        """Store vectors unless a counter was raised since."""
        # In one order everywhere, so that two batches cannot wait for each other; and each digest once.
        rows = [held for _, held in sorted({held.digest: held for held in embeddings}.items())]
        values = _values(space, tenant_tag) | {
            "generation": generation,
            "digests": [bytes.fromhex(held.digest) for held in rows],
            "tokens": [held.n_tokens for held in rows],
            "vectors": [held.vector for held in rows],
        }
        statement = _WRITE.format(table=_table(space), generation=_GENERATION)
        async with self._link.use("store embeddings") as connection:
            return (await connection.execute(statement, values)).rowcount > 0

    async def raise_generations(self, cache_id: str, counters: Sequence[str]) -> None:
        """Raise counters by one; where no table was ever made there is nothing to retract."""
        with suppress(SpaceNotFound):
            async with self._link.use("raise generations") as connection:
                await connection.execute(
                    "INSERT INTO cachewright_generations AS held (cache_id, counter, value)"
                    " SELECT %s, unnest(%s::text[]), 1"
                    " ON CONFLICT (cache_id, counter) DO UPDATE SET value = held.value + 1",
                    (cache_id, sorted(set(counters))),
                )

    async def count(self, space: EmbeddingSpace) -> int:
        """Count vectors: by PostgreSQL's own estimate where there is one."""
        async with self._link.use("count embeddings") as connection:
            cursor = await connection.execute(
                "SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(%s)", (_name(space),)
            )
            row = await cursor.fetchone()
            if row is None:
                raise _gone(space)
            if row[0] >= 0:
                return int(row[0])
            statement = SQL("SELECT count(*) FROM {table}").format(table=_table(space))
            counted = await (await connection.execute(statement)).fetchone()
            return int(counted[0]) if counted else 0

    async def delete_unreachable(self, space: EmbeddingSpace, limit: int) -> int:
        """Remove vectors whose counters were raised."""
        values = {"cache_id": space.cache_id, "layer": embedding_counters("")[1], "limit": limit}
        async with self._upkeep("remove embeddings") as connection:
            statement = _DELETE_UNREACHABLE.format(table=_table(space))
            return (await connection.execute(statement, values)).rowcount

    async def list_spaces(self, cache_id: str) -> Sequence[Keyspace]:
        """List the keyspaces that have a space of this cache."""
        with suppress(SpaceNotFound):
            async with self._link.use("list embeddings' tables") as connection:
                cursor = await connection.execute(
                    "SELECT keyspace FROM cachewright_embedding_spaces WHERE cache_id = %s ORDER BY 1",
                    (cache_id,),
                )
                return [Keyspace.parse(name) for (name,) in await cursor.fetchall()]
        return []

    async def drop(self, cache_id: str, keyspace: Keyspace) -> bool:
        """Remove a space with all in it, waiting for readers no longer than the lock timeout."""
        space = EmbeddingSpace(cache_id, keyspace)
        is_ours = False
        with suppress(SpaceNotFound):
            async with self._upkeep("drop embeddings' table") as connection:
                await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'".encode())
                cursor = await connection.execute(
                    "DELETE FROM cachewright_embedding_spaces WHERE table_name = %s AND cache_id = %s",
                    (_name(space), cache_id),
                )
                is_ours = cursor.rowcount > 0
                if is_ours:
                    await connection.execute(SQL("DROP TABLE IF EXISTS {}").format(_table(space)))
                elif await _exists(connection, space):
                    raise StoreRefused(f"the table {_name(space)} is not marked as one of this cache's")
        return is_ours

    async def aclose(self) -> None:
        """Close all connections."""
        await self._link.aclose()

    @asynccontextmanager
    async def _upkeep(self, action: str) -> AsyncIterator[_Connection]:
        """Give a connection in a transaction that may take its time."""
        limit_ms = int(UPKEEP_TIMEOUT_SECONDS * 1000)
        async with self._link.use(action, UPKEEP_TIMEOUT_SECONDS) as connection, connection.transaction():
            await connection.execute(f"SET LOCAL statement_timeout = {limit_ms}".encode())
            yield connection


async def _migrate(connection: _Connection) -> None:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS cachewright_migrations ("
        " component text PRIMARY KEY, version integer NOT NULL)"
    )
    cursor = await connection.execute(
        "SELECT version FROM cachewright_migrations WHERE component = %s", (COMPONENT,)
    )
    row = await cursor.fetchone()
    done = int(row[0]) if row else 0
    for statement in MIGRATIONS[done:]:
        await connection.execute(statement.encode())
    if done < len(MIGRATIONS):
        await connection.execute(
            "INSERT INTO cachewright_migrations (component, version) VALUES (%s, %s)"
            " ON CONFLICT (component) DO UPDATE SET version = excluded.version",
            (COMPONENT, len(MIGRATIONS)),
        )


async def _make_space(connection: _Connection, space: EmbeddingSpace) -> None:
    await connection.execute(
        "INSERT INTO cachewright_embedding_spaces (table_name, cache_id, keyspace) VALUES (%s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        (_name(space), space.cache_id, str(space.keyspace)),
    )
    if await _exists(connection, space):
        return
    await connection.execute(
        SQL(
            "CREATE TABLE {} (tenant text NOT NULL, digest bytea NOT NULL, generation bigint NOT NULL,"
            " tokens integer NOT NULL, vector bytea STORAGE EXTERNAL NOT NULL,"
            " stored_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (tenant, digest))"
        ).format(_table(space))
    )


async def _exists(connection: _Connection, space: EmbeddingSpace) -> bool:
    cursor = await connection.execute("SELECT to_regclass(%s) IS NOT NULL", (_name(space),))
    row = await cursor.fetchone()
    return bool(row and row[0])


def _name(space: EmbeddingSpace) -> str:
    return f"emb_{space_name(space.cache_id, space.keyspace)}"


def _table(space: EmbeddingSpace) -> Identifier:
    return Identifier(_name(space))


def _values(space: EmbeddingSpace, tenant_tag: str) -> dict[str, Any]:
    return {
        "cache_id": space.cache_id,
        "tenant": tenant_tag,
        "counters": list(embedding_counters(tenant_tag)),
    }


def _gone(space: EmbeddingSpace) -> SpaceNotFound:
    return SpaceNotFound(f"there is no table {_name(space)}")
