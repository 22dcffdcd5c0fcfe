"""The store of one run: a server of ours, somebody else's, or the gateway's memory, behind one URL.

The session opens it before the gateway starts and watches over a server of ours.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, Self

from cachewright.local.store_choice import GivenUrl, Memory, OwnServer, StoreChoice
from cachewright.local.store_server import StoreServer
from cachewright.local.telling import Tell
from cachewright.stores.opening import memory_url

WATCH_SECONDS: Final = 0.5


class RunStore:
    """The store of one run."""

    def __init__(self, url: str, shown: str, server: StoreServer | None = None) -> None:
        self.url = url
        self.shown = shown
        """For people; without a password."""
        self.server = server
        self._wanted_bytes = 0
        self._size_bytes = 0

    @classmethod
    async def open(cls, choice: StoreChoice, folder: Path, cache_id: str, max_memory_bytes: int) -> Self:
        """Open the store, in `folder` if it needs one; raises LocalError where our server does not start."""
        match choice:
            case GivenUrl(url):
                return cls(url, _without_login(url))
            case Memory():
                return cls(memory_url(max_memory_bytes), "this process's memory; entries go when it ends")
            case OwnServer(shown=shown):
                server = StoreServer(choice, folder, cache_id, max_memory_bytes)
                try:
                    await server.start()
                except BaseException:
                    server.close()
                    raise
                store = cls(server.url, f"{shown}, private to this run; entries go when it ends", server)
                store._size_bytes = store._wanted_bytes = max_memory_bytes
                return store

    def resize(self, max_memory_bytes: int) -> None:
        """Ask for another size; a server of ours is started anew, as its pod would be in a cluster."""
        self._wanted_bytes = max_memory_bytes

    async def watch(self, tell: Tell) -> None:
        """Start a server of ours anew when it has died or needs another size; until cancelled."""
        if self.server is None:
            return
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self.server.has_ended:
                tell("the store has ended by itself; it is started anew, empty")
            elif self._size_bytes != self._wanted_bytes:
                tell("the store gets another size; it is started anew, empty")
            else:
                continue
            self._size_bytes = self._wanted_bytes
            await self.server.restart(self._size_bytes)

    def close(self) -> None:
        """End a server of ours."""
        if self.server is not None:
            self.server.close()


def _without_login(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"
