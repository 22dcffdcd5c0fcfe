"""The record as one process knows it: the highest revision seen anywhere, never a lower one.

Fed by the mounted copy and by what stores hold; read by every look-up.
Beside it is kept what else must not be unlearned: how far a store's changes had come.
"""

from __future__ import annotations

from cachewright.keys.record import Record
from cachewright.layers.highest_marks import HighestMarks


class KnownRecord:
    """The best record of one cache."""

    def __init__(self, cache_id: str) -> None:
        self._cache_id = cache_id
        self._best: Record | None = None
        self.highest = HighestMarks()

    @property
    def best(self) -> Record | None:
        """The record with the highest revision seen so far."""
        return self._best

    def offer(self, record: Record) -> bool:
        """Take a record unless it is another cache's or not newer; tells whether it was taken."""
        newer = self._best is None or record.revision > self._best.revision
        if record.cache_id != self._cache_id or not newer:
            return False
        self._best = record
        return True
