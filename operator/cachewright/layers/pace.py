"""Pace: from a rate to pauses between the steps of long work on a store, so that others notice nothing.

Used by the janitor and by the counts of a retraction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

MOST_BEHIND_SECONDS: Final = 1.0
"""What was lost to a slow store is not made up for beyond this: no burst follows a hiccup."""


class Pace:
    """Keeps the steps of one piece of work at a rate, and a store free for at least half of the time."""

    def __init__(
        self,
        keys_per_second: float,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`clock` gives monotonic seconds, `sleep` waits for as many."""
        self._keys_per_second = keys_per_second
        self._clock = clock
        self._sleep = sleep
        self._due = self._begun = clock()

    async def after(self, keys: int) -> None:
        """Wait as long as a step over so many keys calls for: no shorter than the step itself took."""
        now = self._clock()
        self._due = max(self._due, now - MOST_BEHIND_SECONDS) + keys / self._keys_per_second
        await self._sleep(max(0.0, self._due - now, now - self._begun))
        self._begun = self._clock()
