"""What similar answers cost, as a table in docs/benchmarks.md; called by `bench.semantic`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bench.results import machine, number, spread
from bench.vector_report import put

HEADINGS: Final = (
    "gateway with",
    "a miss, p50, ms",
    "p99, ms",
    "added at p50, ms",
    "CPU, ms a request",
    "16 at once, requests/s",
    "loop lag p50, ms",
    "p99, ms",
    "longest, ms",
)
MISS_TARGET_MS: Final = 12.0
LAG_TARGET_MS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One round of one variant."""

    variant: str
    miss_p50_ms: float
    miss_p99_ms: float
    cpu_ms: float
    """Of gateway and embedder, for each request of those sent one after the other."""
    rate: float
    """Requests per second, many at once."""
    lag_p50_ms: float
    lag_p99_ms: float
    lag_most_ms: float
    load: float


def render(figures: Sequence[Figure]) -> str:
    """Render all rounds as Markdown."""
    variants = list(dict.fromkeys(one.variant for one in figures))
    baseline = [one for one in figures if one.variant == variants[0]]
    least, median, most = spread([one.load for one in figures])
    loads = f"load average {least:.2f} / {median:.2f} / {most:.2f} meanwhile; {len(baseline)} rounds"
    lines = [
        f"Measured on {datetime.now(UTC):%Y-%m-%d, until %H:%M} UTC, on {machine()}; {loads}.",
        "",
        "Cells: minimum / **median** / maximum of the rounds.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        "|---" * len(HEADINGS) + "|",
    ]
    lines += [
        _row([one for one in figures if one.variant == variant], baseline, variant) for variant in variants
    ]
    own = [one for one in figures if one.variant == variants[1]]
    added = statistics.median(_added(own, baseline))
    lag = statistics.median(one.lag_p99_ms for one in own)
    targets = (
        f"Targets, embedder beside the gateway: at most {MISS_TARGET_MS:.0f} ms added to a miss at p50: "
        f"{_reached(added, MISS_TARGET_MS)}; loop lag p99 below {LAG_TARGET_MS:.0f} ms: "
        f"{_reached(lag, LAG_TARGET_MS)}."
    )
    return "\n".join([*lines, "", targets])


def _row(figures: Sequence[Figure], baseline: Sequence[Figure], variant: str) -> str:
    def cell(of: Callable[[Figure], float]) -> str:
        return _cell([of(one) for one in figures])

    added = "-" if figures == baseline else _cell(_added(figures, baseline))
    cells = [
        variant,
        cell(lambda one: one.miss_p50_ms),
        cell(lambda one: one.miss_p99_ms),
        added,
        cell(lambda one: one.cpu_ms),
        cell(lambda one: one.rate),
        cell(lambda one: one.lag_p50_ms),
        cell(lambda one: one.lag_p99_ms),
        cell(lambda one: one.lag_most_ms),
    ]
    return f"| {' | '.join(cells)} |"


def _added(figures: Sequence[Figure], baseline: Sequence[Figure]) -> list[float]:
    """Return what each round added to the round of the exact layer before it."""
    return [one.miss_p50_ms - alone.miss_p50_ms for one, alone in zip(figures, baseline, strict=True)]


def _cell(values: Sequence[float]) -> str:
    least, median, most = min(values), statistics.median(values), max(values)
    return f"{number(least)} / **{number(median)}** / {number(most)}"


def _reached(value: float, target: float) -> str:
    return "reached" if value <= target else "**not reached**"


def write(text: str) -> None:
    """Put the figures into the document."""
    put("semantic", text)
