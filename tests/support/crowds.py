"""A vector store full of other tenants' entries, and how well a small tenant finds its own among them.

Others hold the very questions that the small tenant asks, nearer to them than its own entries are: whoever
filters after having searched finds nothing. Used by the store tests and by the benchmark.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from psycopg.sql import SQL, Identifier

from cachewright.stores.postgres_sql import create_statements, put_parameters
from cachewright.stores.postgres_vectors import PostgresVectorStore
from cachewright.stores.qdrant_points import entry_point
from cachewright.stores.qdrant_vectors import QdrantVectorStore
from cachewright.stores.vectors import EntryId, Vector, VectorEntry, VectorSpace, VectorStore
from tests.support.vectors import NOW

OWN: Final = "small-tenant"
PARTITION: Final = "partition"
REPEAT_COSINE: Final = 0.96
"""How near a repeat is to the question that was stored."""

BATCH: Final = 500
FILL_SECONDS: Final = 1800.0

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Finding:
    """How repeats were found."""

    recall: float
    """Part of the repeats whose own entry came first."""
    seconds: tuple[float, ...]
    """Of each look-up, sorted."""

    def percentile_ms(self, part: float) -> float:
        """Return a percentile of the look-ups, in milliseconds."""
        return 1000 * self.seconds[min(len(self.seconds) - 1, int(part * len(self.seconds)))]


class Crowd:
    """Entries of one small tenant and of many others."""

    def __init__(self, others: int, *, own: int = 10, tenants: int = 100, dimensions: int = 384) -> None:
        self._rng = np.random.default_rng(20261130)
        self.others, self.tenants, self.dimensions = others, tenants, dimensions
        self.own = self._unit(self._rng.normal(size=(own, dimensions)))

    def entries(self) -> Iterator[VectorEntry]:
        """Give the others' entries, then the small tenant's own."""
        for begin in range(0, self.others, BATCH):
            count = min(BATCH, self.others - begin)
            noise = self._unit(self._rng.normal(size=(count, self.dimensions)))
            # every tenth lies beside a question of the small tenant
            near = self.turned(self.own[np.arange(count) % len(self.own)], 0.99)
            chosen = (np.arange(count) % 10 == 0)[:, None]
            for offset, row in enumerate(np.where(chosen, near, noise)):
                number = begin + offset
                yield _entry(f"tenant-{number % self.tenants}", f"o{number}", row)
        for number, row in enumerate(self.own):
            yield _entry(OWN, f"s{number}", row)

    def repeats(self, count: int) -> Iterator[tuple[int, Vector]]:
        """Give questions near the small tenant's own, with the number of the one each repeats."""
        chosen = self._rng.integers(len(self.own), size=count)
        for number, row in zip(chosen, self.turned(self.own[chosen], REPEAT_COSINE), strict=True):
            yield int(number), array("f", row.tobytes())

    def turned(self, rows: Matrix, cosine: float) -> Matrix:
        """Turn unit vectors by an angle, each in a direction of its own."""
        noise = self._rng.normal(size=rows.shape).astype(np.float32)
        aside = self._unit(noise - (noise * rows).sum(1, keepdims=True) * rows)
        turned: Matrix = (cosine * rows + np.sqrt(1 - cosine**2) * aside).astype(np.float32)
        return turned

    def _unit(self, rows: npt.NDArray[np.floating]) -> Matrix:
        unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit


async def fill(store: VectorStore, space: VectorSpace, crowd: Crowd) -> None:
    """Store a crowd by each store's own way for bulk."""
    if isinstance(store, PostgresVectorStore):
        await _copy(store, space, crowd)
        return
    batch: list[VectorEntry] = []
    for entry in crowd.entries():
        batch.append(entry)
        if len(batch) == BATCH:
            await _store_batch(store, space, batch)
            batch = []
    await _store_batch(store, space, batch)


async def find(store: VectorStore, space: VectorSpace, crowd: Crowd, count: int) -> Finding:
    """Look repeats up, one after the other."""
    found, seconds = 0, []
    for number, vector in crowd.repeats(count):
        began = time.perf_counter()
        hits = await store.search(space, vector, OWN, PARTITION, NOW)
        seconds.append(time.perf_counter() - began)
        assert all(hit.id.tenant_tag == OWN for hit in hits)
        found += bool(hits) and hits[0].question == f"s{number}"
    return Finding(found / count, tuple(sorted(seconds)))


def _entry(tenant: str, name: str, row: Matrix) -> VectorEntry:
    return VectorEntry(
        id=EntryId(tenant, name.zfill(64)),
        vector=array("f", row.tobytes()),
        partition=PARTITION,
        question=name,
        nonce=b"nonce",
        body=b"x" * 1500,
        metadata="",
        stored_at=NOW,
        expires_at=NOW + 3600,
    )


async def _copy(store: PostgresVectorStore, space: VectorSpace, crowd: Crowd) -> None:
    """Copy the rows and build the graph afterwards, which is many times quicker than row by row."""
    table = Identifier(space.name)
    async with store._link.use("fill", FILL_SECONDS) as connection, connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL maintenance_work_mem = '512MB'")
        await connection.execute(SQL("DROP INDEX {}").format(Identifier(f"{space.name}_embedding_idx")))
        async with (
            connection.cursor() as cursor,
            cursor.copy(SQL("COPY {} FROM STDIN").format(table)) as copy,
        ):
            for entry in crowd.entries():
                await copy.write_row(put_parameters(entry))
        await connection.execute(create_statements(space)[-1])
        await connection.execute(SQL("ANALYZE {}").format(table))


async def _store_batch(store: VectorStore, space: VectorSpace, batch: list[VectorEntry]) -> None:
    if isinstance(store, QdrantVectorStore):
        async with store._link.use("fill", FILL_SECONDS) as client:
            await client.upsert(space.name, [entry_point(entry) for entry in batch], wait=True)
        return
    for entry in batch:
        await store.put(space, entry)
