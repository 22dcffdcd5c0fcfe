"""Generation counters as one process knows them: a guess, which every look-up checks against the store.

A counter that was never raised is not kept, so this stays empty where nothing is ever retracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_KNOWN: Final = 10_000
"""Counters kept; one that was forgotten costs a second read."""


class KnownGenerations:
    """The raised counters that this process has seen last."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._raised: dict[str, int] = {}

    def __len__(self) -> int:
        """Count what is kept."""
        return len(self._raised)

    def of(self, counters: Sequence[str]) -> tuple[int, ...]:
        """Return the values that counters had when they were seen last."""
        return tuple(self._raised.get(counter, 0) for counter in counters)

    def learn(self, counters: Sequence[str], generations: Sequence[int]) -> None:
        """Take over what a store holds, also where that is less: it may have lost everything."""
        for counter, generation in zip(counters, generations, strict=True):
            self._raised.pop(counter, None)
            if generation:
                self._raised[counter] = generation
        while len(self._raised) > self._most:
            del self._raised[next(iter(self._raised))]
