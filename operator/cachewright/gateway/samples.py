"""Samples: pairs of questions that Shadow mode found similar, for people who decide on a threshold.

They hold what users wrote, so they stay in this process' memory, are few, and go only to whoever has the
admin token. Filled by `similarity`, told by the admin port.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from cachewright.layers.similar import Sample

MOST_SAMPLES: Final = 1000
"""Kept; the oldest go first."""

LONGEST_TEXT: Final = 2000
"""Characters of each question; longer ones are left out, since nobody labels half a question."""


class Samples:
    """The latest samples of one process."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self._samples: deque[Sample] = deque(maxlen=most)

    def __len__(self) -> int:
        """Count what is kept."""
        return len(self._samples)

    def add(self, samples: Iterable[Sample]) -> None:
        """Keep some more."""
        for sample in samples:
            if max(len(sample.asked), len(sample.stored)) <= LONGEST_TEXT:
                self._samples.append(sample)

    def told(self) -> list[dict[str, Any]]:
        """Return them as `cachewright calibrate --from-shadow` reads them, oldest first."""
        return [
            {
                "asked": sample.asked,
                "stored": sample.stored,
                "similarity": round(sample.similarity, 4),
                "refused": [str(reason) for reason in sample.refused],
            }
            for sample in self._samples
        ]
