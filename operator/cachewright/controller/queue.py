"""`WorkQueue`: turns events into passes, one at a time per key, several keys at once.

`handlers` and `resync` add keys; `process` runs the workers. A key waits in one of three places: with a timer
until it is due, in line until a worker is free, or aside while a worker is on it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

BACKOFF_FIRST_SECONDS: Final = 0.5
BACKOFF_CAP_SECONDS: Final = 60.0
"""A key that keeps failing is tried once a minute, so a repaired cluster is noticed within that time."""
WORKERS: Final = 8


class CacheKey(NamedTuple):
    """Which InferenceCache."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Timer(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Drop the call."""


class Clock(Protocol):
    """What the queue needs of time; an event loop has it."""

    def time(self) -> float:
        """Monotonic seconds."""

    def call_later(self, delay: float, callback: Callable[[CacheKey], object], key: CacheKey, /) -> Timer:
        """Call back after `delay` seconds."""


@dataclass(frozen=True, slots=True)
class _Delayed:
    due: float
    timer: Timer


class WorkQueue:
    """Keys to be reconciled."""

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._jitter = jitter
        self._delayed: dict[CacheKey, _Delayed] = {}
        self._line: dict[CacheKey, float] = {}
        """Key to the time since when it is due; first come, first served."""
        self._running: set[CacheKey] = set()
        self._again: dict[CacheKey, float] = {}
        """Keys to be seen once more after the pass that is on them, with the time they are then due."""
        self._failures: dict[CacheKey, int] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    def add(self, key: CacheKey, after: float = 0.0) -> None:
        """Have a key reconciled in `after` seconds; what is planned for an earlier time stays."""
        if self._closed or key in self._line:
            return
        due = self._clock.time() + max(after, 0.0)
        if key in self._running:
            self._again[key] = min(due, self._again.get(key, due))
            return
        if (delayed := self._delayed.get(key)) is not None:
            if delayed.due <= due:
                return
            delayed.timer.cancel()
            del self._delayed[key]
        if after <= 0:
            self._enqueue(key)
        else:
            self._delayed[key] = _Delayed(due, self._clock.call_later(after, self._come_due, key))

    @property
    def depth(self) -> int:
        """How many keys wait for a worker."""
        return len(self._line)

    @property
    def oldest_age_seconds(self) -> float:
        """How long the first in line has been due; 0 for an empty line."""
        first = next(iter(self._line.values()), None)
        return 0.0 if first is None else self._clock.time() - first

    async def work(self, process: Callable[[CacheKey], Awaitable[float | None]]) -> None:
        """Be one worker: process keys until the queue is closed.

        `process` returns the seconds after which the key is to be seen again, or None. When it raises, the
        key comes back after a pause that doubles with each failure; reporting is `process`'s business.
        """
        while (key := await self._take()) is not None:
            try:
                again_after = await process(key)
            except Exception:  # noqa: BLE001 - the worker outlives whatever a pass does
                again_after = self._pause_after_failure(key)
            else:
                self._failures.pop(key, None)
            finally:
                self._running.discard(key)
                if not self._running:
                    self._idle.set()
            self._reschedule(key, again_after)

    async def close(self) -> None:
        """Take no more keys and start no more passes; return when the running ones have ended."""
        self._closed = True
        for delayed in self._delayed.values():
            delayed.timer.cancel()
        self._delayed.clear()
        self._line.clear()
        self._again.clear()
        self._wake.set()
        await self._idle.wait()

    async def _take(self) -> CacheKey | None:
        while not self._line:
            if self._closed:
                return None
            self._wake.clear()
            await self._wake.wait()
        key = next(iter(self._line))
        del self._line[key]
        self._running.add(key)
        self._idle.clear()
        return key

    def _reschedule(self, key: CacheKey, again_after: float | None) -> None:
        due = self._again.pop(key, None)
        if due is not None:
            # The event may stem from the failed pass itself: without a pause the two would feed each other.
            pause = BACKOFF_FIRST_SECONDS if key in self._failures else 0.0
            self.add(key, max(due - self._clock.time(), pause))
        if again_after is not None:
            self.add(key, again_after)

    def _pause_after_failure(self, key: CacheKey) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        longest = min(BACKOFF_CAP_SECONDS, BACKOFF_FIRST_SECONDS * 2.0 ** min(failures, 16))
        return longest * (0.5 + 0.5 * self._jitter())

    def _come_due(self, key: CacheKey) -> None:
        del self._delayed[key]
        self._enqueue(key)

    def _enqueue(self, key: CacheKey) -> None:
        self._line[key] = self._clock.time()
        self._wake.set()
