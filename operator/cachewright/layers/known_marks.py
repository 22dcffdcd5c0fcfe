"""The marks of a store as one process knows them: under each hash tag, and how long that may be relied upon.

Whoever copies an entry out of the store takes the epoch of its tag along. The copy counts while the epoch is
the same and the last read of the marks *began* less than a second ago. So whatever the operator reports as
done two seconds after it wrote it is over everywhere, even where no message arrives. Used by `layers.local`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cachewright.keys.scheme import TAGS
from cachewright.stores.protocols import Marks

VALID_SECONDS: Final = 1.0
"""From the beginning of a read, since the marks may have changed right after they were read."""


@dataclass(slots=True)
class _Seen:
    marks: Marks
    started: float
    epoch: int


class KnownMarks:
    """The marks under all hash tags of one cache."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic seconds."""
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._epochs = 0

    def saw(self, tag: str, marks: Marks | None, started: float) -> None:
        """Learn what a read that began at `started` found under one tag.

        A new epoch begins when the marks differ, and also when they were not read for a while.
        """
        seen = self._seen.get(tag)
        if marks is None:
            self._seen.pop(tag, None)
        elif seen is None or seen.marks != marks or started - seen.started >= VALID_SECONDS:
            self._epochs += 1
            self._seen[tag] = _Seen(marks, started, self._epochs)
        else:
            seen.started = max(seen.started, started)

    def saw_all(self, marks: Mapping[str, Marks], started: float) -> None:
        """Learn what a read of all tags found."""
        for tag in TAGS:
            self.saw(tag, marks.get(tag), started)

    def epoch(self, tag: str) -> int | None:
        """Return the epoch under a tag; None where it is not known or no longer to be relied upon."""
        seen = self._seen.get(tag)
        return seen.epoch if seen is not None and self._clock() - seen.started < VALID_SECONDS else None

    def forget(self, tag: str | None = None) -> None:
        """Rely on nothing that was read before, under one tag or all."""
        if tag is None:
            self._seen.clear()
        else:
            self._seen.pop(tag, None)
