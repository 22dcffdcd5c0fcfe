"""Tickets and counts in Redis or Valkey: what the semantic layer keeps beside its vectors.

A ticket is an entry like any other, that grows by what was made from it. Used through CacheStore.
"""

from __future__ import annotations

from cachewright.keys.digest import EntryName
from cachewright.stores.redis_client import RedisLink
from cachewright.stores.redis_scripts import COUNT_UP, EXTEND_ENTRY


class RedisTicketStore:
    """TicketStore on Redis or Valkey."""

    _link: RedisLink

    async def extend(self, name: EntryName, prefix: bytes, addition: bytes, most_bytes: int) -> bool:
        """Append to an entry that begins with `prefix`; tells whether it was done."""
        arguments: list[str | int | bytes] = [prefix, addition, most_bytes]
        async with self._link.use("extend") as client:
            return int(await client.eval(EXTEND_ENTRY, 1, name.key, *arguments)) == 1

    async def count_up(self, name: EntryName, ttl_seconds: float) -> int:
        """Count one more, and return the count."""
        ttl_ms = max(1, round(ttl_seconds * 1000))
        async with self._link.use("count") as client:
            return int(await client.eval(COUNT_UP, 1, name.count_key, ttl_ms))
