"""Credentials: which of its clients' credentials the upstream accepted lately.

Where a client's own credential is passed through, nobody but the upstream can tell whether it is still good.
So an answer comes from the cache only for a credential that had a 2xx from the upstream within a TTL: known
in memory, and to other replicas by a marker in the store. What the upstream refuses is forgotten at once.

Made by the assembly; asked by the flow, told by whoever heard from the upstream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from cachewright.errors import StoreError
from cachewright.keys.credentials import MarkerName, marker_name
from cachewright.layers.background import retrieved
from cachewright.layers.breaker import Breaker
from cachewright.layers.budget import ends_within
from cachewright.stores.protocols import MarkerStore

MOST_KNOWN: Final = 10_000
"""Credentials kept in memory; one that was dropped is asked for in the store."""

MOST_WRITING: Final = 256
"""Markers on their way into the store; more are left out, and cost other replicas a call to the upstream."""

REFUSALS: Final = (401, 403)

_FRESH_ENOUGH: Final = 0.9
"""A marker that was set within the first tenth of its TTL is not set again."""


@dataclass(frozen=True, slots=True)
class CredentialSettings:
    """What it takes to judge credentials."""

    cache_id: str
    binding: str
    ttl_seconds: float
    """For how long a 2xx counts."""
    budget_seconds: float
    """Longest that a question to the store may keep a request waiting."""


class Credentials:
    """The credentials of one upstream's clients."""

    def __init__(
        self,
        store: MarkerStore,
        breaker: Breaker,
        settings: CredentialSettings,
        key: bytes,
        clock: Callable[[], float],
    ) -> None:
        """`key` is the cache's digest key; `clock` gives monotonic seconds."""
        self._store = store
        self._breaker = breaker
        self._settings = settings
        self._key = key
        self._clock = clock
        self._good_until: dict[MarkerName, float] = {}
        self._shared_until: dict[MarkerName, float] = {}
        """As far as this process has told the store."""
        self._tasks: set[asyncio.Task[Any]] = set()

    async def is_accepted(self, credential: bytes) -> bool:
        """Tell whether the upstream accepted a credential within the TTL, here or at another replica."""
        name = self._name(credential)
        if self._good_until.get(name, 0.0) > self._clock():
            return True
        if self._breaker.is_open:
            return False
        asked_at = self._clock()
        asking = self._start(self._store.marker_seconds(name))
        try:
            if not await ends_within(asking, self._settings.budget_seconds):
                return False
            left_seconds = min(asking.result(), self._settings.ttl_seconds)
        except StoreError:
            return False
        if left_seconds <= 0:
            return False
        self._remember(name, asked_at + left_seconds)
        return True

    def heard(self, credential: bytes, status: int) -> None:
        """Take note of the upstream's answer to a request with a credential."""
        if 200 <= status < 300:
            self._accept(self._name(credential))
        elif status in REFUSALS:
            self._forget(self._name(credential))

    async def aclose(self) -> None:
        """Give up what is on its way into the store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, name: MarkerName) -> None:
        ttl_seconds = self._settings.ttl_seconds
        good_until = self._clock() + ttl_seconds
        self._remember(name, good_until)
        shared_seconds = self._shared_until.get(name, 0.0) - self._clock()
        if shared_seconds > ttl_seconds * _FRESH_ENOUGH or len(self._tasks) >= MOST_WRITING:
            return
        _keep(self._shared_until, name, good_until)
        self._start(self._share(name, good_until))

    def _forget(self, name: MarkerName) -> None:
        self._good_until.pop(name, None)
        self._shared_until.pop(name, None)
        if not self._breaker.is_open:
            self._start(self._unshare(name))

    async def _share(self, name: MarkerName, good_until: float) -> None:
        left_seconds = good_until - self._clock()
        if left_seconds <= 0 or self._breaker.is_open:
            self._shared_until.pop(name, None)
            return
        try:
            await self._store.set_marker(name, left_seconds)
        except StoreError:
            self._shared_until.pop(name, None)

    async def _unshare(self, name: MarkerName) -> None:
        with suppress(StoreError):
            await self._store.remove_marker(name)

    def _remember(self, name: MarkerName, good_until: float) -> None:
        _keep(self._good_until, name, good_until)

    def _name(self, credential: bytes) -> MarkerName:
        settings = self._settings
        return marker_name(self._key, settings.cache_id, settings.binding, settings.ttl_seconds, credential)

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        retrieved(task)


def _keep(known: dict[MarkerName, float], name: MarkerName, until: float) -> None:
    """Keep one more, the oldest given up where there are too many."""
    known.pop(name, None)
    known[name] = until
    if len(known) > MOST_KNOWN:
        del known[next(iter(known))]
