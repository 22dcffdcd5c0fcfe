"""The defaults of the semantic layer, measured: the built-in embedder, its threshold and the default guard.

`CACHEWRIGHT_TEST_QQP=FILE` adds Quora question pairs, a JSON list of text_a, text_b and label that is no part
of this project.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from bench.quality import GUARD, PAIRS, THRESHOLD, judge, pairs_of, qqp_sample
from cachewright.calibration.measures import NO_GUARD, Judged, by_class, curve, point, recommended
from cachewright.calibration.report import Wanted

QQP: Final = os.environ.get("CACHEWRIGHT_TEST_QQP", "")
GUARDED: Final = ("number", "unit", "negation", "antonym", "direction", "date")
"""Classes that the default guard has a check for."""


@pytest.fixture(scope="module")
def shipped() -> Sequence[Judged]:
    """Judge the pairs that ship."""
    return asyncio.run(judge(pairs_of(PAIRS / "pairs.csv")))


@pytest.fixture(scope="module")
def held_out() -> Sequence[Judged]:
    """Judge the pairs that were written after the guard."""
    return asyncio.run(judge(pairs_of(PAIRS / "held_out.csv")))


def test_the_default_threshold_is_the_one_that_calibration_recommends(shipped: Sequence[Judged]) -> None:
    """From the shipped pairs, for the default bound, up to one step."""
    found = recommended(curve(shipped, GUARD), Wanted().most_false_hits)
    assert found is not None
    assert found.threshold == pytest.approx(THRESHOLD, abs=0.0051)


def test_at_the_defaults_few_questions_get_the_wrong_answer(
    shipped: Sequence[Judged], held_out: Sequence[Judged]
) -> None:
    """Of questions that differ in one thing; without the guard it would be every fifth."""
    assert point(shipped, THRESHOLD, GUARD).false_hits.high < 0.025
    assert point(held_out, THRESHOLD, GUARD).false_hits.high < 0.08
    assert (point(shipped, THRESHOLD, NO_GUARD).false_hits.value or 0) > 0.15


def test_the_guarded_classes_have_no_false_hit(shipped: Sequence[Judged], held_out: Sequence[Judged]) -> None:
    """Numbers, units, negations, opposites, directions, dates, at the default threshold."""
    rows = by_class((*shipped, *held_out), THRESHOLD, GUARD)
    assert {row.kind: row.false_hits.count for row in rows if row.kind in GUARDED} == dict.fromkeys(
        GUARDED, 0
    )


def test_what_cannot_be_embedded_as_a_whole_never_hits(shipped: Sequence[Judged]) -> None:
    """Emoji and scripts that the built-in model has no tokens for."""
    assert all(each.similarity is None for each in shipped if each.pair.kind == "emoji")


def test_a_guard_costs_few_of_the_right_hits(shipped: Sequence[Judged], held_out: Sequence[Judged]) -> None:
    """At the default threshold, of the pairs that mean the same."""
    every = (*shipped, *held_out)
    guarded, bare = point(every, THRESHOLD, GUARD).recall, point(every, THRESHOLD, NO_GUARD).recall
    assert guarded.count >= 0.9 * bare.count


if QQP:

    @pytest.mark.timeout(3600)  # 16,000 texts are embedded, one after the other
    def test_quora_question_pairs() -> None:
        """At the defaults: precision of .90 at a recall of .20 or better."""
        found = point(asyncio.run(judge(qqp_sample(Path(QQP)))), THRESHOLD, GUARD)
        assert found.precision.value is not None
        assert found.recall.value is not None
        assert found.precision.value >= 0.90
        assert found.recall.value >= 0.20
