"""What the embedding layer needs of its cold tier, as a Protocol, and the values that go in and out.

A *space* holds the vectors of one keyspace, and has no TTL. Generations stand beside the vectors, because a
cold tier outlives Redis: what was retracted must stay out of reach also after Redis lost its counters. A
vector carries the sum of its counters, as `keys.embedding` names them, from when its text was looked up, and
is found only while the sum is the same; counters only rise, so an equal sum means that none was raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cachewright.keys.keyspaces import Keyspace


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Where the vectors of one keyspace are kept."""

    cache_id: str
    keyspace: Keyspace


@dataclass(frozen=True, slots=True)
class ColdEmbedding:
    """One vector."""

    digest: str
    """Of its input, 64 hex digits, with all generations 0."""
    vector: bytes
    """float32, little-endian."""
    n_tokens: int
    """0 where it is not known."""


@dataclass(frozen=True, slots=True)
class ColdFound:
    """What one look-up found."""

    generation: int
    """Sum of the counters at that moment; to be given back when what was not found is stored."""
    embeddings: dict[str, ColdEmbedding]
    """Those that were found, by digest."""


class EmbeddingStore(Protocol):
    """Vectors without a TTL. All methods raise StoreError's subclasses, and each is bounded in time."""

    async def ensure(self, space: EmbeddingSpace) -> None:
        """Make the space unless it is there; raises StoreUnfit where the server cannot hold it."""

    async def find(self, space: EmbeddingSpace, tenant_tag: str, digests: Sequence[str]) -> ColdFound:
        """Look up vectors of a tenant; raises SpaceNotFound where the space is gone."""

    async def write(
        self,
        space: EmbeddingSpace,
        tenant_tag: str,
        embeddings: Sequence[ColdEmbedding],
        generation: int,
    ) -> bool:
        """Store vectors unless a counter was raised since `generation` was read; tells whether they were.

        Raises SpaceNotFound where the space is gone: it never comes back by a late write.
        """

    async def raise_generations(self, cache_id: str, counters: Sequence[str]) -> None:
        """Raise counters by one: no vector stored under them before is found any more."""

    async def count(self, space: EmbeddingSpace) -> int:
        """Count vectors, roughly where they are many."""

    async def delete_unreachable(self, space: EmbeddingSpace, limit: int) -> int:
        """Remove up to `limit` vectors whose counters were raised, and return how many."""

    async def list_spaces(self, cache_id: str) -> Sequence[Keyspace]:
        """List the keyspaces that have a space of this cache."""

    async def drop(self, cache_id: str, keyspace: Keyspace) -> bool:
        """Remove a space with all in it; tells whether there was one.

        Raises StoreUnavailable where it is in use for too long: try again later.
        """

    async def aclose(self) -> None:
        """Close all connections."""
