"""Entries in Redis or Valkey, each written by one script that checks the record's copy beside it.

Used by the exact layer through CacheStore.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from redis.exceptions import NoScriptError

from cachewright.keys.digest import EntryName
from cachewright.keys.permission import spaced
from cachewright.stores.protocols import CacheStore, Found, Marks, WriteOutcome, step_of_changes
from cachewright.stores.redis_client import Client, RedisLink, open_link
from cachewright.stores.redis_generations import RedisGenerationStore
from cachewright.stores.redis_heads import RedisHeadStore
from cachewright.stores.redis_locks import RedisLockStore
from cachewright.stores.redis_lookups import LookUps
from cachewright.stores.redis_markers import RedisMarkerStore
from cachewright.stores.redis_reclaim import RedisReclaimStore
from cachewright.stores.redis_record import RedisRecordStore
from cachewright.stores.redis_scripts import REMOVE_ENTRY, WRITE_ENTRY
from cachewright.stores.redis_tickets import RedisTicketStore
from cachewright.stores.redis_tracking import RedisTrackingStore

_OUTCOMES: Final = {1: WriteOutcome.WRITTEN, 0: WriteOutcome.CHANGED, -1: WriteOutcome.READONLY}

_WRITE_ENTRY_SHA: Final = hashlib.sha1(WRITE_ENTRY.encode(), usedforsecurity=False).hexdigest()


class RedisCacheStore(
    RedisRecordStore,
    RedisGenerationStore,
    RedisHeadStore,
    RedisLockStore,
    RedisMarkerStore,
    RedisReclaimStore,
    RedisTicketStore,
    RedisTrackingStore,
):
    """CacheStore on Redis or Valkey."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__(link)
        self._look_ups = LookUps(link)
        self._script_is_known = False
        """True once the server was given the script; it may have forgotten it since."""

    async def find(self, name: EntryName, counters: Sequence[str] = ()) -> Found:
        """Read an entry, the marks of its hash tag and generation counters there, in one round trip."""
        return await self._look_ups.find(name, counters)

    async def write(self, name: EntryName, value: bytes, ttl_seconds: float, seen: Marks) -> WriteOutcome:
        """Write an entry unless its marks changed since `seen` or its keyspace may not be written to."""
        ttl_ms = max(1, round(ttl_seconds * 1000))
        marks, keyspace = (seen.revision, seen.changes), spaced(name.keyspace)
        arguments: list[str | int | bytes] = [*marks, ttl_ms, value, keyspace]
        keys = [name.record_key, name.key, name.heartbeat_key]
        async with self._link.use("write") as client:
            return _OUTCOMES[await self._run_write(client, keys, arguments)]

    async def remove(self, name: EntryName) -> bool:
        """Remove an entry and raise the changes under its hash tag."""
        async with self._link.use("remove") as client:
            return int(await client.eval(REMOVE_ENTRY, 2, name.record_key, name.key, step_of_changes())) == 1

    async def ping(self) -> None:
        """Return once the store has answered."""
        async with self._link.use("ping") as client:
            await client.ping()

    async def _run_write(self, client: Client, keys: list[str], arguments: list[str | int | bytes]) -> int:
        if self._script_is_known:
            with suppress(NoScriptError):  # a server that started anew has lost its scripts
                return int(await client.evalsha(_WRITE_ENTRY_SHA, len(keys), *keys, *arguments))
        written = int(await client.eval(WRITE_ENTRY, len(keys), *keys, *arguments))
        self._script_is_known = True
        return written


def open_cache_store(url: str, call_seconds: float = 0.0) -> CacheStore:
    """Open a store that connects when it is first used; raises InvalidInput for a URL that is not one.

    A call may take `call_seconds` where that is longer than usual.
    """
    return RedisCacheStore(open_link(url, call_seconds=call_seconds))
