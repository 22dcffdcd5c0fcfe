"""The sweep of a vector store: expired entries, spaces nobody needs, and entries above the bound.

Such stores know no TTL, so what has expired lies there until somebody takes it away; searches leave it out
meanwhile. Called by the janitor after its walk over Redis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cachewright.errors import SpaceNotFound
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.layers.pace import Pace
from cachewright.stores.vectors import VectorSpace, VectorStore

BATCH: Final = 500
"""Entries that go by one call, so that no call keeps a server busy for long."""

LAYER: Final = "Semantic"


class SpaceSweep:
    """Sweeps one vector store."""

    def __init__(self, store: VectorStore, max_entries: int | None, wall_clock: Callable[[], float]) -> None:
        """`max_entries` bounds the space in use; None: nothing does. `wall_clock` gives Unix seconds."""
        self._store = store
        self._max_entries = max_entries
        self._wall_clock = wall_clock

    async def run(self, record: Record, pace: Pace) -> int:
        """Sweep every space of the record's cache, and return how many entries went; raises StoreError.

        A space that the record no longer names is dropped whole, and not counted.
        """
        kept = frozenset(record.keyspaces())
        layer = record.layers.get(LAYER)
        removed = 0
        for keyspace in await self._store.list_spaces(record.cache_id):
            if keyspace in kept:
                bound = self._max_entries if layer is not None and keyspace == layer.keyspace else None
                removed += await self._tidy(record.cache_id, keyspace, bound, pace)
            elif keyspace.incarnation <= record.incarnation:
                await self._store.drop(record.cache_id, keyspace)
        return removed

    async def _tidy(self, cache_id: str, keyspace: Keyspace, bound: int | None, pace: Pace) -> int:
        space = VectorSpace(cache_id, keyspace, dimensions=0)  # what is not about vectors needs no length
        removed = 0
        try:
            while gone := await self._store.delete_expired(space, self._wall_clock(), BATCH):
                removed += gone
                await pace.after(gone)
            while bound is not None and (surplus := await self._store.count(space) - bound) > 0:
                gone = await self._store.evict_oldest(space, min(surplus, BATCH))
                removed += gone
                await pace.after(max(1, gone))
                if not gone:
                    break
        except SpaceNotFound:  # dropped meanwhile
            pass
        return removed
