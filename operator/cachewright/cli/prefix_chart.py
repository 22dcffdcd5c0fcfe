"""From a prefix report to a chart and to a page that carries it. Needs matplotlib (extra `plots`)."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from cachewright.engines.prefix.report import PrefixReport, Reused

BLUE: Final = "#2b6cb0"
GREEN: Final = "#2f855a"
GREY: Final = "#a0aec0"
RED: Final = "#c05621"

STYLE: Final = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a202c}
table{border-collapse:collapse;margin:1rem 0 2rem;width:100%}
th,td{padding:.35rem .75rem;border-bottom:1px solid #e2e8f0;text-align:right}
th:first-child,td:first-child,td.text{text-align:left}
svg{max-width:100%;height:auto}
"""


def draw_png(report: PrefixReport, path: Path) -> None:
    """Draw the chart into a PNG file."""
    _figure(report).savefig(path, format="png", dpi=120)


def write_html(report: PrefixReport, path: Path) -> None:
    """Write one page that needs nothing else: chart, tables, and what to change."""
    path.write_text(_page(report), encoding="utf-8")


def _figure(report: PrefixReport) -> Figure:
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    rates, lost = figure.subplots(1, 2, width_ratios=(1, 1.4))
    bars = [("as logged", report.total.rate, BLUE), ("mended", report.mended.rate, GREEN)]
    if report.settings.per_tenant and len(report.by_tenant) > 1:
        bars.append(("if tenants\nshared", report.shared.rate, GREY))
    drawn = rates.bar([name for name, _, _ in bars], [100 * rate for _, rate, _ in bars])
    for bar, (_, rate, colour) in zip(drawn, bars, strict=True):
        bar.set_color(colour)
        rates.annotate(
            f"{rate:.0%}", (bar.get_x() + bar.get_width() / 2, 100 * rate), ha="center", va="bottom"
        )
    rates.set_ylim(0, 108)
    rates.set_ylabel("tokens found in the prefix cache, %")
    rates.set_title("Hit rate")
    _draw_lost(lost, report)
    for axes in (rates, lost):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_lost(axes: Any, report: PrefixReport) -> None:  # noqa: ANN401 - matplotlib has no types here
    axes.set_title("Tokens behind what breaks the shared beginning")
    if not report.breakers:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "nothing breaks it", ha="center", va="center", transform=axes.transAxes)
        return
    rows = list(reversed(report.breakers))
    axes.barh([str(row.kind) for row in rows], [row.lost_tokens for row in rows], color=RED)
    axes.set_xlabel("tokens computed anew")
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _svg(report: PrefixReport) -> str:
    buffer = io.StringIO()
    _figure(report).savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _page(report: PrefixReport) -> str:
    total = report.total
    tenants = _table("Tenant", report.by_tenant) if len(report.by_tenant) > 1 else ""
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Shared prefixes</title><style>{STYLE}</style>
<h1>Shared prefixes</h1>
<p>{total.requests:,} requests, about {total.tokens:,} tokens, blocks of {report.settings.block_size} tokens.
Found in the cache: {total.rate:.0%} as logged, {report.mended.rate:.0%} with what breaks it mended.</p>
{_svg(report)}
{_advice(report)}
{tenants}
{_table("Template", report.by_template)}
</html>
"""


def _advice(report: PrefixReport) -> str:
    rows = "".join(
        f"<tr><td>{broken.kind}</td><td>{broken.requests:,}</td><td>{broken.lost_tokens:,}</td>"
        f'<td class="text">{html.escape(broken.fix)}</td></tr>'
        for broken in report.breakers
    )
    if not rows:
        return "<p>Nothing breaks the shared beginnings of these prompts.</p>"
    return (
        "<h2>What to change</h2><table><tr><th>Breaker</th><th>Requests</th><th>Tokens behind it</th>"
        f"<th></th></tr>{rows}</table>"
    )


def _table(name: str, groups: Mapping[str, Reused]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(group or '(none)')}</td><td>{reused.requests:,}</td><td>{reused.tokens:,}</td>"
        f"<td>{reused.rate:.0%}</td></tr>"
        for group, reused in groups.items()
    )
    return f"<table><tr><th>{name}</th><th>Requests</th><th>Tokens</th><th>Hit rate</th></tr>{rows}</table>"
