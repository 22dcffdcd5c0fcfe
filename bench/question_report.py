"""Right and wrong answers to similar questions as tables, a plot, and a part of docs/benchmarks.md.

Called by `bench.questions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.quality import cell
from bench.vector_report import DOCUMENT, put
from cachewright.calibration.bounds import Rate

PLOT: Final = DOCUMENT.parent / "benchmarks/questions.png"


@dataclass(frozen=True, slots=True)
class Tally:
    """How many pairs of each class shared an answer."""

    shared: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)

    def count(self, kind: str, is_shared: bool) -> None:
        """Count one pair."""
        self.pairs[kind] += 1
        self.shared[kind] += is_shared

    @property
    def rate(self) -> Rate:
        """Return the part of all pairs that shared an answer."""
        return Rate(self.shared.total(), self.pairs.total())


@dataclass(frozen=True, slots=True)
class Score:
    """What one contender did."""

    title: str
    threshold: float | None
    """None: the contender's own."""
    failed: int = 0
    """Pairs on which it raised an error; they count as not shared."""
    right: Tally = field(default_factory=Tally)
    """Questions that mean the same."""
    wrong: Tally = field(default_factory=Tally)
    """Questions that do not."""
    structure: Tally = field(default_factory=Tally)
    """Requests that differ in anything but the question."""

    @property
    def name(self) -> str:
        """Say who, and how it was set."""
        return f"{self.title}, {'its own' if self.threshold is None else f'{self.threshold:.2f}'}"


def render(scores: Sequence[Score], failed: Sequence[str]) -> str:
    """Return the part of the document that is measured."""
    parts = [
        _measured(scores[0]),
        *([f"Failed, so incomplete: {', '.join(failed)}."] if failed else []),
        _totals(scores),
        "![Right and false hits of all contenders](benchmarks/questions.png)",
        "False hits by class of what differs in the question, each with its own threshold:",
        _by_class(scores, "wrong"),
        "Wrong hits by class of structure, each with its own threshold:",
        _by_class(scores, "structure"),
    ]
    return "\n\n".join(parts)


def write(text: str, scores: Sequence[Score]) -> None:
    """Put the figures into the document and draw the plot."""
    put("questions", text)
    draw(scores, PLOT)


def draw(scores: Sequence[Score], target: Path) -> None:
    """Draw right hits over false ones: up and to the left is better."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    for score in scores:
        false, right = 100 * (score.wrong.rate.value or 0), 100 * (score.right.rate.value or 0)
        axes.plot([false], [right], "o" if score.threshold is None else "s", label=score.name)
    axes.set_xlabel("false hits, % of the questions that mean something else")
    axes.set_ylabel("hits, % of those that mean the same")
    axes.set_xlim(left=-2)
    axes.set_ylim(0, 100)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(target, dpi=110)
    plt.close(figure)


def _measured(first: Score) -> str:
    same, other, structure = first.right.rate.of, first.wrong.rate.of, first.structure.rate.of
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}: {same} pairs of questions that mean the same, "
        f"{other} that do not, and {structure} pairs of requests of another structure."
    )


def _totals(scores: Sequence[Score]) -> str:
    lines = [
        "| contender, threshold | hits of the same | false hits | wrong hits, other structures | errors |",
        "|---|---|---|---|---|",
    ]
    for score in scores:
        cells = (cell(tally.rate) for tally in (score.right, score.wrong, score.structure))
        lines.append(f"| {score.name} | {' | '.join(cells)} | {score.failed} |")
    return "\n".join(lines)


def _by_class(scores: Sequence[Score], what: str) -> str:
    shown = [scores[0], *(score for score in scores[1:] if score.threshold is None)]
    tallies: list[Tally] = [getattr(score, what) for score in shown]
    lines = [
        "| class | pairs | " + " | ".join(score.title for score in shown) + " |",
        "|---|---|" + "---|" * len(shown),
    ]
    for kind in sorted(tallies[0].pairs):
        cells = (str(tally.shared[kind]) for tally in tallies)
        lines.append(f"| {kind.replace('_', ' ')} | {tallies[0].pairs[kind]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
