"""The upkeep of L0: reads the marks of all tags while copies are asked for, and listens for changed keys.

Owned by whoever owns the store. Trouble with the store needs no handling here: marks that are not read grow
old by themselves, and then nothing is served from L0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from cachewright.errors import StoreError
from cachewright.layers.local import LocalCache
from cachewright.stores.protocols import TrackingStore

READ_SECONDS: Final = 0.4
"""Between two reads of the marks, which count for a second: so one that is late or lost does no harm."""


class LocalUpkeep:
    """Two tasks that keep one LocalCache honest."""

    def __init__(
        self, store: TrackingStore, cache_id: str, local: LocalCache, clock: Callable[[], float]
    ) -> None:
        """`clock` gives monotonic seconds, the same that `local` goes by."""
        self._store = store
        self._cache_id = cache_id
        self._local = local
        self._clock = clock
        self._wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin, in the running loop."""
        self._local.wanted = self._wanted.set
        self._tasks = [
            asyncio.create_task(self._read_marks()),
            asyncio.create_task(self._store.follow_keys(self._cache_id, self._local)),
        ]

    async def aclose(self) -> None:
        """End; what L0 holds is served for a second at most."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read_marks(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            started = self._clock()
            with suppress(StoreError):  # then they grow old
                self._local.marks.saw_all(await self._store.read_marks(self._cache_id), started)
            await asyncio.sleep(READ_SECONDS)
