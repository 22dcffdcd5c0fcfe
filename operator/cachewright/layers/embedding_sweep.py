"""The sweep of the cold tier: vectors that were retracted, and spaces nobody needs.

The tier knows no TTL, so what nobody can reach lies there until somebody takes it away. Called by the janitor
after its walk over Redis.
"""

from __future__ import annotations

from typing import Final

from cachewright.errors import SpaceNotFound
from cachewright.keys.record import Record
from cachewright.layers.pace import Pace
from cachewright.stores.embeddings import EmbeddingSpace, EmbeddingStore

BATCH: Final = 500
"""Vectors that go by one call, so that no call keeps a server busy for long."""


class EmbeddingSweep:
    """Sweeps one store."""

    def __init__(self, store: EmbeddingStore) -> None:
        self._store = store

    async def run(self, record: Record, pace: Pace) -> int:
        """Sweep every space of the record's cache, and return how many vectors went; raises StoreError.

        A space that the record no longer names is dropped whole, and not counted.
        """
        kept = frozenset(record.keyspaces())
        removed = 0
        for keyspace in await self._store.list_spaces(record.cache_id):
            if keyspace in kept:
                removed += await self._tidy(EmbeddingSpace(record.cache_id, keyspace), pace)
            elif keyspace.incarnation <= record.incarnation:
                await self._store.drop(record.cache_id, keyspace)
        return removed

    async def _tidy(self, space: EmbeddingSpace, pace: Pace) -> int:
        removed = 0
        try:
            while gone := await self._store.delete_unreachable(space, BATCH):
                removed += gone
                await pace.after(gone)
        except SpaceNotFound:  # dropped meanwhile
            pass
        return removed
