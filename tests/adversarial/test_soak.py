"""The soak at a small size: `make soak` runs the same code with many more requests."""

from __future__ import annotations

from bench.soak import soak
from bench.traffic import Fate

REQUESTS = 5_000


def test_nothing_is_lost_or_crossed_while_everything_fails() -> None:
    """Store frozen and restarted, upstream failing, cutting, slow, clients leaving: each answer is right."""
    tally = soak(REQUESTS, lambda _: None, period_seconds=0.2)
    assert tally.problems() == []
    assert tally.requests >= REQUESTS
    assert tally.fates[Fate.ANSWERED] > REQUESTS * 0.8
    assert tally.fates[Fate.LEFT] > 0
    assert len(tally.troubles) == 5
