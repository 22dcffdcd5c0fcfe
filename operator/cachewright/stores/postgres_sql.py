"""The statements of a vector space in PostgreSQL with pgvector. Pure.

Used by `postgres_vectors`. Names are put in as identifiers; everything that comes from a request is a
parameter. Text of users is kept as bytes, since `text` cannot hold a NUL.
"""

from __future__ import annotations

import base64
import json
from array import array
from typing import Any, Final

from psycopg.sql import SQL, Composed, Identifier, Literal

from cachewright.errors import InvalidDocument, StoreRefused
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.vectors import EntryId, Hit, Marker, Quantization, Vector, VectorEntry, VectorSpace

VECTOR_MAX: Final = 2000
"""Dimensions up to which pgvector indexes vectors as they are."""

HALFVEC_MAX: Final = 4000
"""Dimensions up to which pgvector indexes them with 16 bits each; beyond, every search is exact."""

RESCORED: Final = 4
"""Candidates per wanted hit, where the index holds rounded vectors and exact ones decide."""

_COLUMNS: Final = SQL("t.tenant, t.digest, t.question, t.nonce, t.metadata, t.stored_ms, t.expires_ms")


def create_statements(space: VectorSpace) -> list[Composed]:
    """Make table and indexes."""
    table = Identifier(space.name)
    dimensions = Literal(space.dimensions)
    statements = [
        SQL(
            'CREATE TABLE {} (tenant text COLLATE "C" NOT NULL, digest text COLLATE "C" NOT NULL, '
            'partition text COLLATE "C" NOT NULL, embedding vector({}) NOT NULL, question bytea NOT NULL, '
            "nonce bytea NOT NULL, metadata bytea NOT NULL, body bytea NOT NULL, stored_ms bigint NOT NULL, "
            "expires_ms bigint NOT NULL, PRIMARY KEY (tenant, digest))"
        ).format(table, dimensions),
        # In the row where they fit: an exact scan reads every vector of a partition, and a walk over the
        # graph compares tenant and partition of whatever it comes by.
        SQL(
            "ALTER TABLE {} ALTER COLUMN embedding SET STORAGE MAIN, ALTER COLUMN tenant SET STORAGE MAIN, "
            "ALTER COLUMN digest SET STORAGE MAIN, ALTER COLUMN partition SET STORAGE MAIN"
        ).format(table),
        SQL("CREATE INDEX ON {} (tenant, partition)").format(table),
        SQL("CREATE INDEX ON {} (stored_ms)").format(table),
        SQL("CREATE INDEX ON {} (expires_ms)").format(table),
    ]
    if (indexed := _indexed(space)) is not None:
        expression, operators = indexed
        statements.append(
            SQL("CREATE INDEX ON {} USING hnsw ({} {}) WITH (m = {}, ef_construction = {})").format(
                table, expression, operators, Literal(space.hnsw.m), Literal(space.hnsw.ef_construct)
            )
        )
    return statements


def comment_statement(name: str, marker: Marker) -> Composed:
    """Write the marker, as the table's comment: made with the table, dumped and dropped with it."""
    said = {
        "cachewright": {
            "cacheID": marker.cache_id,
            "keyspace": str(marker.keyspace),
            "dimensions": marker.dimensions,
            "probeText": marker.probe_text,
            "probeVector": base64.b64encode(marker.probe_vector.tobytes()).decode(),
        }
    }
    return SQL("COMMENT ON TABLE {} IS {}").format(Identifier(name), Literal(json.dumps(said)))


def marker_of(name: str, comment: str | None) -> Marker:
    """Read a marker; raises StoreRefused for a comment that is not one."""
    try:
        said: Any = json.loads(comment or "")["cachewright"]
        return Marker(
            cache_id=str(said["cacheID"]),
            keyspace=Keyspace.parse(str(said["keyspace"])),
            dimensions=int(said["dimensions"]),
            probe_text=str(said["probeText"]),
            probe_vector=array("f", base64.b64decode(said["probeVector"])),
        )
    except (KeyError, TypeError, ValueError, InvalidDocument) as e:
        raise StoreRefused(f"{name} carries no marker of ours") from e


def put_statement(name: str) -> Composed:
    """Store an entry in the place of one with the same id."""
    kept = ("partition", "embedding", "question", "nonce", "metadata", "body", "stored_ms", "expires_ms")
    replaced = SQL(", ").join(SQL("{0} = excluded.{0}").format(Identifier(column)) for column in kept)
    return SQL(
        "INSERT INTO {} VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) "
        "ON CONFLICT (tenant, digest) DO UPDATE SET {}"
    ).format(Identifier(name), replaced)


def put_parameters(entry: VectorEntry) -> tuple[object, ...]:
    """Return the parameters that go with it."""
    return (
        entry.id.tenant_tag,
        entry.id.digest,
        entry.partition,
        vector_text(entry.vector),
        entry.question.encode(),
        entry.nonce,
        entry.metadata.encode(),
        entry.body,
        milliseconds(entry.stored_at),
        milliseconds(entry.expires_at),
    )


