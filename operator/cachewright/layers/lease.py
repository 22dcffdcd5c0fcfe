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
from cachewright.layers.breaker import Breaker
from cachewright.layers.budget import ends_within
from cachewright.stores.protocols import LockStore

FIRST_PAUSE_SECONDS: Final = 0.005
"""Between two looks for another gateway's answer; each further pause is half as long again."""

LONGEST_PAUSE_SECONDS: Final = 0.05

MARGIN_SECONDS: Final = 1.0
"""How much longer a lease lasts than anybody waits for it, should its holder die."""

Found = TypeVar("Found")
T = TypeVar("T")


class Lease:
    """One miss's claim to ask the upstream."""

    def __init__(self, store: LockStore, breaker: Breaker, name: EntryName, budget_seconds: float) -> None:
        self._store = store
        self._breaker = breaker
        self._name = name
        self._budget_seconds = budget_seconds
        self._token = secrets.token_hex(8)
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
                found = await self._bounded(find())
                if found is not None or is_taken:
                    return found
        except StoreError:
            pass
        return None

    async def release(self) -> None:
        """Let others ask, if the lease is held."""
        if self._is_held and not self._breaker.is_open:
            self._is_held = False
            with suppress(StoreError):  # it ends by itself
                await self._bounded(self._store.release_lock(self._name, self._token))

    async def _take(self, wait_seconds: float) -> bool:
        self._is_held = True  # also while the answer is under way: whoever is cancelled then lets go of it
        call = self._store.acquire_lock(self._name, self._token, wait_seconds + MARGIN_SECONDS)
        self._is_held = await self._bounded(call)
        return self._is_held

    async def _bounded(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call of the store within its budget; raises StoreError beyond it and lets it go on."""
        if self._breaker.is_open:
            call.close()
            raise StoreError("the store is left alone")
        task = asyncio.ensure_future(call)
        task.add_done_callback(_seen)
        if not await ends_within(task, self._budget_seconds):
            self._breaker.trip()
            raise StoreError("the store gave no answer within its budget")
        return task.result()


def _seen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # retrieved, so that a late failure is not reported as forgotten
