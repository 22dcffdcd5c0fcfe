"""Rate limit for log events: one of a kind each ten seconds, and how many were left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

PAUSE_SECONDS: Final = 10.0


class Throttle:
    """Remembers when each kind of event was last let through."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds, monotonic."""
        self._clock = clock
        self._last: dict[str, float] = {}
        self._skipped: dict[str, int] = {}

    def skipped(self, kind: str) -> int | None:
        """Return how many events of this kind were left out if one may be logged now, else None."""
        now = self._clock()
        if now - self._last.get(kind, -PAUSE_SECONDS) < PAUSE_SECONDS:
            self._skipped[kind] = self._skipped.get(kind, 0) + 1
            return None
        self._last[kind] = now
        return self._skipped.pop(kind, 0)
