"""Figures of vector look-ups as a table, a plot, and a part of docs/benchmarks.md.

Called by `bench.vectors`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.results import machine, number, spread

DOCUMENT: Final = Path(__file__).parents[1] / "docs/benchmarks.md"
PLOT: Final = DOCUMENT.parent / "benchmarks/vectors.png"
BEGIN: Final = "<!-- vectors: begin -->"
END: Final = "<!-- vectors: end -->"

CROWD_TARGET_MS: Final = 5.0
CROWD_TARGET_RECALL: Final = 0.95


@dataclass(frozen=True)
class Figure:
    """Look-ups of one store or peer, holding so many entries."""

    title: str
    kind: str
    """`alone`: all entries are in the partition that is searched; `crowd`: ten are."""
    size: int
    recall: float
    """Part of the look-ups that found the entry they repeat."""
    milliseconds: list[float]
    """Of each look-up, sorted."""
    fill_seconds: float

    def percentile(self, part: float) -> float:
        """Return a percentile of the look-ups."""
        return self.milliseconds[min(len(self.milliseconds) - 1, int(part * len(self.milliseconds)))]


def render(figures: Sequence[Figure], loads: Sequence[float], failed: Sequence[str]) -> str:
    """Return the part of the document that is measured."""
    least, median, most = (number(value) for value in spread(loads))
    where = f"Measured on {datetime.now(UTC):%Y-%m-%d}, until {datetime.now(UTC):%H:%M} UTC, on {machine()}"
    if priority := os.nice(0):
        where += f", all of it at nice {priority} beside whatever else the machine did"
    alone = [figure for figure in figures if figure.kind == "alone"]
    crowd = [figure for figure in figures if figure.kind == "crowd"]
    count = len(figures[0].milliseconds)
    parts = [
        f"{where}; load average {least} / {median} / {most} meanwhile; one run of {count} look-ups each.",
        *([f"Failed, so incomplete: {', '.join(failed)}."] if failed else []),
        f"Cells: p50 / p99 in ms, and the part of the {count} repeats (cosine 0.96) that was found.",
        _size_table(alone),
        "![Latencies of look-ups by number of entries](benchmarks/vectors.png)",
    ]
    if crowd:
        who = f"A tenant with 10 entries among {crowd[0].size:,} of 100 others"
        parts += [f"{who}, a tenth of which lie nearer to its questions than its own:", _crowd_table(crowd)]
    return "\n\n".join(parts)


def write(text: str, figures: Sequence[Figure]) -> None:
    """Put the figures into the document and draw the plot."""
    document = DOCUMENT.read_text(encoding="utf-8")
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise RuntimeError(f"{DOCUMENT} lacks the markers {BEGIN} and {END}")
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    draw(figures, PLOT)


def draw(figures: Sequence[Figure], target: Path) -> None:
    """Draw medians by size, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    titles = list(dict.fromkeys(one.title for one in figures if one.kind == "alone"))
    for title in titles:
        rows = [one for one in figures if one.title == title and one.kind == "alone"]
        style = "-" if title.startswith("cachewright") else "--"
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
    sizes = sorted({figure.size for figure in figures})
    by_place = {(figure.title, figure.size): figure for figure in figures}
    lines = [
        "| store | " + " | ".join(f"{size:,} entries" for size in sizes) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for title in dict.fromkeys(figure.title for figure in figures):
        cells = []
        for size in sizes:
            found = by_place.get((title, size))
            cells.append(_cell(found) if found else "-")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(figure: Figure) -> str:
    latency = f"**{number(figure.percentile(0.5))}** / {number(figure.percentile(0.99))}"
    return f"{latency}, {figure.recall:.2f}"


def _crowd_table(figures: Sequence[Figure]) -> str:
    lines = ["| store | p50, ms | p99, ms | found | target |", "|---|---|---|---|---|"]
    for figure in figures:
        p50 = figure.percentile(0.5)
        reached = p50 <= CROWD_TARGET_MS and figure.recall >= CROWD_TARGET_RECALL
        target = f"p50 ≤ {CROWD_TARGET_MS:.0f} ms, found ≥ {CROWD_TARGET_RECALL}"
        lines.append(
            f"| {figure.title} | {number(p50)} | {number(figure.percentile(0.99))} | {figure.recall:.3f} | "
            f"{target}: {'reached' if reached else '**not reached**'} |"
        )
    return "\n".join(lines)
