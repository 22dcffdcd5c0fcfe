"""What a threshold and a guard do to labelled pairs: hits, false hits, and the threshold to take. Pure.

A pair is a *hit* where its similarity reaches the threshold and the guard lets it through. A hit of a pair
that asks for different answers is a *false hit*: a wrong answer to a user. Called by `cli.calibrate`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cachewright.api.guard import GuardCheck
from cachewright.calibration.bounds import Rate
from cachewright.calibration.pairs import LabelledPair
from cachewright.policy.guard import GuardReason

THRESHOLDS: Final = tuple(round(0.5 + step * 0.005, 3) for step in range(100))
"""Thresholds that are tried: 0.500 to 0.995."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair with what embedder and guard say of it."""

    pair: LabelledPair
    similarity: float | None
    """Cosine; None where one of the two cannot be embedded as a whole."""
    refused: frozenset[GuardReason]
    """By all checks there are."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A choice of checks."""

    name: str
    reasons: frozenset[GuardReason]

    @classmethod
    def of(cls, name: str, checks: Collection[GuardCheck], *, other_languages: bool = False) -> Guard:
        """Choose checks; languages without word lists are refused unless said otherwise."""
        language = () if other_languages else (GuardReason.LANGUAGE,)
        return cls(name, frozenset((*(GuardReason(check.lower()) for check in checks), *language)))

    def passes(self, judged: Judged) -> bool:
        """Tell whether it lets a pair through."""
        return self.reasons.isdisjoint(judged.refused)


NO_GUARD: Final = Guard("none", frozenset())


@dataclass(frozen=True, slots=True)
class Point:
    """What one threshold does."""

    threshold: float
    precision: Rate
    """Right hits of all hits."""
    recall: Rate
    """Hits of all pairs that mean the same."""
    false_hits: Rate
    """Hits of all pairs that mean something else."""


@dataclass(frozen=True, slots=True)
class ClassRow:
    """What one threshold does to one class."""

    kind: str
    without_guard: Rate
    """False hits, the guard being off."""
    false_hits: Rate
    recall: Rate


def is_hit(judged: Judged, threshold: float, guard: Guard) -> bool:
    """Tell whether one of a pair would get the answer to the other."""
    return judged.similarity is not None and judged.similarity >= threshold and guard.passes(judged)


def point(judged: Sequence[Judged], threshold: float, guard: Guard) -> Point:
    """Count what one threshold does."""
    same = sum(each.pair.same for each in judged)
    hits = [each for each in judged if is_hit(each, threshold, guard)]
    right = sum(each.pair.same for each in hits)
    return Point(
        threshold,
        precision=Rate(right, len(hits)),
        recall=Rate(right, same),
        false_hits=Rate(len(hits) - right, len(judged) - same),
    )


def curve(judged: Sequence[Judged], guard: Guard, thresholds: Iterable[float] = THRESHOLDS) -> list[Point]:
    """Count what each threshold does."""
    return [point(judged, threshold, guard) for threshold in thresholds]


def by_class(judged: Sequence[Judged], threshold: float, guard: Guard) -> list[ClassRow]:
    """Count what one threshold does to each class, in the order in which the classes appear."""
    rows = []
    for kind in dict.fromkeys(each.pair.kind for each in judged):
        of_kind = [each for each in judged if each.pair.kind == kind]
        guarded = point(of_kind, threshold, guard)
        bare = point(of_kind, threshold, NO_GUARD)
        rows.append(ClassRow(kind, bare.false_hits, guarded.false_hits, guarded.recall))
    return rows


def recommended(points: Sequence[Point], most_false_hits: float) -> Point | None:
    """Return the lowest threshold from which on the bound of the false-hit rate stays within what is wanted.

    The bound, not the rate: few pairs prove little, and then no threshold is recommended.
    """
    chosen = None
    for each in reversed(points):
        if each.false_hits.high > most_false_hits:
            break
        chosen = each
    return chosen if chosen is not None and chosen.recall.count else None
