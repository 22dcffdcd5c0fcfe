"""What was measured: values of several runs under a name, as a table for people and as JSON for programs."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import psutil

from bench.contenders import OURS, PEER

CONTENDERS: Final = (OURS, PEER)


@dataclass(frozen=True, slots=True)
class Target:
    """What the design asks of us: at most, or at least, a value."""

    value: float
    at_most: bool = True


@dataclass
class Row:
    """One figure: a value of each run, for each gateway."""

    scenario: str
    title: str
    figure: str
    unit: str
    target: Target | None = None
    less_is_better: bool = True
    values: dict[str, list[float]] = field(default_factory=dict)
    """By gateway."""


class Results:
    """All figures, in the order in which they were first measured."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.rows: dict[tuple[str, str, str], Row] = {}
        self.classes: dict[str, dict[str, tuple[int, int, int]]] = {}
        """By gateway: cases, wrong hits and pairs that proved nothing, by class of the adversarial set."""
        self.loads: list[float] = []
        self.failed: list[str] = []
        """Scenarios that could not be measured to their end."""
        self.began = datetime.now(UTC)

    def add(self, row: Row, contender: str, value: float) -> None:
        """Add one run's value."""
        kept = self.rows.setdefault((row.scenario, row.title, row.figure), row)
        kept.values.setdefault(contender, []).append(value)

    def note_load(self) -> None:
        """Remember how busy the machine is."""
        self.loads.append(psutil.getloadavg()[0])

    def to_json(self) -> dict[str, Any]:
        """Render everything."""
        return {
            "began": self.began.isoformat(timespec="minutes"),
            "ended": datetime.now(UTC).isoformat(timespec="minutes"),
            "runs": self.runs,
            "machine": machine(),
            "load": spread(self.loads) if self.loads else None,
            "failed": self.failed,
            "rows": [asdict(row) for row in self.rows.values()],
            "adversarial": self.classes,
        }


def machine() -> str:
    """Describe the machine in one line."""
    memory = psutil.virtual_memory().total / 2**30
    system = f"Linux {platform.release()}, Python {platform.python_version()}"
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {system}"


def spread(values: Iterable[float]) -> tuple[float, float, float]:
    """Return minimum, median and maximum."""
    kept = list(values)
    return min(kept), statistics.median(kept), max(kept)


def number(value: float) -> str:
    """Render a figure with three digits that matter."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def verdict(row: Row) -> str:
    """Say in a word how we stand: against the target, and beside the peer."""
    ours = row.values.get(OURS)
    if not ours:
        return ""
    median = statistics.median(ours)
    said = []
    if row.target is not None:
        reached = median <= row.target.value if row.target.at_most else median >= row.target.value
        sign = "≤" if row.target.at_most else "≥"
        said.append(f"{sign} {number(row.target.value)}: {'reached' if reached else '**not reached**'}")
    if peers := row.values.get(PEER):
        other = statistics.median(peers)
        loses = median > other if row.less_is_better else median < other
        if loses:
            said.append("**we lose**")
    return "; ".join(said)


def table(results: Results) -> str:
    """Render the figures as one Markdown table: minimum / **median** / maximum of the runs."""
    lines = [
        f"| what | figure | {OURS} | {PEER} | target of ours |",
        "|---|---|---|---|---|",
    ]
    before = ""
    for row in results.rows.values():
        cells = []
        for name in CONTENDERS:
            values = row.values.get(name)
            if not values:
                cells.append("-")
                continue
            least, median, most = (number(value) for value in spread(values))
            cells.append(f"**{median}**" if least == most else f"{least} / **{median}** / {most}")
        title = row.title if row.title != before else ""
        before = row.title
        lines.append(f"| {title} | {row.figure}, {row.unit} | {cells[0]} | {cells[1]} | {verdict(row)} |")
    return "\n".join(lines)


def class_table(results: Results) -> str:
    """Render wrong hits by class of the adversarial set."""
    names = [name for name in CONTENDERS if name in results.classes]
    lines = [
        "| class | pairs | " + " | ".join(f"{name}: wrong" for name in names) + " |",
        "|---|---|" + "---|" * len(names),
    ]
    totals = dict.fromkeys(names, 0)
    pairs = 0
    for kind in sorted(results.classes[names[0]]):
        if kind == "same":
            continue
        cells = []
        for name in names:
            count, wrong, idle = results.classes[name].get(kind, (0, 0, 0))
            totals[name] += wrong
            cells.append(f"{wrong}" + (f" ({idle} not cached)" if idle else ""))
        pairs += count
        lines.append(f"| {kind} | {count} | " + " | ".join(cells) + " |")
    lines.append(f"| **all** | **{pairs}** | " + " | ".join(f"**{totals[name]}**" for name in names) + " |")
    same = [results.classes[name].get("same", (0, 0, 0)) for name in names]
    if same[0][0]:
        lines.append(
            f"| same (not shared) | {same[0][0]} | " + " | ".join(f"{lost}" for _, lost, _ in same) + " |"
        )
    return "\n".join(lines)
