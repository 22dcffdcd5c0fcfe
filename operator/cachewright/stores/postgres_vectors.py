"""Vectors in PostgreSQL with pgvector: a table for each keyspace, its marker the table's comment.

Opened by `vector_opening`. A partition is searched exactly as long as it is small. Beyond that the graph is
walked, iteratively: a plain walk stops at the nearest entries of everybody, and finds a tenant's own only by
luck.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, LiteralString

from psycopg import errors
from psycopg.sql import SQL, Identifier

from cachewright.errors import SpaceNotFound, StoreRefused, StoreUnfit
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores import postgres_sql as statements
from cachewright.stores.postgres_link import UPKEEP_TIMEOUT_SECONDS, Connection, PostgresLink
from cachewright.stores.vectors import (
    SEARCH_LIMIT,
    Capabilities,
    EntryId,
    Hit,
    Marker,
    Vector,
    VectorEntry,
    VectorSpace,
    keyspace_in,
    require_ours,
    require_vector,
    space_name,
    space_prefix,
)

MIN_PGVECTOR: Final = (0, 8)
"""The first that walks the graph iteratively."""

EXACT_MOST: Final = 5000
"""Entries of a partition that are compared one by one."""

COUNTED_MOST: Final = 50_000
"""Entries of a table up to which they are counted; the server's own estimate stands for more."""

LOCK_TIMEOUT: Final = "2s"
"""How long dropping a table waits for those who use it; whoever comes meanwhile waits behind it."""

LARGE_PARTITIONS: Final = 10_000
"""Large partitions that are remembered, so that the exact search is not tried on them each time."""

_FROM_TABLE: Final[LiteralString] = " FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)"

_GRAPH_SETTINGS: Final[LiteralString] = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), "
    "set_config('hnsw.ef_search', '100', true), set_config('hnsw.max_scan_tuples', '40000', true)"
)
"""For one transaction: a pooler may hand the connection to somebody else after it."""

_UPKEEP_SETTINGS: Final[LiteralString] = (
    "SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)"
)


