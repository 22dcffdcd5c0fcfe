"""Vectors, spaces and entries for tests of what stands on a vector store."""

from __future__ import annotations

import hashlib
import math
import random
import secrets
from dataclasses import dataclass, field

from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.vectors import (
    EntryId,
    Marker,
    Vector,
    VectorEntry,
    VectorSpace,
    VectorStore,
    vector_of,
)

NOW = 1_800_000_000.0
"""Unix seconds; any time would do, since the stores are told the time."""

PROBE_TEXT = "What is the capital of France?"


def random_vector(seed: object, dimensions: int = 8) -> Vector:
    """Return a vector of length one in a direction that the seed chooses."""
    source = random.Random(repr(seed))  # noqa: S311 - the same each time is what is wanted
    values = [source.gauss(0, 1) for _ in range(dimensions)]
    norm = math.sqrt(sum(value * value for value in values))
    return vector_of(value / norm for value in values)


def near(vector: Vector, cosine: float, seed: object = 0) -> Vector:
    """Return a vector of length one at that cosine to one of length one."""
    other = random_vector(seed, len(vector))
    along = sum(map(float.__mul__, vector, other))
    aside = [b - along * a for a, b in zip(vector, other, strict=True)]
    norm = math.sqrt(sum(value * value for value in aside))
    sine = math.sqrt(1 - cosine * cosine)
    return vector_of(cosine * a + sine * b / norm for a, b in zip(vector, aside, strict=True))


def vector_entry(
    number: object,
    vector: Vector | None = None,
    *,
    tenant: str = "tenant-a",
    partition: str = "partition-1",
    dimensions: int = 8,
    nonce: bytes = b"nonce",
    stored_at: float = NOW,
    ttl_seconds: float = 3600.0,
) -> VectorEntry:
    """Build an entry whose number chooses its id and, unless given, its direction."""
    digest = hashlib.sha256(repr(number).encode()).hexdigest()
    return VectorEntry(
        id=EntryId(tenant, digest),
        vector=random_vector(number, dimensions) if vector is None else vector,
        partition=partition,
        question=f"Question {number}?",
        nonce=nonce,
        body=f'{{"answer": "{number}"}}'.encode(),
        metadata=f'{{"number": "{number}"}}',
        stored_at=stored_at,
        expires_at=stored_at + ttl_seconds,
    )


@dataclass
class VectorSubject:
    """A vector store under test, and a space in it that nobody else uses."""

    store: VectorStore
    cache_id: str = field(default_factory=lambda: secrets.token_hex(8))
    dimensions: int = 8

    def space(self, incarnation: int = 1, dimensions: int | None = None) -> VectorSpace:
        """Return a space of this cache."""
        keyspace = Keyspace("ab" * 8, incarnation)
        return VectorSpace(self.cache_id, keyspace, dimensions or self.dimensions)

    async def opened(self, incarnation: int = 1) -> VectorSpace:
        """Return a space of this cache that exists."""
        space = self.space(incarnation)
        await self.ensure(space)
        return space

    async def ensure(self, space: VectorSpace, probe: Vector | None = None) -> Marker:
        """Make a space."""
        vector = random_vector("probe", space.dimensions) if probe is None else probe
        return await self.store.ensure(space, PROBE_TEXT, vector)
