"""How far a rate that was counted may be off: exact bounds after Clopper and Pearson (1934). Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

CONFIDENCE: Final = 0.95
"""Of both bounds together: each is passed with a probability of 2.5 % at most."""

_HALVINGS: Final = 50


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of how many."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """Return the rate, or None of none."""
        return self.count / self.of if self.of else None

    @property
    def low(self) -> float:
        """Return the lower bound."""
        if self.count == 0:
            return 0.0
        return _solve(lambda rate: _at_least(self.count, self.of, rate), (1 - CONFIDENCE) / 2)

    @property
    def high(self) -> float:
        """Return the upper bound; 1 where nothing was counted."""
        if self.count >= self.of:
            return 1.0
        return _solve(lambda rate: 1 - _at_least(self.count + 1, self.of, rate), (1 - CONFIDENCE) / 2)


def _solve(probability: Callable[[float], float], wanted: float) -> float:
    """Find the rate at which a probability, falling or rising, is as wanted."""
    low, high = 0.0, 1.0
    rising = probability(1.0) > probability(0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (probability(middle) < wanted) is rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _at_least(count: int, of: int, rate: float) -> float:
    """Return the probability of `count` successes or more in `of` trials."""
    if rate <= 0:
        return 0.0
    if rate >= 1:
        return 1.0
    below = math.fsum(
        math.exp(_log_choose(of, each) + each * math.log(rate) + (of - each) * math.log1p(-rate))
        for each in range(count)
    )
    return min(1.0, max(0.0, 1 - below))


def _log_choose(of: int, count: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
