"""Command line of the measurements: `python -m bench` measures everything and writes docs/benchmarks.md."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import traceback

from bench.contenders import install_peer
from bench.report import render, write
from bench.results import Results
from bench.scenarios import SCENARIOS, Plan
from bench.stage import set_up

EXAMPLES = """\
examples:
  python -m bench                                # everything, five runs, into docs/benchmarks.md
  python -m bench --quick --scenario exact       # one short run of one scenario, printed only
  python -m bench --without-peer --output json   # our gateway alone, as JSON
"""


def main() -> int:
    """Parse the command line, measure, and report."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure the gateway beside LiteLLM, on this machine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--scenario", action="append", choices=list(SCENARIOS), help="only this one; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="one short run, and no change of the document")
    parser.add_argument("--runs", type=int, help="default: 5")
    parser.add_argument("--without-peer", action="store_true", help="measure our gateway alone")
    parser.add_argument(
        "--output",
        choices=("document", "markdown", "json"),
        help="where to; default: the document for a whole measurement, else markdown on stdout",
    )
    asked = parser.parse_args()
    chosen = asked.scenario or list(SCENARIOS)
    whole = not (asked.scenario or asked.quick or asked.without_peer)
    output = asked.output or ("document" if whole else "markdown")
    if not asked.without_peer:
        install_peer()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {text}", file=sys.stderr, flush=True)

    runs = asked.runs or (1 if asked.quick else 5)
    plan = Plan(runs, 1 if asked.quick else 2, 100 if asked.quick else 300, say)
    results = Results(runs)
    say("starting store, upstream and gateways")
    with set_up(with_peer=not asked.without_peer) as stage:
        for name in chosen:
            try:
                asyncio.run(SCENARIOS[name](stage, results, plan))
            except Exception:  # noqa: BLE001 - the process edge: one that fails must not cost the others' figures
                traceback.print_exc()
                results.failed.append(name)
    match output:
        case "json":
            print(json.dumps(results.to_json(), indent=2))
        case "markdown":
            print(render(results))
        case _:
            write(results)
            say("wrote docs/benchmarks.md")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
