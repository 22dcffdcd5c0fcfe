"""Plots of a measurement's JSON. Runs in the peer's environment, which has matplotlib; the project's has not.

`python bench/plot.py results.json docs/benchmarks` writes latency.png and adversarial.png.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

COLOURS = {"cachewright": "#1b6f9c", "LiteLLM": "#c7772e"}


def main(source: Path, folder: Path) -> None:
    """Draw what the file holds."""
    results = json.loads(source.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [
        ("exact hit, 1 connection", "p50"),
        ("exact hit, 64 connections", "p50"),
        ("miss, 1 connection", "added at p50"),
        ("streamed hit, 1 connection", "first byte, p50"),
        ("store frozen", "added, first"),
        ("store killed", "added, first"),
    ]
    rows = {(row["title"], row["figure"]): row["values"] for row in results["rows"]}
    kept = [name for name in chosen if name in rows]
    if kept:
        bars(kept, rows, folder / "latency.png")
    if results["adversarial"]:
        wrong(results["adversarial"], folder / "adversarial.png")


def bars(names: list[tuple[str, str]], rows: dict[Any, Any], target: Path) -> None:
    """Draw medians with their spread, on a logarithmic axis."""
    figure, axes = plt.subplots(figsize=(8, 0.7 * len(names) + 1.2))
    for offset, (gateway, colour) in zip((-0.2, 0.2), COLOURS.items(), strict=True):
        for at, name in enumerate(names):
            values = [max(value, 0.01) for value in rows[name].get(gateway, [])]
            if not values:
                continue
            middle = statistics.median(values)
            spread = [[middle - min(values)], [max(values) - middle]]
            axes.barh(
                at + offset, middle, 0.36, xerr=spread, color=colour, label=gateway if at == 0 else None
            )
            axes.text(max(values) * 1.15, at + offset, f"{middle:,.2f} ms", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), [f"{title}\n{figure}" for title, figure in names], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(right=axes.get_xlim()[1] * 4)
    axes.set_xlabel("milliseconds (logarithmic), median and spread of the runs; less is better")
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(target, dpi=110)


def wrong(classes: dict[str, dict[str, list[int]]], target: Path) -> None:
    """Draw wrong hits by class."""
    kinds = [kind for kind in next(iter(classes.values())) if kind != "same"]
    figure, axes = plt.subplots(figsize=(8, 0.3 * len(kinds) + 1.2))
    for offset, (gateway, colour) in zip((-0.2, 0.2), COLOURS.items(), strict=True):
        if gateway in classes:
            counts = [classes[gateway].get(kind, [0, 0, 0])[1] for kind in kinds]
            axes.barh(
                [at + offset for at in range(len(kinds))],
                counts,
                0.36,
                color=colour,
                label=f"{gateway}: {sum(counts)}",
            )
    axes.set_yticks(range(len(kinds)), kinds, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("answers that were computed for another request")
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
