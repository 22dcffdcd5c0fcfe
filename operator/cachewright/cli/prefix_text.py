"""From a prefix report to lines for a terminal. Called by `cachewright prefix analyze`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cachewright.engines.prefix.chat_log import Passed
from cachewright.engines.prefix.report import PrefixReport, Reused

MOST_ROWS: Final = 10
"""Tenants or templates shown in the terminal; JSON and the page show more."""


def lines_of(report: PrefixReport, passed: Passed) -> Iterator[str]:
    """Yield the report line by line."""
    total = report.total
    yield (
        f"{_count(total.requests, 'request')}, about {total.tokens:,} tokens,"
        f" blocks of {report.settings.block_size},"
        f" {'tenants apart' if report.settings.per_tenant else 'tenants together'}"
    )
    if passed.bad_lines or passed.not_chat:
        bad = len(passed.bad_lines)
        yield f"passed over: {_count(bad, 'line')} not JSON, {passed.not_chat} without messages"
    yield ""
    yield from _rates(report)
    if len(report.by_tenant) > 1:
        yield from _groups("tenant", report.by_tenant)
    yield from _groups("template", report.by_template)
    yield ""
    yield from _breakers(report)


def _rates(report: PrefixReport) -> Iterator[str]:
    yield f"{'':28}{'hit rate':>9}{'computed':>14}"
    rows = [("as logged", report.total)]
    if report.breakers:
        rows.append(("with what breaks it mended", report.mended))
    if report.settings.per_tenant and len(report.by_tenant) > 1:
        rows.append(("if tenants shared", report.shared))
    for name, reused in rows:
        yield f"{name:28}{reused.rate:>8.0%} {reused.tokens - reused.hit_tokens:>13,}"


def _groups(kind: str, groups: Mapping[str, Reused]) -> Iterator[str]:
    yield ""
    yield f"{kind:34}{'requests':>10}{'tokens':>14}{'hit rate':>10}"
    for name, reused in list(groups.items())[:MOST_ROWS]:
        yield f"{name or '(none)':34.34}{reused.requests:>10,}{reused.tokens:>14,}{reused.rate:>9.0%}"
    if len(groups) > MOST_ROWS:
        yield f"… and {len(groups) - MOST_ROWS} more; --output json has them"


def _breakers(report: PrefixReport) -> Iterator[str]:
    if not report.breakers:
        yield "Nothing breaks the shared beginnings of these prompts."
        return
    yield "What breaks shared beginnings, the costliest first:"
    for broken in report.breakers:
        share = broken.lost_tokens / report.total.tokens
        yield ""
        yield (
            f"  {broken.kind:12} {_count(broken.requests, 'request')},"
            f" {broken.lost_tokens:,} tokens behind it ({share:.0%} of all);"
            f" line {', '.join(map(str, broken.lines))}{' …' if broken.requests > len(broken.lines) else ''}"
        )
        yield f"  {'':12} {broken.fix}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
