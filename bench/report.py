"""The report: figures into docs/benchmarks.md between its markers, plots beside it.

Called by the command line.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from bench.contenders import install_peer
from bench.results import Results, class_table, machine, number, spread, table

DOCUMENT: Final = Path(__file__).parents[1] / "docs/benchmarks.md"
PLOTS: Final = DOCUMENT.parent / "benchmarks"
BEGIN: Final = "<!-- bench: begin -->"
END: Final = "<!-- bench: end -->"


def render(results: Results) -> str:
    """Return the part of the document that is measured."""
    least, median, most = (number(value) for value in spread(results.loads or [0.0]))
    where = f"Measured on {results.began:%Y-%m-%d} from {results.began:%H:%M} UTC on {machine()}"
    if priority := os.nice(0):
        where += f", all of it at nice {priority} beside whatever else the machine did"
    parts = [
        f"{where}; load average {least} / {median} / {most} while measuring, {results.runs} runs.",
        "Cells: minimum / **median** / maximum of the runs; one value where all runs agree.",
        *([f"Failed, so incomplete: {', '.join(results.failed)}."] if results.failed else []),
        table(results),
        "![Latencies of both gateways](benchmarks/latency.png)",
    ]
    if results.classes:
        parts += ["### Wrong hits by class", class_table(results)]
        parts.append("![Wrong hits of both gateways by class](benchmarks/adversarial.png)")
    return "\n\n".join(parts)


def write(results: Results) -> None:
    """Put the figures into the document and draw the plots."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise RuntimeError(f"{DOCUMENT} lacks the markers {BEGIN} and {END}")
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{render(results)}\n\n{END}{after}", encoding="utf-8")
    python = install_peer()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as source:
        json.dump(results.to_json(), source)
        source.flush()
        program = Path(__file__).with_name("plot.py")
        subprocess.run([str(python), str(program), source.name, str(PLOTS)], check=True)
