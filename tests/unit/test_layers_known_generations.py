"""Generations as one process knows them."""

from __future__ import annotations

from cachewright.layers.known_generations import KnownGenerations


def test_what_was_never_raised_is_zero_and_is_not_kept() -> None:
    """Nothing grows where nothing is retracted."""
    known = KnownGenerations()
    known.learn(("a", "b"), (0, 2))
    assert known.of(("b", "a", "c")) == (2, 0, 0)
    assert len(known) == 1


def test_a_store_that_lost_everything_is_believed() -> None:
    """Its counters start again at 0, with no entry left from before."""
    known = KnownGenerations()
    known.learn(("a",), (3,))
    known.learn(("a",), (0,))
    assert known.of(("a",)) == (0,)


def test_the_oldest_is_forgotten_first() -> None:
    """Their number is bounded."""
    known = KnownGenerations(most=2)
    for counter in ("a", "b", "a", "c"):
        known.learn((counter,), (1,))
    assert known.of(("a", "b", "c")) == (1, 0, 1)
