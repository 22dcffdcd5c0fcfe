"""What the advice of `cachewright prefix analyze` is worth on an engine: `python -m bench.prefix`.

Each habit that breaks prefixes is a log of its own, played over HTTP to a stand-in engine with a block-hash
prefix cache (`e2e.engine`), once as logged and once mended as advised. Beside it stands what was foretold.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson

from cachewright.engines.prefix.chat_log import LogFields, LoggedRequest, Passed, read_log
from cachewright.engines.prefix.report import AnalysisSettings, analyze, mended
from e2e.engine import Engine, PrefixCache
from tests.support.chat_logs import RULES, TOOLS, Request, as_lines, chat

DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "prefix-caching.md"
MARKS: Final = ("<!-- prefix: begin -->", "<!-- prefix: end -->")
CHAT: Final = "/v1/chat/completions"

SYSTEM: Final = (
    RULES
    + "\n"
    + "\n".join(
        f"{number}. Parts of series {number * 100} are ordered by number, and delivered within {number} days."
        for number in range(7, 47)
    )
)
"""Some 800 tokens that every request begins with."""

FACTS: Final = {"shop": "north", "currency": "EUR", "plan": "gold", "open": "9-17", "language": "en"}

HEAD: Final = (
    "habit",
    "named",
    "foretold: as logged",
    "mended",
    "seen: as logged",
    "mended",
    "tokens computed for a request: as logged",
    "mended",
)

EXAMPLES: Final = """\
examples:
  python -m bench.prefix                  # some seconds; rewrites the table in docs/prefix-caching.md
  python -m bench.prefix --requests 50    # fewer requests, printed only
"""


def shuffled(items: Sequence[Any], number: int) -> list[Any]:
    """Return them in an order that the number decides."""
    return random.Random(number).sample(list(items), len(items))  # noqa: S311 - an order, no secret


def asked(system: str, number: int, tools: list[Request] | None = None) -> Request:
    """Build one request behind a system prompt."""
    return chat(system, f"Question {number}: what about part {number * 37}?", tools)


def facts(number: int) -> str:
    """Write the facts as JSON, with keys in an order of their own."""
    return orjson.dumps(dict(shuffled(list(FACTS.items()), number))).decode()


HABITS: Final[dict[str, Callable[[int], Request]]] = {
    "none: the same beginning each time": lambda n: asked(SYSTEM, n),
    "the time in the first line": lambda n: asked(
        f"It is 2026-11-28T{n // 60 % 24:02}:{n % 60:02}:00Z.\n{SYSTEM}", n
    ),
    "a session's id in the first line": lambda n: asked(
        f"Session {(n + 7) * 0x1F2E3D4C5B6A7:016x}.\n{SYSTEM}", n
    ),
    "one of fifty users' addresses in the first line": lambda n: asked(
        f"You talk to user{n % 50}@example.com.\n{SYSTEM}", n
    ),
    "JSON facts with keys in any order, first": lambda n: asked(f"Facts: {facts(n)}\n{SYSTEM}", n),
    "tools in any order": lambda n: asked(SYSTEM, n, shuffled(TOOLS, n)),
}


@dataclass(frozen=True, slots=True)
class Worth:
    """One habit: shares of tokens that were known, 0 to 1, and tokens that a request had computed."""

    habit: str
    breaker: str
    foretold: tuple[float, float]
    """As logged, and mended."""
    seen: tuple[float, float]
    computed: tuple[float, float]


async def measure(habit: str, count: int) -> Worth:
    """Play one habit."""
    log = as_lines(HABITS[habit](number) for number in range(count))
    requests = list(read_log(log.splitlines(), LogFields(), Passed()))
    report = analyze(requests, AnalysisSettings())
    before, after = await play(requests), await play(mended(requests, AnalysisSettings()))
    return Worth(
        habit,
        str(report.breakers[0].kind) if report.breakers else "",
        (report.total.rate, report.mended.rate),
        (before[0], after[0]),
        (before[1], after[1]),
    )


async def play(requests: Sequence[LoggedRequest]) -> tuple[float, float]:
    """Send requests to an engine of their own; returns the share it knew, and what it computed for each."""
    cache = PrefixCache()
    async with Engine(prefix_cache=cache) as engine, aiohttp.ClientSession(engine.url) as client:
        for one in requests:
            body: dict[str, Any] = {"model": "m", "messages": list(one.messages)}
            if one.tools:
                body["tools"] = list(one.tools)
            async with client.post(CHAT, json=body) as answer:
                answer.raise_for_status()
                await answer.read()
    computed = cache.queried_tokens - cache.hit_tokens
    return cache.hit_tokens / cache.queried_tokens, computed / len(requests)


def render(rows: Sequence[Worth], count: int) -> str:
    """Write the table."""
    lines = [
        f"{count} requests each, by `python -m bench.prefix`:",
        "",
        f"| {' | '.join(HEAD)} |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shares = " | ".join(f"{100 * share:.0f} %" for share in (*row.foretold, *row.seen))
        computed = " | ".join(f"{tokens:.0f}" for tokens in row.computed)
        named = f"`{row.breaker}`" if row.breaker else "-"
        lines.append(f"| {row.habit} | {named} | {shares} | {computed} |")
    return "\n".join(lines)


def write(table: str) -> None:
    """Put the table into the page."""
    page = DOCUMENT.read_text(encoding="utf-8")
    before, begun, rest = page.partition(MARKS[0])
    _, ended, after = rest.partition(MARKS[1])
    if not (begun and ended):
        raise RuntimeError(f"{DOCUMENT} lacks the markers {' and '.join(MARKS)}")
    DOCUMENT.write_text(f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{after}", encoding="utf-8")


async def main() -> None:
    """Parse the command line, measure, and report."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.prefix",
        description="Measure what mending prompts is worth on an engine with a prefix cache.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--requests", type=int, metavar="N", help="of each habit; default: 200")
    options = parser.parse_args()
    count = options.requests or 200
    table = render([await measure(habit, count) for habit in HABITS], count)
    print(table)
    if options.requests is None:
        write(table)


if __name__ == "__main__":
    asyncio.run(main())
