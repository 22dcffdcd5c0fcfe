"""Markers in Redis or Valkey: keys that say something by being there, until their TTL ends.

Used for credentials that the upstream accepted, through CacheStore.
"""

from __future__ import annotations

from cachewright.keys.credentials import MarkerName
from cachewright.stores.redis_client import RedisLink


class RedisMarkerStore:
    """MarkerStore on Redis or Valkey."""

    _link: RedisLink

    async def set_marker(self, name: MarkerName, ttl_seconds: float) -> None:
        """Set a marker, or set its TTL anew."""
        async with self._link.use("set a marker") as client:
            await client.set(name.key, b"1", px=max(1, round(ttl_seconds * 1000)))

    async def marker_seconds(self, name: MarkerName) -> float:
        """Return how long a marker stays; 0 where there is none."""
        async with self._link.use("look at a marker") as client:
            return max(0, await client.pttl(name.key)) / 1000

    async def remove_marker(self, name: MarkerName) -> None:
        """Remove a marker if it is there."""
        async with self._link.use("remove a marker") as client:
            await client.delete(name.key)
