"""The report of `bench.reclaim`: a table between its markers in docs/benchmarks.md, and a plot beside it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from bench.results import number, spread

DOCUMENT: Final = Path(__file__).parents[1] / "docs/benchmarks.md"
PLOT: Final = DOCUMENT.parent / "benchmarks/reclaim.png"
BEGIN: Final = "<!-- reclaim: begin -->"
END: Final = "<!-- reclaim: end -->"
P99_TARGET_MS: Final = 2.0
MOST_TARGET_MS: Final = 20.0
COLUMNS: Final = (
    "keys",
    "what is done",
    "runs",
    "until it is gone, s",
    "others' GET p50, ms",
    "p99, ms",
    "longest, ms",
    "memory before, at most, after, MB",
    "keys left: given up, in use",
)
COLOURS: Final = {
    "nothing": "#9aa5ad",
    "janitor": "#1b6f9c",
    "FLUSHDB ASYNC": "#c7772e",
    "FLUSHDB": "#a33b3b",
}


def render(results: dict[str, Any]) -> str:
    """Return the part of the document that is measured."""
    measured = results["measured"]
    least, median, most = (number(value) for value in spread(one["load"] for one in measured))
    where = f"Measured on {results['began'][:10]} from {results['began'][11:16]} UTC on {results['machine']}"
    if results["realtime"]:
        where += ", store and reader at real-time priority beside whatever else the machine did"
    lines = [
        f"{where}; load average {least} / {median} / {most} while measuring.",
        "",
        "Cells: minimum / **median** / maximum of the runs; one value where there was one run.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    for (keys, method), runs in grouped(measured).items():
        memory = ", ".join(
            number(max(one[f"used_{when}_mb"] for one in runs)) for when in ("before", "most", "after")
        )
        left = f"{max(one['left_dead'] for one in runs):,}, {min(one['left_live'] for one in runs):,}"
        seconds = cells(runs, "seconds") if method != "nothing" else "-"
        cols = [seconds, *(cells(runs, name) for name in ("p50_ms", "p99_ms", "most_ms"))]
        name = f"**{method}**" if method == "janitor" else method
        lines.append(f"| {keys:,} | {name} | {len(runs)} | {' | '.join(cols)} | {memory} | {left} |")
    lines += ["", "Targets, for 1 M keys: p99 ≤ 2 ms, none above 20 ms.", f"Here: {verdict(measured)}."]
    return "\n".join([*lines, "", "![The longest answers while a keyspace goes](benchmarks/reclaim.png)"])


def verdict(measured: list[dict[str, Any]]) -> str:
    """Say of each size how the janitor stands against its targets."""
    said = []
    for (keys, method), runs in grouped(measured).items():
        if method != "janitor":
            continue
        p99 = spread(one["p99_ms"] for one in runs)[1] <= P99_TARGET_MS
        most = max(one["most_ms"] for one in runs) <= MOST_TARGET_MS
        words = ("reached" if met else "**not reached**" for met in (p99, most))
        said.append(f"{keys:,} keys {', '.join(words)}")
    return "; ".join(said)


def cells(runs: Iterable[dict[str, Any]], name: str) -> str:
    """Render one figure of all runs."""
    least, median, most = (number(value) for value in spread(one[name] for one in runs))
    return f"**{median}**" if least == most else f"{least} / **{median}** / {most}"


def grouped(measured: list[dict[str, Any]]) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """Put the runs of one size and method together, in the order in which they came."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for one in measured:
        groups.setdefault((one["keys"], one["method"]), []).append(one)
    return groups


def write(results: dict[str, Any]) -> None:
    """Put the table into the document and draw the plot."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise RuntimeError(f"{DOCUMENT} lacks the markers {BEGIN} and {END}")
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{render(results)}\n\n{END}{after}", encoding="utf-8")
    draw(results)


def draw(results: dict[str, Any]) -> None:
    """Draw the longest wait over time, one panel for each size, of the last run of each method."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    groups = grouped(results["measured"])
    sizes = list(dict.fromkeys(keys for keys, _ in groups))
    figure, panels = plt.subplots(len(sizes), 1, figsize=(8, 3.2 * len(sizes)), squeeze=False)
    for keys, axes in zip(sizes, panels[:, 0], strict=True):
        for method, colour in COLOURS.items():
            if (keys, method) in groups:
                course = groups[keys, method][-1]["course"]
                width = 2.2 if method == "janitor" else 1.2
                axes.plot(*zip(*course, strict=True), color=colour, label=method, linewidth=width)
        axes.axhline(MOST_TARGET_MS, color="#555555", linestyle=":", linewidth=1)
        axes.text(0, MOST_TARGET_MS * 1.15, "20 ms", fontsize=8, color="#555555")
        axes.set_yscale("log")
        axes.set_title(f"{keys:,} keys go while others read", fontsize=10)
        axes.set_ylabel("longest GET in 0.25 s, ms")
        axes.set_xlabel("seconds")
        axes.legend(loc="upper right", fontsize=8)
    figure.tight_layout()
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT, dpi=110)
