"""Leases: of many gateways that miss the same, one asks the upstream, and the others wait for what it stores.

A lease saves a call and guards nothing: where the store is slow or away, everybody asks. Made by the exact
layer for the gateway's misses.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from cachewright.errors import StoreError
from cachewright.keys.digest import EntryName
from cachewright.layers.background import retrieved
from cachewright.layers.breaker import Breaker
from cachewright.layers.budget import ends_within
from cachewright.stores.protocols import LockStore

FIRST_PAUSE_SECONDS: Final = 0.005
"""Between two looks for another gateway's answer; each further pause is half as long again."""

LONGEST_PAUSE_SECONDS: Final = 0.05

MARGIN_SECONDS: Final = 1.0
"""How much longer a lease lasts than anybody waits for it, should its holder die."""

LONGEST_RELEASE_SECONDS: Final = 5.0

Found = TypeVar("Found")
T = TypeVar("T")


class Lease:
    """One miss's claim to ask the upstream."""

    def __init__(self, leases: Leases, name: EntryName) -> None:
        self._leases = leases
        self._name = name
        self._is_held = False

    async def take_or_find(
        self, find: Callable[[], Coroutine[Any, Any, Found | None]], wait_seconds: float
    ) -> Found | None:
        """Return None once the caller should ask the upstream, or what `find` gives meanwhile.

        `wait_seconds` bounds the wait for another gateway, and the store's budget that for the store itself.
        """
        deadline = time.monotonic() + wait_seconds
        pause_seconds = FIRST_PAUSE_SECONDS
        try:
            if await self._take(wait_seconds):
                return None
            while (remaining_seconds := deadline - time.monotonic()) > 0:
                await asyncio.sleep(min(pause_seconds, remaining_seconds))
                pause_seconds = min(1.5 * pause_seconds, LONGEST_PAUSE_SECONDS)
                is_taken = await self._take(wait_seconds)
                # Looked for afterwards: whoever held the lease stored its answer before it let go.
                found = await self._leases.bounded(find())
                if found is not None or is_taken:
                    return found
        except StoreError:
            pass
        return None

    def release(self) -> None:
        """Let others ask, if the lease is held; soon, and where the store is in trouble once it is well."""
        if self._is_held:
            self._is_held = False
            self._leases.free(self._name)

    async def _take(self, wait_seconds: float) -> bool:
        self._is_held = True  # also while the answer is under way: whoever is cancelled then lets go of it
        self._is_held = await self._leases.take(self._name, wait_seconds + MARGIN_SECONDS)
        return self._is_held


class Leases:
    """All leases of one process.

    They share one token: within a process flights see to it that one asks, so a lease that this process holds
    already is a left-over, and nobody here waits for it.
    """

    def __init__(self, store: LockStore, breaker: Breaker, budget_seconds: float) -> None:
        self._store = store
        self._breaker = breaker
        self._budget_seconds = budget_seconds
        self._token = secrets.token_hex(8)
        self._releases: set[asyncio.Task[None]] = set()

    def lease(self, name: EntryName) -> Lease:
        """Return a claim that is not taken yet."""
        return Lease(self, name)

    async def take(self, name: EntryName, ttl_seconds: float) -> bool:
        """Take a lease, unless another process holds it; raises StoreError."""
        if await self.bounded(self._store.acquire_lock(name, self._token, ttl_seconds)):
            return True
        return await self.bounded(self._store.lock_holder(name)) == self._token

    def free(self, name: EntryName) -> None:
        """Let go of a lease, in the background."""
        task = asyncio.create_task(self._free(name))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def bounded(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call of the store within its budget; raises StoreError beyond it and lets it go on."""
        if self._breaker.is_open:
            call.close()
            raise StoreError("the store is left alone")
        task = asyncio.ensure_future(call)
        task.add_done_callback(retrieved)
        if not await ends_within(task, self._budget_seconds):
            # Many misses at once wait in line for a connection: that is no reason to leave the store alone.
            raise StoreError("the store gave no answer within its budget")
        return task.result()

    async def _free(self, name: EntryName) -> None:
        with suppress(StoreError, TimeoutError):  # it ends by itself
            async with asyncio.timeout(LONGEST_RELEASE_SECONDS):
                await self._breaker.closed()
                await self._store.release_lock(name, self._token)
