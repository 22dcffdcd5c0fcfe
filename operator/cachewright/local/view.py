"""The live view: numbers of the last minute as a picture in the terminal.

The session runs `LiveView` on a terminal; `picture` turns facts and numbers into what rich draws. Lines that
somebody logs meanwhile appear above it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cachewright.gateway.main import configure_logs
from cachewright.local.facts import Facts
from cachewright.local.lines import explained, shown_seconds
from cachewright.local.news import shown_retained
from cachewright.local.numbers import History, Tally

REFRESH_SECONDS: Final = 0.5
MOST_COLUMNS: Final = 110

_BARS: Final = "▁▂▃▄▅▆▇█"
_COLOURS: Final = {
    "hit": "green",
    "miss": "yellow",
    "collapsed": "cyan",
    "bypass": "magenta",
    "upstream_error": "red",
}
_NAMES: Final = {
    "hit": "hit",
    "miss": "miss",
    "collapsed": "waited for another",
    "bypass": "not looked up",
    "upstream_error": "upstream failed",
    "refused": "refused",
}


class LiveView:
    """The picture at the bottom of the terminal; a Teller."""

    def __init__(self, facts: Callable[[], Facts], count: Callable[[], Tally]) -> None:
        self._facts = facts
        self._count = count
        self._console = Console()

    def tell(self, text: str) -> None:
        """Write a piece of news above the picture."""
        self._console.print(Text(text, style="bold"))

    async def run(self) -> None:
        """Draw until cancelled."""
        history = History(self._count())
        with Live(self._picture(history), console=self._console, auto_refresh=False) as live:
            configure_logs("console", "warning", sys.stderr)  # rich has put a stream of its own there
            while True:
                await asyncio.sleep(REFRESH_SECONDS)
                history.add(self._count())
                live.update(self._picture(history), refresh=True)

    def _picture(self, history: History) -> RenderableType:
        # The terminal's own "^C" must fit beside the last line, or the picture is left behind torn.
        return picture(self._facts(), history, min(MOST_COLUMNS, self._console.width - 3))


def picture(facts: Facts, history: History, columns: int) -> RenderableType:
    """Draw the numbers of the last minute and of the whole run."""
    window, whole = history.window, history.latest.since(history.first)
    parts: list[RenderableType] = [_headline(history, window, whole), Text(), _table(window, whole)]
    parts += [text for text in (_similar(whole), _vectors(whole)) if text is not None]
    if whole.saved_tokens or whole.saved_seconds:
        parts += [Text(), _saved(whole)]
    if reasons := list(explained(whole)):
        parts.append(Text())
        parts += [Text(f"{what}: {text}", style="magenta") for what, text in reasons]
    parts += [Text(), _foot(facts, window)]
    title = f"[bold]cachewright local[/] {facts.base_url}"
    return Panel(Group(*parts), title=title, title_align="left", subtitle="Ctrl-C ends", width=columns)


def _headline(history: History, window: Tally, whole: Tally) -> Text:
    text = Text()
    text.append("hit rate ", style="dim")
    text.append(_share(window.hit_rate), style="bold green")
    text.append(f" last minute, {_share(whole.hit_rate)} in all     ", style="dim")
    text.append(f"{window.requests / max(history.window_seconds, 1.0):.1f}", style="bold")
    text.append(" requests/s  ", style="dim")
    text.append(sparkline([step.requests for step in history.steps()]), style="cyan")
    return text


def _similar(whole: Tally) -> Text | None:
    """Tell how many of the exact layer's misses a similar question answered."""
    if not whole.similar:
        return None
    text = Text("\nsimilar questions ", style="dim")
    text.append(f"{whole.similar['hit']:,} of {whole.similar.total():,}", style="green")
    return text.append(" looked for", style="dim")


def _vectors(whole: Tally) -> Text | None:
    """Tell where the vectors of texts came from."""
    if not whole.vectors:
        return None
    text = Text("\nvectors ", style="dim")
    kept = whole.vectors.total() - whole.vectors["computed"]
    text.append(f"{kept:,} of {whole.vectors.total():,}", style="green")
    return text.append(" from the cache", style="dim")


def _saved(whole: Tally) -> Text:
    text = Text("saved ", style="dim")
    text.append(f"{whole.saved_seconds:,.0f} s of waiting, {whole.saved_tokens:,} tokens", style="green")
    return text


def _table(window: Tally, whole: Tally) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("")
    for name in ("last minute", "p50", "p99", "in all"):
        table.add_column(name, justify="right")
    for outcome, name in _NAMES.items():
        if outcome not in ("hit", "miss") and not whole.outcomes[outcome]:
            continue
        times = [shown_seconds(window.seconds(outcome, share)) for share in (0.5, 0.99)]
        table.add_row(
            Text(name, style=_COLOURS.get(outcome, "red")),
            f"{window.outcomes[outcome]:,}",
            *times,
            f"{whole.outcomes[outcome]:,}",
        )
    return table


def _foot(facts: Facts, window: Tally) -> Text:
    text = Text(overflow="fold")
    text.append("model ", style="dim").append(f"{facts.model} at version {facts.version}")
    text.append("   keyspace ", style="dim").append(facts.keyspace)
    for past in facts.retained:
        text.append("\nretained ", style="dim").append(shown_retained(past))
    text.append("\nstore ", style="dim").append(facts.store)
    if window.store_is_left_alone:
        text.append("  does not answer: left alone for a while", style="bold red")
    return text.append("\nupstream ", style="dim").append(facts.upstream)


def sparkline(counts: list[int], width: int = 30) -> str:
    """Draw the newest counts as bars, in pairs if they would not fit."""
    step = -(-len(counts) // width) or 1
    sums = [sum(counts[max(0, end - step) : end]) for end in range(len(counts), 0, -step)][::-1]
    most = max(sums, default=0)
    if most == 0:
        return _BARS[0] * len(sums)
    return "".join(_BARS[min(len(_BARS) - 1, value * len(_BARS) // (most + 1))] for value in sums)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
