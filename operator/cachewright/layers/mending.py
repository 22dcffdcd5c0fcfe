"""Mending: from what a look-up finds amiss with the store's copy of the record to a store that is whole.

A store that was emptied or knows an older record is given ours; one that failed over to an older copy of
itself has all of its entries retracted. Each is done once for all look-ups that notice.
Used by the exact layer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cachewright.keys.generations import layer_counter
from cachewright.keys.record import Record
from cachewright.keys.scheme import TAGS
from cachewright.layers.background import retrieved
from cachewright.layers.known_record import KnownRecord
from cachewright.stores.protocols import CacheStore, Marks


class Mending:
    """What one process does for one cache's store."""

    def __init__(self, store: CacheStore, cache_id: str, layer: str, known: KnownRecord) -> None:
        self._store = store
        self._cache_id = cache_id
        self._layer = layer
        self._known = known
        self._highest = known.highest
        self._refilling: asyncio.Task[int] | None = None
        self._disowning: asyncio.Task[None] | None = None

    def begin(self) -> int:
        """Number a look-up that begins."""
        return self._highest.begin()

    async def judge(self, record: Record, tag: str, marks: Marks | None, read: int) -> Marks | None:
        """Return the marks that a look-up found where they can be trusted, and may be newer than our record.

        None once the store was mended: look again. Raises StoreError.
        """
        if self._highest.went_back(tag, marks, read):
            await self._disown(read)
            return None
        if marks is None or marks.revision < record.revision:
            await self._refill(record)
            return None
        return marks

    async def look(self) -> None:
        """Look at the marks under all tags, learn a newer record, and mend what is amiss. Raises StoreError.

        A gateway that does so each second knows of whatever was reported as done, and would notice its loss.
        """
        read = self._highest.begin()
        marks = await self._store.read_marks(self._cache_id)
        went_back = [self._highest.went_back(tag, seen, read) for tag, seen in marks.items()]
        if any(went_back):
            await self._disown(read)
        revisions = [marks[tag].revision if tag in marks else -1 for tag in TAGS]
        best = self._known.best
        if best is None or max(revisions) > best.revision:
            record = await self._store.read_record(self._cache_id)
            if record is not None:
                self._known.offer(record)
        elif min(revisions) < best.revision:
            await self._refill(best)

    async def retract(self, counters: Sequence[str]) -> None:
        """Raise counters, and all else should the store turn out to have gone back. Raises StoreError."""
        await self.look()
        read = self._highest.begin()
        raised = await self._store.raise_generations(self._cache_id, counters)
        went_back = [self._highest.raised(tag, each, read) for tag, each in raised.items()]
        if any(went_back):
            await self._disown(read)

    async def _refill(self, record: Record) -> None:
        """Publish our record to a store that holds none or an older one."""
        if self._refilling is None:
            self._refilling = asyncio.ensure_future(self._store.publish_record(record))
            self._refilling.add_done_callback(self._refilled)
        await asyncio.shield(self._refilling)

    def _refilled(self, task: asyncio.Task[int]) -> None:
        self._refilling = None
        retrieved(task)

    async def _disown(self, read: int) -> None:
        """Retract all that a store holds which went back: the retractions that it lost nobody can name."""
        while not self._highest.is_settled(read):
            if self._disowning is None:
                self._disowning = asyncio.ensure_future(self._retract_all())
                self._disowning.add_done_callback(retrieved)
            await asyncio.shield(self._disowning)

    async def _retract_all(self) -> None:
        # Of all layers: they share what is known of the marks, so no other one will notice.
        layers = {self._layer, *(self._known.best.layers if self._known.best else ())}
        counters = [layer_counter(name) for name in sorted(layers)]
        try:
            raised = await self._store.raise_generations(self._cache_id, counters)
            self._highest.settle(raised)
        finally:
            # Not in a callback, which runs later: until then whoever awaits the task that is over goes on at
            # once, finds nothing settled for it, and awaits it again, without ever letting the callback run.
            self._disowning = None
