"""The highest marks that one process has seen: how it notices that a store went back.

A store that fails over to an older copy of itself loses what it was told last, a retraction perhaps. Marks
rise with every change, so lower ones, read later, give it away. Used by the exact layer's look-ups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachewright.stores.protocols import Marks, Raise

FARTHEST_BACK: Final = 2**36
"""Changes count from a new beginning, by chance out of 2**48, when a store was emptied. Lower marks that are
farther away than this are such a beginning, and nothing older is left to be served. A hundred thousand
changes fit in between."""


@dataclass(frozen=True, slots=True)
class _Highest:
    changes: int
    heard: int


class HighestMarks:
    """The highest number of changes seen under each hash tag of one cache.

    Time is counted in reads, so that one which began before another was heard is known to be no later.
    """

    def __init__(self) -> None:
        self._reads = 0
        self._highest: dict[str, _Highest] = {}
        self._settled = 0

    def begin(self) -> int:
        """Number a read that begins."""
        self._reads += 1
        return self._reads

    def went_back(self, tag: str, marks: Marks | None, read: int) -> bool:
        """Learn what a read found; tells whether it may have come from a store that lost changes.

        Lower marks stay suspicious until they are settled.
        """
        if read <= self._settled:
            return True
        highest = self._highest.get(tag)
        if marks is None or (highest is not None and read <= highest.heard):
            return False  # an empty store has nothing to serve, and that read may just have been slow
        lost = 0 if highest is None else highest.changes - marks.changes
        if 0 < lost < FARTHEST_BACK:
            return True
        if highest is None or lost:
            self._highest[tag] = _Highest(marks.changes, self._reads)
        return False

    def raised(self, tag: str, raised: Raise, read: int) -> bool:
        """Learn what a change of our own did; tells whether the store may have lost changes before it.

        What was seen stands before or behind the change, unless it was seen in a store that has forgotten it.
        """
        highest = self._highest.get(tag)
        is_between = highest is not None and raised.before < highest.changes < raised.after
        return self.went_back(tag, Marks(0, raised.after), read) or is_between

    def is_settled(self, read: int) -> bool:
        """Tell whether somebody has seen to the store since a read began."""
        return read <= self._settled

    def settle(self) -> None:
        """Begin anew with what the store holds now: all that it held before is out of reach."""
        self._highest.clear()
        self._settled = self._reads
