"""Vectors without a TTL in process memory: the PostgreSQL store's twin, for tests of what stands on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cachewright.errors import SpaceNotFound
from cachewright.keys.embedding import embedding_counters
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.embeddings import ColdEmbedding, ColdFound, EmbeddingSpace

_Rows = dict[tuple[str, str], tuple[int, ColdEmbedding]]
"""Generation and vector, by tenant tag and digest."""


@dataclass(slots=True)
class MemoryEmbeddingStore:
    """EmbeddingStore in process memory."""

    _spaces: dict[EmbeddingSpace, _Rows] = field(default_factory=dict)
    _generations: dict[tuple[str, str], int] = field(default_factory=dict)
    """By cache and counter."""

    async def ensure(self, space: EmbeddingSpace) -> None:
        """Make the space unless it is there."""
        self._spaces.setdefault(space, {})

    async def find(self, space: EmbeddingSpace, tenant_tag: str, digests: Sequence[str]) -> ColdFound:
        """Look up vectors of a tenant."""
        rows, generation = self._rows(space), self._generation(space, tenant_tag)
        held = [rows[tenant_tag, digest] for digest in digests if (tenant_tag, digest) in rows]
        return ColdFound(generation, {row.digest: row for at, row in held if at == generation})

    async def write(
        self, space: EmbeddingSpace, tenant_tag: str, embeddings: Sequence[ColdEmbedding], generation: int
    ) -> bool:
        """Store vectors unless a counter was raised since."""
        rows = self._rows(space)
        if generation != self._generation(space, tenant_tag):
            return False
        for held in embeddings:
            rows[tenant_tag, held.digest] = (generation, held)
        return True

    async def raise_generations(self, cache_id: str, counters: Sequence[str]) -> None:
        """Raise counters by one."""
        for counter in set(counters):
            self._generations[cache_id, counter] = self._generations.get((cache_id, counter), 0) + 1

    async def count(self, space: EmbeddingSpace) -> int:
        """Count vectors."""
        return len(self._rows(space))

    async def delete_unreachable(self, space: EmbeddingSpace, limit: int) -> int:
        """Remove vectors whose counters were raised."""
        rows = self._rows(space)
        dead = [key for key, (at, _) in rows.items() if at != self._generation(space, key[0])][:limit]
        for key in dead:
            del rows[key]
        return len(dead)

    async def list_spaces(self, cache_id: str) -> Sequence[Keyspace]:
        """List the keyspaces that have a space of this cache."""
        return [space.keyspace for space in self._spaces if space.cache_id == cache_id]

    async def drop(self, cache_id: str, keyspace: Keyspace) -> bool:
        """Remove a space with all in it."""
        return self._spaces.pop(EmbeddingSpace(cache_id, keyspace), None) is not None

    async def aclose(self) -> None:
        """Keep everything: there is no connection."""

    def _rows(self, space: EmbeddingSpace) -> _Rows:
        if space not in self._spaces:
            raise SpaceNotFound(f"there is no space {space.keyspace}")
        return self._spaces[space]

    def _generation(self, space: EmbeddingSpace, tenant_tag: str) -> int:
        counters = embedding_counters(tenant_tag)
        return sum(self._generations.get((space.cache_id, counter), 0) for counter in counters)