class PostgresVectorStore:
    """VectorStore on PostgreSQL with pgvector."""

    def __init__(self, link: PostgresLink) -> None:
        self._link = link
        self._large: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    async def check(self) -> Capabilities:
        """Ask for the versions of server and extension, and install the extension where that is allowed."""
        async with self._link.use("look for pgvector", UPKEEP_TIMEOUT_SECONDS) as connection:
            server = connection.info.parameter_status("server_version") or "unknown"
            version = await _pgvector_version(connection)
            if version is None:
                await _install_pgvector(connection)
                version = await _pgvector_version(connection)
        found = re.match(r"(\d+)\.(\d+)", version or "")
        if found is None or (int(found[1]), int(found[2])) < MIN_PGVECTOR:
            wanted = ".".join(map(str, MIN_PGVECTOR))
            raise StoreUnfit(
                f"pgvector {wanted} or newer is needed, and the database has {version}: update the server's, "
                "then run ALTER EXTENSION vector UPDATE"
            )
        return Capabilities("PostgreSQL", f"{server} with pgvector {version}")

    async def ensure(self, space: VectorSpace, probe_text: str, probe_vector: Vector) -> Marker:
        """Make table, indexes and marker in one transaction, unless they exist."""
        require_vector(space, probe_vector)
        marker = Marker(space.cache_id, space.keyspace, space.dimensions, probe_text, probe_vector)
        async with self._link.use(f"make {space.name}", UPKEEP_TIMEOUT_SECONDS) as connection:
            if not await _exists(connection, space.name):
                await _create(connection, space, marker)
            return require_ours(space, await _find_marker(connection, space.name))

    async def read_marker(self, space: VectorSpace) -> Marker:
        """Read the marker."""
        async with self._link.use(f"read the marker of {space.name}") as connection:
            return require_ours(space, await _find_marker(connection, space.name))

    async def put(self, space: VectorSpace, entry: VectorEntry) -> None:
        """Store an entry in the place of one with the same id."""
        require_vector(space, entry.vector)
        async with self._link.use("store a vector") as connection:
            await connection.execute(statements.put_statement(space.name), statements.put_parameters(entry))

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        tenant_tag: str,
        partition: str,
        now: float,
        limit: int = SEARCH_LIMIT,
    ) -> Sequence[Hit]:
        """Find the nearest entries of a tenant's partition that expire after `now`."""
        require_vector(space, vector)
        parameters: dict[str, Any] = {
            "vector": statements.vector_text(vector),
            "tenant": tenant_tag,
            "partition": partition,
            "now": statements.milliseconds(now),
            "limit": limit,
            "most": EXACT_MOST + 1,
        }
        graph = statements.graph_search(space)
        place = (space.name, tenant_tag, partition)
        async with self._link.use("search") as connection:
            if graph is None:
                rows = await _rows(
                    connection, statements.exact_search(space.name), parameters | {"most": None}
                )
                return [statements.hit_of(row) for row in rows]
            if place not in self._large:
                rows = await _rows(connection, statements.exact_search(space.name), parameters)
                if not rows or rows[0][-1] <= EXACT_MOST:
                    return [statements.hit_of(row) for row in rows]
                self._remember_large(place)
            async with connection.pipeline(), connection.transaction():
                await connection.execute(_GRAPH_SETTINGS)
                rows = await _rows(connection, graph, parameters)
        return [statements.hit_of(row) for row in rows]

    async def read_body(self, space: VectorSpace, entry: EntryId, nonce: bytes) -> bytes | None:
        """Read an entry's body."""
        query = SQL("SELECT body FROM {} WHERE tenant = %s AND digest = %s AND nonce = %s")
        async with self._link.use("read an entry") as connection:
            rows = await _rows(
                connection,
                query.format(Identifier(space.name)),
                (entry.tenant_tag, entry.digest, nonce),
            )
        return bytes(rows[0][0]) if rows else None

    async def remove(self, space: VectorSpace, entries: Sequence[EntryId]) -> None:
        """Remove entries, those that are there."""
        query = SQL(
            "DELETE FROM {} t USING unnest(%s::text[], %s::text[]) AS gone (tenant, digest) "
            "WHERE t.tenant = gone.tenant AND t.digest = gone.digest"
        )
        tenants = [entry.tenant_tag for entry in entries]
        digests = [entry.digest for entry in entries]
        async with self._link.use("remove entries") as connection:
            await connection.execute(query.format(Identifier(space.name)), (tenants, digests))

    async def count(
        self, space: VectorSpace, tenant_tag: str | None = None, partition: str | None = None
    ) -> int:
        """Count entries; all of a large table by the server's own estimate."""
        async with self._link.use("count entries") as connection:
            if tenant_tag is None and partition is None:
                estimate = await _estimate(connection, space.name)
                if estimate > COUNTED_MOST:
                    return estimate
            rows = await _rows(
                connection,
                statements.count_statement(space.name, tenant_tag, partition),
                {"tenant": tenant_tag, "partition": partition},
            )
        return int(rows[0][0])

    async def evict_oldest(self, space: VectorSpace, number: int, tenant_tag: str | None = None) -> int:
        """Remove those stored first."""
        query = statements.evict_statement(space.name, tenant_tag)
        return await self._delete(query, {"tenant": tenant_tag, "number": number})

    async def delete_expired(self, space: VectorSpace, now: float, limit: int) -> int:
        """Remove entries that have expired."""
        parameters = {"now": statements.milliseconds(now), "number": limit}
        return await self._delete(statements.expire_statement(space.name), parameters)

    async def list_spaces(self, cache_id: str) -> Sequence[Keyspace]:
        """List the keyspaces that have a table with this cache's marker."""
        query = SQL(
            "SELECT relname, obj_description(oid, 'pg_class') FROM pg_class "
            "WHERE relkind = 'r' AND starts_with(relname::text, %s) AND pg_table_is_visible(oid)"
        )
        async with self._link.use("list tables") as connection:
            rows = await _rows(connection, query, (space_prefix(cache_id),))
        return sorted(
            keyspace
            for name, comment in rows
            if (keyspace := keyspace_in(name, cache_id)) and _is_owned(name, comment, cache_id)
        )

    async def drop(self, cache_id: str, keyspace: Keyspace) -> bool:
        """Remove a table with all in it, unless somebody keeps it locked."""
        name = space_name(cache_id, keyspace)
        async with (
            self._link.use(f"drop {name}", UPKEEP_TIMEOUT_SECONDS) as connection,
            connection.transaction(),
        ):
            await _begin_upkeep(connection)
            if not await _exists(connection, name):
                return False
            if (await _find_marker(connection, name)).cache_id != cache_id:
                raise StoreRefused(f"drop: {name} does not carry the marker of this cache")
            await connection.execute(SQL("DROP TABLE {}").format(Identifier(name)))
        return True

    async def aclose(self) -> None:
        """Close all connections."""
        await self._link.aclose()

    def _remember_large(self, place: tuple[str, str, str]) -> None:
        self._large[place] = None
        if len(self._large) > LARGE_PARTITIONS:
            self._large.popitem(last=False)

    async def _delete(self, query: Any, parameters: dict[str, Any]) -> int:  # noqa: ANN401 - psycopg's Query
        async with (
            self._link.use("remove entries", UPKEEP_TIMEOUT_SECONDS) as connection,
            connection.transaction(),
        ):
            await _begin_upkeep(connection)
            return (await connection.execute(query, parameters)).rowcount