def exact_search(name: str) -> Composed:
    """Compare with every entry of a partition, up to a number; the last column says how many there were.

    Parameters by name: vector, tenant, partition, now, most, limit.
    """
    return SQL(
        "WITH part AS MATERIALIZED (SELECT digest, embedding <=> %(vector)s::vector AS distance FROM {table} "
        "WHERE tenant = %(tenant)s AND partition = %(partition)s AND expires_ms > %(now)s LIMIT %(most)s), "
        "best AS (SELECT * FROM part ORDER BY distance LIMIT %(limit)s) "
        "SELECT {columns}, best.distance, (SELECT count(*) FROM part) FROM best "
        "JOIN {table} t ON t.tenant = %(tenant)s AND t.digest = best.digest ORDER BY best.distance"
    ).format(table=Identifier(name), columns=_COLUMNS)


def graph_search(space: VectorSpace) -> Composed | None:
    """Walk the graph; None where there is none. Parameters by name: vector, tenant, partition, now, limit.

    Candidates come nearly sorted, and exact distances decide about their order.
    """
    indexed = _indexed(space)
    if indexed is None:
        return None
    expression, _ = indexed
    rounded = _is_rounded(space)
    vector = SQL("%(vector)s::{}({})").format(
        SQL("halfvec" if rounded else "vector"), Literal(space.dimensions)
    )
    return SQL(
        "WITH near AS MATERIALIZED (SELECT tenant, digest, embedding <=> %(vector)s::vector AS distance "
        "FROM {table} WHERE tenant = %(tenant)s AND partition = %(partition)s AND expires_ms > %(now)s "
        "ORDER BY {expression} <=> {vector} LIMIT %(limit)s * {more}) "
        "SELECT {columns}, near.distance, 0 FROM near "
        "JOIN {table} t ON t.tenant = near.tenant AND t.digest = near.digest "
        "ORDER BY near.distance LIMIT %(limit)s"
    ).format(
        table=Identifier(space.name),
        expression=expression,
        vector=vector,
        more=Literal(RESCORED if rounded else 1),
        columns=_COLUMNS,
    )


def hit_of(row: tuple[Any, ...]) -> Hit:
    """Read a hit."""
    tenant, digest, question, nonce, metadata, stored_ms, expires_ms, distance, _ = row
    return Hit(
        id=EntryId(tenant, digest),
        score=1.0 - distance,
        question=question.decode(),
        nonce=nonce,
        metadata=metadata.decode(),
        stored_at=stored_ms / 1000,
        expires_at=expires_ms / 1000,
    )


def count_statement(name: str, tenant_tag: str | None, partition: str | None) -> Composed:
    """Count what matches. Parameters by name: tenant, partition."""
    return SQL("SELECT count(*) FROM {} WHERE {}").format(Identifier(name), _matching(tenant_tag, partition))


def evict_statement(name: str, tenant_tag: str | None) -> Composed:
    """Delete those stored first. Parameters by name: tenant, number."""
    return SQL(
        "DELETE FROM {0} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {0} WHERE {1} ORDER BY stored_ms "
        "LIMIT %(number)s FOR UPDATE SKIP LOCKED))"
    ).format(Identifier(name), _matching(tenant_tag, None))


def expire_statement(name: str) -> Composed:
    """Delete what has expired. Parameters by name: now, number."""
    return SQL(
        "DELETE FROM {0} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {0} WHERE expires_ms <= %(now)s "
        "LIMIT %(number)s FOR UPDATE SKIP LOCKED))"
    ).format(Identifier(name))


def vector_text(vector: Vector) -> str:
    """Write a vector as pgvector reads it; nine digits bring every float32 back as it was."""
    return f"[{','.join(map('%.9g'.__mod__, vector))}]"


def milliseconds(seconds: float) -> int:
    """Round Unix seconds to milliseconds."""
    return round(seconds * 1000)


def _matching(tenant_tag: str | None, partition: str | None) -> SQL | Composed:
    conditions = []
    if tenant_tag is not None:
        conditions.append(SQL("tenant = %(tenant)s"))
    if partition is not None:
        conditions.append(SQL("partition = %(partition)s"))
    return SQL(" AND ").join(conditions) if conditions else SQL("true")


def _is_rounded(space: VectorSpace) -> bool:
    return space.quantization is Quantization.SCALAR or space.dimensions > VECTOR_MAX


def _indexed(space: VectorSpace) -> tuple[Composed, SQL] | None:
    """Return what is indexed and by which operators; None where there are too many dimensions."""
    if space.dimensions > HALFVEC_MAX:
        return None
    if not _is_rounded(space):
        return Composed([Identifier("embedding")]), SQL("vector_cosine_ops")
    rounded = SQL("(embedding::halfvec({}))").format(Literal(space.dimensions))
    return rounded, SQL("halfvec_cosine_ops")
