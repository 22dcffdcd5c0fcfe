"""`cachewright prefix analyze`: from a chat log to what its prompts share, for people or for pipelines.

Called by `cli.prefix`. The analysis itself is pure; see `engines.prefix`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from cachewright.cli.options import add_output_argument
from cachewright.cli.prefix_text import lines_of
from cachewright.engines.prefix.chat_log import LogFields, LoggedRequest, Passed, check_any, read_log
from cachewright.engines.prefix.report import AnalysisSettings, PrefixReport, analyze
from cachewright.errors import InvalidInput

EXAMPLES: Final = """\
examples:
  cachewright prefix analyze requests.jsonl
  cachewright prefix analyze requests.jsonl --tenant-field metadata.team --block-size 64
  cachewright prefix analyze requests.jsonl --png prefix.png --html prefix.html
  zcat logs/*.gz | cachewright prefix analyze - --output json --fail-under 0.5

Each line is one OpenAI chat request, bare or within "body" (batch files) or "request" (gateway logs).
The prompts are played in their order against a model of the engine's prefix cache. Nothing is sent anywhere,
and no text of a prompt is printed but how a template begins.

exit code:
  0  done
  1  the hit rate is below --fail-under
  2  the log cannot be read, or holds no chat request
"""

STDIN: Final = "-"
PROGRESS_SECONDS: Final = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("log", metavar="FILE", help="chat log as JSON lines, - for standard input")
    parser.add_argument(
        "--block-size",
        type=_at_least_one,
        default=16,
        metavar="TOKENS",
        help="tokens in a block of the engine: vLLM 16, TensorRT-LLM 32 (default: %(default)s)",
    )
    parser.add_argument(
        "--cache-tokens",
        type=_at_least_one,
        metavar="TOKENS",
        help="size of the engine's cache; without it nothing is evicted, the best that can be had",
    )
    parser.add_argument(
        "--share-tenants",
        action="store_true",
        help="play as if all tenants had the same salt (default: tenants share nothing)",
    )
    parser.add_argument(
        "--tenant-field", default="tenant", metavar="PATH", help="where a line names the tenant"
    )
    parser.add_argument(
        "--template-field", default="template", metavar="PATH", help="where a line names the prompt template"
    )
    parser.add_argument(
        "--fail-under", type=_share, metavar="RATE", help="exit with 1 below this hit rate, 0 to 1"
    )
    parser.add_argument("--png", type=Path, metavar="FILE", help="draw a chart")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write a page with the chart and the tables"
    )
    add_output_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Analyze one log, print and draw the result, and return the exit code."""
    passed = Passed()
    try:
        requests = _read(options, passed)
        check_any(requests, passed)
        settings = AnalysisSettings(options.block_size, options.cache_tokens, not options.share_tenants)
        report = analyze(requests, settings, progress=_progress(3 * len(requests)))
        _draw(options, report)
    except (InvalidInput, OSError) as e:
        print(f"cachewright prefix analyze: {e}", file=sys.stderr)
        return 2
    if options.output == "json":
        skipped = {"notChat": passed.not_chat, "badLines": passed.bad_lines}
        print(json.dumps({**report.to_dict(), "passedOver": skipped}, indent=2))
    else:
        print("\n".join(lines_of(report, passed)))
    return 1 if options.fail_under is not None and report.total.rate < options.fail_under else 0


def _read(options: argparse.Namespace, passed: Passed) -> list[LoggedRequest]:
    fields = LogFields(options.tenant_field, options.template_field)
    return list(read_log(_lines(options.log), fields, passed))


def _lines(name: str) -> Iterator[bytes]:
    if name == STDIN:
        yield from sys.stdin.buffer
        return
    with Path(name).open("rb") as file:
        yield from file


def _draw(options: argparse.Namespace, report: PrefixReport) -> None:
    if options.png is None and options.html is None:
        return
    try:
        from cachewright.cli.prefix_chart import draw_png, write_html
    except ModuleNotFoundError as e:
        raise InvalidInput(f"charts need more: pip install 'cachewright[plots]'  ({e})") from e
    if options.png is not None:
        draw_png(report, options.png)
    if options.html is not None:
        write_html(report, options.html)


def _progress(total: int) -> Callable[[int], None]:
    """Show a share on the terminal; nothing where standard error is a file."""
    if not sys.stderr.isatty():
        return lambda _done: None
    shown = [time.monotonic()]

    def show(done: int) -> None:
        now = time.monotonic()
        if done < total and now - shown[0] < PROGRESS_SECONDS:
            return
        shown[0] = now
        text = "" if done == total else f"{100 * done // total} % of the prompts played"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    return show


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must be from 0 to 1")
    return value
