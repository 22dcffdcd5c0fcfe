"""The highest marks that one process has seen: how it notices that a store went back.

A store that fails over to an older copy of itself loses what it was told last, a retraction perhaps. Marks
rise with every change, so lower ones, read later, give it away; and as a store that was emptied counts from
another beginning, so do marks from far away, unless the store was seen empty. Used by the exact layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cachewright.stores.protocols import Marks, Raise

FARTHEST: Final = 2**32
"""By how much marks may rise from one look to the next: some eight thousand changes. Beginnings lie farther
apart, but for one pair in sixty thousand: they are chosen out of 2**48."""


@dataclass(slots=True)
class _Highest:
    changes: int
    heard: int
    """How many reads had begun when that was heard."""
    latest: int
    """The last read, of those that found this or less far from it."""
    emptied: int = 0
    """The read after it that found no copy of a record, or 0."""


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

        Such marks stay suspicious until they are settled. A store that was emptied and counts anew is one
        of them for whoever did not see it empty: what it went back from may have been seen by others only.
        """
        if read <= self._settled:
            return True
        highest = self._highest.get(tag)
        if highest is None:
            if marks is not None:
                self._highest[tag] = _Highest(marks.changes, self._reads, read)
            return False
        if read <= highest.heard:
            return False  # that read may just have been slow
        if marks is None:  # nothing to serve
            highest.emptied = read if read > highest.latest else highest.emptied
            return False
        return self._is_suspicious(tag, highest, marks.changes, read)

    def _is_suspicious(self, tag: str, highest: _Highest, changes: int, read: int) -> bool:
        risen = changes - highest.changes
        if 0 <= risen < FARTHEST:
            if risen:
                highest.changes, highest.heard = changes, self._reads
            if read > highest.emptied:
                highest.emptied = 0
            highest.latest = max(highest.latest, read)
            return False
        if abs(risen) < FARTHEST or not 0 < highest.emptied < read:
            return True
        self._highest[tag] = _Highest(changes, self._reads, read)
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

    def settle(self, raised: Mapping[str, Raise]) -> None:
        """Begin anew with what the store holds now: all that it held before is out of reach.

        `raised` is how that was done. It counts as seen, since the store may go back once more before
        anybody looks again.
        """
        self._settled = self._reads
        self._highest = {tag: _Highest(each.after, self._reads, self._reads) for tag, each in raised.items()}
