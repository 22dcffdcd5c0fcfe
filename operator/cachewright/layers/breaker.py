"""A breaker per store: from a failed call to silence until a probe in the background succeeds.

No request ever pays for a probe. The first failure opens it, since its budget is the most that a frozen
store may cost; so the first probe follows at once, and a mere hiccup costs a few uncached requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

FIRST_PROBE_SECONDS: Final = 0.02
LONGEST_PAUSE_SECONDS: Final = 2.0
SETTLED_SECONDS: Final = 10.0
"""A breaker that stayed closed so long starts over with short pauses."""


class Breaker:
    """Closed: calls are allowed. Open: they are not, and a probe runs."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[None]],
        clock: Callable[[], float],
        on_change: Callable[[bool], None],
    ) -> None:
        """`probe` returns when the store answers and raises otherwise; `on_change` is told `is_open`."""
        self._probe = probe
        self._clock = clock
        self._on_change = on_change
        self._probing: asyncio.Task[None] | None = None
        self._pause_seconds = FIRST_PROBE_SECONDS
        self._closed_at = clock()

    @property
    def is_open(self) -> bool:
        """True while calls are not allowed."""
        return self._probing is not None

    def trip(self) -> None:
        """Open, unless open already."""
        if self._probing is not None:
            return
        if self._clock() - self._closed_at > SETTLED_SECONDS:
            self._pause_seconds = FIRST_PROBE_SECONDS
        self._probing = asyncio.ensure_future(self._probe_until_closed())
        self._on_change(True)

    async def closed(self) -> None:
        """Return once calls are allowed."""
        if self._probing is not None:
            await asyncio.shield(self._probing)

    async def aclose(self) -> None:
        """Stop probing."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    async def _probe_until_closed(self) -> None:
        while True:
            await asyncio.sleep(self._pause_seconds)
            self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)
            try:
                await self._probe()
            except Exception:  # noqa: BLE001, S112 - whatever it is, the store is not well
                continue
            break
        self._closed_at = self._clock()
        self._probing = None
        self._on_change(False)