async def _rows(connection: Connection, query: Any, parameters: Any = None) -> list[Any]:  # noqa: ANN401
    return await (await connection.execute(query, parameters)).fetchall()


async def _begin_upkeep(connection: Connection) -> None:
    milliseconds = str(int(UPKEEP_TIMEOUT_SECONDS * 1000))
    await connection.execute(_UPKEEP_SETTINGS, (milliseconds, LOCK_TIMEOUT))


async def _pgvector_version(connection: Connection) -> str | None:
    rows = await _rows(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    return str(rows[0][0]) if rows else None


async def _install_pgvector(connection: Connection) -> None:
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.InsufficientPrivilege as e:
        raise StoreUnfit(
            "the database lacks the extension vector: let a superuser run CREATE EXTENSION vector in it"
        ) from e
    except (errors.FeatureNotSupported, errors.UndefinedFile) as e:
        raise StoreUnfit("the server lacks pgvector: install it beside PostgreSQL") from e
    except errors.UniqueViolation:
        pass  # another gateway was faster


async def _exists(connection: Connection, name: str) -> bool:
    """Tell whether there is a table; to_regclass() may not see one that was made a moment ago."""
    return bool(await _rows(connection, "SELECT 1" + _FROM_TABLE, (name,)))


async def _find_marker(connection: Connection, name: str) -> Marker:
    """Read a table's marker; raises SpaceNotFound where there is no such table."""
    rows = await _rows(connection, "SELECT obj_description(oid, 'pg_class')" + _FROM_TABLE, (name,))
    if not rows:
        raise SpaceNotFound(f"there is no table {name}")
    return statements.marker_of(name, rows[0][0])


async def _create(connection: Connection, space: VectorSpace, marker: Marker) -> None:
    """Make the table, one gateway at a time; the others find it made."""
    async with connection.transaction():
        await _begin_upkeep(connection)
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (space.name,))
        if await _exists(connection, space.name):
            return
        for statement in statements.create_statements(space):
            await connection.execute(statement)
        await connection.execute(statements.comment_statement(space.name, marker))


async def _estimate(connection: Connection, name: str) -> int:
    rows = await _rows(connection, "SELECT reltuples::bigint" + _FROM_TABLE, (name,))
    return int(rows[0][0]) if rows else 0


def _is_owned(name: str, comment: str | None, cache_id: str) -> bool:
    try:
        return statements.marker_of(name, comment).cache_id == cache_id
    except StoreRefused:
        return False
