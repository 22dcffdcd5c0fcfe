"""From a store's URL to the store: `memory://` is the process's own memory, everything else Redis or Valkey.

Called by the gateway; in a cluster URLs are always those of a server.
"""

from __future__ import annotations

import re
import time
from typing import Final

from cachewright.stores.memory import DEFAULT_MAX_BYTES, MemoryCacheStore
from cachewright.stores.protocols import CacheStore
from cachewright.stores.redis_entries import open_cache_store

_MEMORY: Final = re.compile(r"memory://(?:\?max_bytes=([1-9][0-9]{0,15}))?")


def memory_url(max_bytes: int) -> str:
    """Return the URL of a store in process memory of that size."""
    return f"memory://?max_bytes={max_bytes}"


def open_store(url: str, call_seconds: float = 0.0) -> CacheStore:
    """Open a store that connects when it is first used; raises InvalidInput for a URL that is not one.

    A call may take `call_seconds` where that is longer than usual.
    """
    if found := _MEMORY.fullmatch(url):
        return MemoryCacheStore(time.monotonic, max_bytes=int(found[1] or DEFAULT_MAX_BYTES))
    return open_cache_store(url, call_seconds)
