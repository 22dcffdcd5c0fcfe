"""A breaker per store: from a failed call to silence until a probe in the background succeeds.

No request ever pays for a probe. The first failure opens it, since its budget is the most that a frozen
store may cost; so the first probe follows at once, and a mere hiccup costs a few uncached requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from cachewright.layers.budget import ends_within

FIRST_PAUSE_SECONDS: Final = 0.02
"""Between the first probe and the second; each further pause is twice as long."""

LONGEST_PAUSE_SECONDS: Final = 2.0


class Breaker:
    """Closed: calls are allowed. Open: they are not, and a probe runs."""

    def __init__(
        self,
        probe: Callable[[], Coroutine[Any, Any, None]],
        probe_seconds: float,
        on_change: Callable[[bool], None],
    ) -> None:
        """`probe` returns when the store answers and raises otherwise; `on_change` is told `is_open`.

        A store counts as well only when it answers within `probe_seconds`.
        """
        self._probe = probe
        self._probe_seconds = probe_seconds
        self._on_change = on_change
        self._probing: asyncio.Task[None] | None = None
        self._is_closed = asyncio.Event()
        self._is_closed.set()

    @property
    def is_open(self) -> bool:
        """True while calls are not allowed."""
        return self._probing is not None

    def trip(self) -> None:
        """Open, unless open already."""
        if self._probing is not None:
            return
        self._is_closed.clear()
        self._probing = asyncio.ensure_future(self._probe_until_closed())
        self._on_change(True)

    async def closed(self) -> None:
        """Return once calls are allowed."""
        await self._is_closed.wait()

    async def aclose(self) -> None:
        """Stop probing."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    async def _probe_until_closed(self) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        while not await self._is_well():
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
        self._probing = None
        self._is_closed.set()
        self._on_change(False)

    async def _is_well(self) -> bool:
        try:
            await self._probe()  # may have to connect first
            quick = asyncio.ensure_future(self._probe())
            if await ends_within(quick, self._probe_seconds):
                await quick
                return True
            quick.cancel()
            await asyncio.gather(quick, return_exceptions=True)
        except Exception:  # noqa: BLE001, S110 - whatever it is, the store is not well
            pass
        return False
