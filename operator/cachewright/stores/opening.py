"""From a store's URL to the store: `memory://` is the process's own memory, everything else Redis or Valkey.

Called by the gateway; in a cluster URLs are always those of a server.
"""

from __future__ import annotations

import time
from typing import Final

from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.protocols import CacheStore
from cachewright.stores.redis_entries import open_cache_store

MEMORY_URL: Final = "memory://"


def open_store(url: str) -> CacheStore:
    """Open a store that connects when it is first used; raises InvalidInput for a URL that is not one."""
    if url == MEMORY_URL:
        return MemoryCacheStore(time.monotonic)
    return open_cache_store(url)
