"""Reclaiming a keyspace: from a name that the record gave up to a store that verifiably holds none of it.

Called by the janitor. What was removed stays removed, so whoever begins again after a kill has less to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final

from cachewright.errors import StoreRefused
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.pace import Pace
from cachewright.stores.reclaim import ReclaimStore

PAGE_SIZE: Final = 50
"""Keys that a server looks at in one step. Larger steps make others wait longer; smaller ones cost more.

Memory that nobody touched for long is slow at first: 200 keys of it were seen to take 15 ms.
"""

MOST_WALKS: Final = 10
"""One finds all there is, the next finds nothing; more are needed only where servers exchange slots."""


async def empty_keyspace(
    store: ReclaimStore,
    cache_id: str,
    keyspace: Keyspace,
    pace: Pace,
    progress: Callable[[int], Awaitable[None]],
) -> int:
    """Remove all keys of a keyspace and return how many there were, once a whole walk has found none.

    `progress` is told after each step how many were removed since the last time. Raises StoreError where the
    store fails, or still shows keys after many walks.
    """
    total = 0
    for _ in range(MOST_WALKS):
        found = 0
        async with aclosing(store.walk(cache_id, keyspace, PAGE_SIZE)) as pages:
            async for page in pages:
                removed = await store.unlink(cache_id, keyspace, page.keys) if page.keys else 0
                found += len(page.keys)
                total += removed
                await progress(removed)
                await pace.after(page.examined)
        if not found:
            return total
    raise StoreRefused(f"keyspace {keyspace} still has keys after {MOST_WALKS} walks")
