"""Locks in Redis or Valkey: each is a key beside its entry that only its holder may delete, or its TTL.

Used for single-flight across gateways, through CacheStore.
"""

from __future__ import annotations

from cachewright.keys.digest import EntryName
from cachewright.stores.redis_client import RedisLink
from cachewright.stores.redis_scripts import RELEASE_LOCK


class RedisLockStore:
    """LockStore on Redis or Valkey."""

    _link: RedisLink

    async def acquire_lock(self, name: EntryName, token: str, ttl_seconds: float) -> bool:
        """Take the lock unless somebody holds it; tells whether it was taken."""
        ttl_ms = max(1, round(ttl_seconds * 1000))
        async with self._link.use("take a lock") as client:
            return bool(await client.set(name.lock_key, token, nx=True, px=ttl_ms))

    async def release_lock(self, name: EntryName, token: str) -> bool:
        """Free the lock if it is held with this token; tells whether it was."""
        async with self._link.use("free a lock") as client:
            return bool(await client.eval(RELEASE_LOCK, 1, name.lock_key, token))

    async def lock_holder(self, name: EntryName) -> str | None:
        """Return the token that holds the lock; None while it is free."""
        async with self._link.use("look at a lock") as client:
            token = await client.get(name.lock_key)
        return token.decode() if isinstance(token, bytes) else token
