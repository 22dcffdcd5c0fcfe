"""The sweep: one walk over all keys of a cache, which counts what is there and removes what nobody can reach.

Out of reach are the entries of keyspaces that the record no longer names: its counter of incarnations only
rises, so one that was given and is gone is gone for ever. A younger one than the record knows is left alone.
Called by the janitor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from cachewright.keys.entry_key import parse_entry_key
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.layers.pace import Pace
from cachewright.layers.reclaim import PAGE_SIZE
from cachewright.stores.reclaim import Page, ReclaimStore


class Sweep:
    """One sweep."""

    def __init__(self, store: ReclaimStore, record: Record, pace: Pace) -> None:
        self._store = store
        self._cache_id = record.cache_id
        self._newest = record.incarnation
        self._kept = frozenset(record.keyspaces())
        self._pace = pace
        self.entries: dict[Keyspace, int] = dict.fromkeys(self._kept, 0)
        """Found so far, of the keyspaces that the record names."""
        self.removed = 0

    async def run(self, progress: Callable[[int], Awaitable[None]]) -> None:
        """Walk once over everything; `progress` is told after each step how much was removed by it.

        Raises StoreError, and then has done a part of it.
        """
        async with aclosing(self._store.walk(self._cache_id, None, PAGE_SIZE)) as pages:
            async for page in pages:
                removed = await self._tidy(page)
                self.removed += removed
                await progress(removed)
                await self._pace.after(page.examined)

    async def _tidy(self, page: Page) -> int:
        gone: dict[Keyspace, list[str]] = {}
        for key in page.keys:
            name = parse_entry_key(self._cache_id, key)
            if name is None:  # the record's copies, markers and locks; their TTLs end them
                continue
            if name.keyspace in self._kept:
                self.entries[name.keyspace] += 1
            elif name.keyspace.incarnation <= self._newest:
                gone.setdefault(name.keyspace, []).append(key)
        removed = 0
        for keyspace, keys in gone.items():
            removed += await self._store.unlink(self._cache_id, keyspace, keys)
        return removed
