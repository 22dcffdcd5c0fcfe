"""Figures of vector look-ups as a table, a plot, and a part of docs/benchmarks.md.

Called by `bench.vectors`; the document is `bench.question_report`'s too.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.contenders import OURS
from bench.results import machine, number, spread

DOCUMENT: Final = Path(__file__).parents[1] / "docs/benchmarks.md"
PLOT: Final = DOCUMENT.parent / "benchmarks/vectors.png"

EXPLAINED: Final = (
    "CPU: of the library and its store, for one look-up.\nFound: of as many repeats at a cosine of 0.96.\n"
    "Ratio: to the quickest store of ours at that size."
)

CROWD_TARGET_MS: Final = 5.0
CROWD_TARGET_RECALL: Final = 0.95


@dataclass(frozen=True)
class Round:
    """Look-ups of one round."""

    recall: float
    """Part of them that found the entry they repeat."""
    milliseconds: list[float]
    """Of each, sorted."""
    cpu_ms: float
    """Of the library and the store's server, for each."""

    def percentile(self, part: float) -> float:
        """Return a percentile of the look-ups."""
        return self.milliseconds[min(len(self.milliseconds) - 1, int(part * len(self.milliseconds)))]


@dataclass(frozen=True)
class Figure:
    """Look-ups of one store or peer, holding so many entries."""

    title: str
    kind: str
    """`alone`: all entries are in the partition that is searched; `crowd`: ten are."""
    size: int
    rounds: list[Round]
    fill_seconds: float

    def spread(self, part: float) -> str:
        """Render minimum, **median** and maximum of the rounds' percentiles."""
        least, median, most = (
            number(value) for value in spread([one.percentile(part) for one in self.rounds])
        )
        return f"{least} / **{median}** / {most}"

    def percentile(self, part: float) -> float:
        """Return the median of the rounds' percentiles."""
        return statistics.median(one.percentile(part) for one in self.rounds)

    @property
    def recall(self) -> float:
        """Return the median of the rounds."""
        return statistics.median(one.recall for one in self.rounds)

    @property
    def cpu_ms(self) -> float:
        """Return the median of the rounds."""
        return statistics.median(one.cpu_ms for one in self.rounds)


def render(figures: Sequence[Figure], loads: Sequence[float], failed: Sequence[str]) -> str:
    """Return the part of the document that is measured."""
    least, median, most = (number(value) for value in spread(loads))
    where = f"Measured on {datetime.now(UTC):%Y-%m-%d}, until {datetime.now(UTC):%H:%M} UTC, on {machine()}"
    if priority := os.nice(0):
        where += f", all of it at nice {priority} beside whatever else the machine did"
    alone = [figure for figure in figures if figure.kind == "alone"]
    crowd = [figure for figure in figures if figure.kind == "crowd"]
    count, rounds = len(figures[0].rounds[0].milliseconds), len(figures[0].rounds)
    parts = [
        f"{where}; load average {least} / {median} / {most} meanwhile; {rounds} rounds of {count} look-ups.",
        *([f"Failed, so incomplete: {', '.join(failed)}."] if failed else []),
        f"p50: minimum / **median** / maximum of the rounds; the other columns are medians.\n{EXPLAINED}",
        _size_table(alone),
        "![Latencies of look-ups by number of entries](benchmarks/vectors.png)",
    ]
    if crowd:
        who = f"A tenant with 10 entries among {crowd[0].size:,} of 100 others"
        parts += [f"{who}, a tenth of which lie nearer to its questions than its own:", _crowd_table(crowd)]
    return "\n\n".join(parts)


def write(text: str, figures: Sequence[Figure]) -> None:
    """Put the figures into the document and draw the plot."""
    put("vectors", text)
    draw(figures, PLOT)


def put(name: str, text: str) -> None:
    """Replace what stands between two markers of the document."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    document = DOCUMENT.read_text(encoding="utf-8")
    before, begun, rest = document.partition(begin)
    _, ended, after = rest.partition(end)
    if not (begun and ended):
        raise RuntimeError(f"{DOCUMENT} lacks the markers {begin} and {end}")
    DOCUMENT.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def draw(figures: Sequence[Figure], target: Path) -> None:
    """Draw medians by size, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    titles = list(dict.fromkeys(one.title for one in figures if one.kind == "alone"))
    for title in titles:
        rows = [one for one in figures if one.title == title and one.kind == "alone"]
        style = "-" if title.startswith(OURS) else "--"
        axes.plot(
            [row.size for row in rows], [row.percentile(0.5) for row in rows], style, marker="o", label=title
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("entries (logarithmic)")
    axes.set_ylabel("look-up, p50 in ms (logarithmic)")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(target, dpi=110)


def _size_table(figures: Sequence[Figure]) -> str:
    lines = [
        "| entries | store | p50, ms | ratio | p99, ms | CPU, ms | found |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in sorted({figure.size for figure in figures}):
        of_size = [figure for figure in figures if figure.size == size]
        best = min((one.percentile(0.5) for one in of_size if one.title.startswith(OURS)), default=None)
        for index, figure in enumerate(of_size):
            ratio = f"{figure.percentile(0.5) / best:.1f}" if best else "-"
            lines.append(
                f"| {f'{size:,}' if index == 0 else ''} | {figure.title} | {figure.spread(0.5)} | {ratio} "
                f"| {number(figure.percentile(0.99))} | {number(figure.cpu_ms)} | {figure.recall:.2f} |"
            )
    return "\n".join(lines)


def _crowd_table(figures: Sequence[Figure]) -> str:
    lines = ["| store | p50, ms | p99, ms | found | target |", "|---|---|---|---|---|"]
    for figure in figures:
        p50 = figure.percentile(0.5)
        reached = p50 <= CROWD_TARGET_MS and figure.recall >= CROWD_TARGET_RECALL
        target = f"p50 ≤ {CROWD_TARGET_MS:.0f} ms, found ≥ {CROWD_TARGET_RECALL}"
        verdict = "reached" if reached else "**not reached**"
        lines.append(
            f"| {figure.title} | {figure.spread(0.5)} | {number(figure.percentile(0.99))} "
            f"| {figure.recall:.3f} | {target}: {verdict} |"
        )
    return "\n".join(lines)
