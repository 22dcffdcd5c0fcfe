"""A calibration as a page: from its report and its plot to one HTML file that needs nothing else.

Called by `cli.calibrate_plot`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Final

import yaml

from cachewright.calibration.bounds import CONFIDENCE, Rate
from cachewright.calibration.report import SHOWN, Report, headline, patch

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #22313f; --paper: #fff; --quiet: #5d6b78; --line: #d5dbe0;
  --mark: #fff3cd }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ed; --paper: #15191d; --quiet: #98a5b1; --line: #36414b; --mark: #4a3f14 }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
figure { margin: 1.5rem 0; background: #fff; border: 1px solid var(--line); border-radius: 6px }
svg { display: block; width: 100%; height: auto }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100% }
caption { text-align: left; font-weight: 600; padding: 1.5rem 0 .5rem }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap }
th:first-child, td:first-child { text-align: left; padding-left: .25rem }
td span { color: var(--quiet); font-size: .85em }
tr.chosen { background: var(--mark); font-weight: 600 }
pre { background: color-mix(in srgb, var(--ink) 6%, transparent); padding: 1rem; border-radius: 6px }
"""

_PAGE: Final = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style></head>
<body>
{body}
</body></html>
"""


def page(report: Report, svg: str) -> str:
    """Return the page; `svg` is the plot, from its `<svg` on."""
    title = f"Calibration of {html.escape(report.embedder)}"
    told = "\n".join(f"<p>{html.escape(line)}</p>" for line in headline(report))
    parts = (
        f"<h1>{title}</h1>",
        told,
        f"<figure>{svg}</figure>",
        f"<p>In brackets: bounds that hold with {CONFIDENCE:.0%} confidence.</p>",
        *_tables(report),
        *_patch(report),
    )
    return _PAGE.format(title=title, style=_STYLE, body="\n".join(parts))


def _tables(report: Report) -> Iterator[str]:
    at = f"at a threshold of {report.looked_at:.3f}"
    rates = ("precision", "recall", "false hits")
    pairs = zip(report.guarded, report.bare, strict=True)
    yield _table(
        "By threshold",
        ("threshold", *rates, "false hits without the guard"),
        [
            (f"{one.threshold:.3f}", one.precision, one.recall, one.false_hits, bare.false_hits)
            for one, bare in pairs
            if one.threshold in (*SHOWN, report.looked_at)
        ],
        chosen=f"{report.looked_at:.3f}",
    )
    yield _table(
        f"By class of what differs, {at}",
        ("class", "false hits", "false hits without the guard", "recall"),
        [
            (row.kind.replace("_", " "), row.false_hits, row.without_guard, row.recall)
            for row in report.classes
        ],
    )
    chosen = ", ".join(report.wanted.checks) or "none"
    yield _table(
        f"By guard, {at}; chosen: {chosen}",
        ("guard", *rates),
        [(name, one.precision, one.recall, one.false_hits) for name, one in report.guards],
        chosen="chosen",
    )


def _table(
    caption: str, names: Sequence[str], rows: Sequence[tuple[str | Rate, ...]], chosen: str = ""
) -> str:
    """Lay rates out, with the row that is in use marked."""
    lines = [f"<caption>{html.escape(caption)}</caption>", _row("th", names)]
    for first, *rates in rows:
        cells = [html.escape(str(first)), *(_cell(rate) for rate in rates if isinstance(rate, Rate))]
        lines.append(_row("td", cells, is_chosen=first == chosen))
    return '<div class="scroll"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _row(kind: str, cells: Sequence[str], *, is_chosen: bool = False) -> str:
    said = "".join(f"<{kind}>{cell}</{kind}>" for cell in cells)
    return f'<tr class="chosen">{said}</tr>' if is_chosen else f"<tr>{said}</tr>"


def _cell(rate: Rate) -> str:
    if rate.value is None:
        return "-"
    return f"{rate.value:.1%} <span>({rate.low:.1%} to {rate.high:.1%})</span>"


def _patch(report: Report) -> Iterator[str]:
    if report.chosen is not None:
        yield "<p>For the object, by <code>cachewright calibrate --output patch</code>:</p>"
        yield f"<pre>{html.escape(yaml.safe_dump(patch(report), sort_keys=False))}</pre>"
