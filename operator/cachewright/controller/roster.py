"""`Roster`: which InferenceCaches exist, when each was last reconciled and how it was then.

`handlers` and `resync` enter and remove objects, `process` notes passes; `health` and `metrics` ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cachewright.controller.queue import CacheKey


@dataclass(slots=True)
class _Entry:
    seen_at: float
    """Last pass, or the moment the object became known."""
    ready: bool | None = None


class Roster:
    """The objects known to this process."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._entries: dict[CacheKey, _Entry] = {}

    def enter(self, key: CacheKey) -> None:
        """Note that an object exists."""
        self._entries.setdefault(key, _Entry(self._monotonic()))

    def remove(self, key: CacheKey) -> None:
        """Note that an object is gone."""
        self._entries.pop(key, None)

    def replace(self, keys: Iterable[CacheKey]) -> None:
        """Make these the objects that exist; what is known of them stays."""
        now = self._monotonic()
        self._entries = {key: self._entries.get(key) or _Entry(now) for key in keys}

    def visited(self, key: CacheKey, ready: bool | None) -> None:
        """Note that a pass over an object has ended; `ready` None where it could not tell."""
        if (entry := self._entries.get(key)) is not None:
            entry.seen_at = self._monotonic()
            entry.ready = ready

    def in_namespace(self, namespace: str) -> list[CacheKey]:
        """Return the objects of one namespace."""
        return [key for key in self._entries if key.namespace == namespace]

    def count(self, ready: bool | None) -> int:
        """Return how many objects were in that state."""
        return sum(entry.ready is ready for entry in self._entries.values())

    @property
    def oldest_visit_seconds(self) -> float:
        """How long ago the object that has waited longest was reconciled; 0 without objects."""
        oldest = min((entry.seen_at for entry in self._entries.values()), default=None)
        return 0.0 if oldest is None else self._monotonic() - oldest
