"""What entries in Redis or Valkey begin with: enough to count them without carrying their bodies about.

Used by the counts of a retraction, through CacheStore.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright.keys.digest import EntryName
from cachewright.stores.redis_client import RedisLink


class RedisHeadStore:
    """HeadStore on Redis or Valkey."""

    _link: RedisLink

    async def read_heads(self, names: Sequence[EntryName], most_bytes: int) -> list[bytes]:
        """Read the first bytes of entries, in one round trip to each server."""
        if not names:
            return []
        async with self._link.use("read the heads of entries") as client:
            pipeline = client.pipeline(transaction=False)
            for name in names:
                pipeline.getrange(name.key, 0, most_bytes - 1)
            heads: list[bytes] = await pipeline.execute()
        return heads
