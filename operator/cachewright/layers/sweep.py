"""The sweep: one walk over all keys of a cache, which counts what is there and removes what nobody can reach.

Out of reach are, first, the entries of keyspaces that the record no longer names: its counter of incarnations
only rises, so one that was given and is gone is gone for ever. A younger one than the record knows is left
alone. Second, the entries that were retracted: a counter that they depend on was raised since. Entries stored
later are under its new value, so they are looked for only where something has changed since the last sweep.
Called by the janitor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

from cachewright.keys.digest import EntryName
from cachewright.keys.entry_key import parse_entry_key
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.layers.entry import generations_in, head_bytes_of
from cachewright.layers.pace import Pace
from cachewright.layers.reclaim import PAGE_SIZE
from cachewright.stores.protocols import CacheStore
from cachewright.stores.reclaim import Page

HEAD_BYTES: Final = 512
"""Read of each entry at first; enough for what depends on a tenant, a layer and a few documents."""


class Sweep:
    """One sweep."""

    def __init__(self, store: CacheStore, record: Record, pace: Pace, *, finds_retracted: bool) -> None:
        """`finds_retracted`: look into entries for what they depend on, which costs a read of each."""
        self._store = store
        self._cache_id = record.cache_id
        self._newest = record.incarnation
        self._kept = frozenset(record.keyspaces())
        self._pace = pace
        self._finds_retracted = finds_retracted
        self.entries: dict[Keyspace, int] = dict.fromkeys(self._kept, 0)
        """Left there so far, of the keyspaces that the record names."""
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
        names = [name for key in page.keys if (name := parse_entry_key(self._cache_id, key)) is not None]
        kept = [name for name in names if name.keyspace in self._kept]
        gone = [
            name
            for name in names
            if name.keyspace not in self._kept and name.keyspace.incarnation <= self._newest
        ]
        retracted = await self._retracted(kept) if self._finds_retracted and kept else []
        for name in kept:
            self.entries[name.keyspace] += 1
        for name in retracted:
            self.entries[name.keyspace] -= 1
        return await self._unlink([*gone, *retracted])

    async def _retracted(self, names: Sequence[EntryName]) -> list[EntryName]:
        """Return those that no look-up comes to any more."""
        heads = await self._heads(names)
        dependent = [
            (name, depends_on)
            for name, head in zip(names, heads, strict=True)
            if (depends_on := generations_in(head))
        ]
        # Read after the entries: none is stored under a value that its counter does not have yet, so one that
        # differs is older.
        places = [(name.tag, list(depends_on)) for name, depends_on in dependent]
        current = await self._store.read_generations_at(self._cache_id, places)
        return [
            name
            for (name, depends_on), held in zip(dependent, current, strict=True)
            if tuple(depends_on.values()) != held
        ]

    async def _heads(self, names: Sequence[EntryName]) -> list[bytes]:
        """Read what entries begin with, of those that depend on much a second time."""
        heads = await self._store.read_heads(names, HEAD_BYTES)
        longer = [at for at, head in enumerate(heads) if head_bytes_of(head) > HEAD_BYTES]
        if longer:
            most = max(head_bytes_of(heads[at]) for at in longer)
            whole = await self._store.read_heads([names[at] for at in longer], most)
            for at, head in zip(longer, whole, strict=True):
                heads[at] = head
        return heads

    async def _unlink(self, names: Sequence[EntryName]) -> int:
        keys: dict[Keyspace, list[str]] = {}
        for name in names:
            keys.setdefault(name.keyspace, []).append(name.key)
        return sum(
            [await self._store.unlink(self._cache_id, keyspace, some) for keyspace, some in keys.items()]
        )
