"""A calibration as a picture: from its report to PNG, SVG or a page of HTML. Called by `cli.calibrate`.

The only importer of matplotlib, which comes with the extra `plots`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cachewright.calibration.bounds import Rate
from cachewright.calibration.measures import Point
from cachewright.calibration.report import Report
from cachewright.cli.calibrate_page import page
from cachewright.errors import InvalidInput

ENDINGS: Final = ("png", "svg", "html")

_INK: Final = "#22313f"
_RIGHT: Final = "#1b7f79"
_WRONG: Final = "#c0392b"
_QUIET: Final = "#8a97a3"


def write_plot(report: Report, file: Path) -> None:
    """Draw a report into a file, whose ending says in which form; raises InvalidInput without matplotlib."""
    figure = _figure(report)
    if file.suffix == ".html":
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg")
        svg = drawn.getvalue()
        file.write_text(page(report, svg[svg.index("<svg") :]), encoding="utf-8")
    else:
        figure.savefig(file, format=file.suffix[1:], dpi=140)


def _figure(report: Report) -> Any:  # noqa: ANN401 - matplotlib publishes no types
    try:
        from matplotlib.figure import Figure
    except ImportError as e:
        raise InvalidInput(f"a plot needs more: pip install 'cachewright[plots]'  ({e})") from e
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    curves, classes = figure.subplots(1, 2, width_ratios=(1.15, 1))
    _draw_curves(curves, report)
    _draw_classes(classes, report)
    return figure


def _draw_curves(axes: Any, report: Report) -> None:  # noqa: ANN401
    thresholds = [each.threshold for each in report.guarded]
    for points, style, name in ((report.guarded, "-", "guarded"), (report.bare, ":", "without guard")):
        axes.plot(thresholds, _values(points, "precision"), style, color=_RIGHT, label=f"precision, {name}")
        axes.plot(thresholds, _values(points, "recall"), style, color=_INK, label=f"recall, {name}")
        axes.plot(thresholds, _values(points, "false_hits"), style, color=_WRONG, label=f"false hits, {name}")
    high = [each.false_hits.high for each in report.guarded]
    low = [each.false_hits.low for each in report.guarded]
    axes.fill_between(thresholds, low, high, color=_WRONG, alpha=0.15, linewidth=0)
    axes.axvline(report.looked_at, color=_QUIET, linewidth=1)
    axes.annotate(
        f"{report.looked_at:.3f}", (report.looked_at, 1.02), ha="center", color=_QUIET, annotation_clip=False
    )
    axes.set(xlim=(0.5, 1), ylim=(0, 1), xlabel="threshold (cosine)", ylabel="share of pairs")
    axes.set_title(f"{report.embedder}: {report.pairs} pairs", loc="left", pad=18)
    axes.grid(alpha=0.2)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12))


def _values(points: Sequence[Point], name: str) -> list[float]:
    rates: list[Rate] = [getattr(each, name) for each in points]
    return [float("nan") if rate.value is None else rate.value for rate in rates]


def _draw_classes(axes: Any, report: Report) -> None:  # noqa: ANN401
    rows = [row for row in report.classes if row.false_hits.of]
    for place, row in enumerate(rows):
        for rate, colour, offset in ((row.without_guard, _QUIET, -0.18), (row.false_hits, _WRONG, 0.18)):
            axes.plot([rate.low, rate.high], [place + offset] * 2, color=colour, linewidth=1.5, alpha=0.6)
            axes.plot([rate.value], [place + offset], "o", color=colour, markersize=5)
    axes.plot([], [], "o-", color=_QUIET, label="without guard")
    axes.plot([], [], "o-", color=_WRONG, label="guarded")
    axes.set_yticks(range(len(rows)), [f"{row.kind.replace('_', ' ')} ({row.false_hits.of})" for row in rows])
    axes.invert_yaxis()
    axes.set(xlim=(-0.02, 1.02), xlabel=f"false-hit rate at {report.looked_at:.3f}, with 95 % bounds")
    axes.set_title("Questions that differ in one thing", loc="left", pad=18)
    axes.grid(alpha=0.2, axis="x")
    axes.legend(fontsize=8, frameon=False, loc="upper right")
