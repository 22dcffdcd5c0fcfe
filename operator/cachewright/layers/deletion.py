"""Deletion of a cache from the stores that outlive its object: keys in Redis, spaces of vectors elsewhere.

Called by `cachewright janitor --delete-cache`. Only what carries the cache's id is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol

from cachewright.errors import StoreRefused
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.janitor import Drop
from cachewright.layers.pace import Pace
from cachewright.layers.reclaim import MOST_WALKS, PAGE_SIZE
from cachewright.stores.reclaim import ReclaimStore


class Spaces(Protocol):
    """What a store holds of caches, one space for each keyspace."""

    async def list_spaces(self, cache_id: str) -> Sequence[Keyspace]:
        """List the keyspaces that have a space with this cache's marker."""

    async def drop(self, cache_id: str, keyspace: Keyspace) -> bool:
        """Remove a space with all in it; tells whether there was one."""


async def delete_keys(store: ReclaimStore, cache_id: str, pace: Pace) -> int:
    """Remove every key of a cache and return how many there were, once a whole walk has found none.

    Raises StoreError where the store fails, or somebody keeps writing.
    """
    total = 0
    for _ in range(MOST_WALKS):
        found = 0
        async with aclosing(store.walk(cache_id, None, PAGE_SIZE)) as pages:
            async for page in pages:
                found += len(page.keys)
                total += await store.unlink(cache_id, None, page.keys) if page.keys else 0
                await pace.after(page.examined)
        if not found:
            return total
    raise StoreRefused(f"keys of the cache come back after {MOST_WALKS} walks: is a gateway still running?")


async def delete_spaces(store: Spaces, cache_id: str) -> int:
    """Drop every space of a cache and return how many there were; raises StoreError."""
    spaces = await store.list_spaces(cache_id)
    for keyspace in spaces:
        await store.drop(cache_id, keyspace)
    if await store.list_spaces(cache_id):
        raise StoreRefused("spaces of the cache come back: is a gateway still running?")
    return len(spaces)


def drop_from(stores: Sequence[Spaces], cache_id: str) -> Drop:
    """Return what drops the space of one keyspace from every store that may hold it."""

    async def drop(keyspace: Keyspace) -> None:
        for store in stores:
            await store.drop(cache_id, keyspace)

    return drop
