"""How often an engine's prefix cache was of use: counts of its pods over the last minutes. Pure.

`scraping` brings the counts, `told` and status read what comes of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cachewright.engines.metrics import PrefixCounts, has_no_hits
from cachewright.engines.settings import Engine

WINDOW_SECONDS: Final = 900.0
"""How far back a hit rate looks."""

FEW: Final = {Engine.TRITON: 20.0}
FEW_TOKENS: Final = 1_000.0
"""What must have been looked up before a rate is told; Triton counts requests, the others tokens."""


@dataclass(frozen=True, slots=True)
class EngineHits:
    """What the pods of one engine told of their prefix caches."""

    pods: int
    """How many told anything, in the last minute or before."""
    rate: float | None = None
    """The share that was found within the window, 0 to 1; None while too little was asked."""
    has_no_hits: bool = False
    """So much was asked, with no hit at all, that it is no matter of chance."""
    is_off: bool = False
    """An engine says that its cache is off."""
    problem: str = ""
    """Why no pod told anything, as the end of a sentence."""
    news: PrefixCounts | None = None
    """What was counted since the last time; None where nobody was asked in this pass."""


@dataclass(slots=True)
class HitHistory:
    """Counts of an engine's pods, and what they grew by."""

    pods: dict[str, PrefixCounts] = field(default_factory=dict)
    """What each pod told last, by its uid."""
    grown: list[tuple[float, PrefixCounts]] = field(default_factory=list)
    """When, in monotonic seconds, and by how much all of them grew."""

    def take(self, told: Mapping[str, PrefixCounts], living: frozenset[str], now: float) -> PrefixCounts:
        """Note what pods told; returns what came since the last time.

        What a pod counted before it was first seen is of an unknown age, and taken for recent: so a rate is
        known at once, and right after a window's length.
        """
        news, recent = PrefixCounts(), PrefixCounts()
        for uid, counts in told.items():
            last = self.pods.get(uid)
            news += counts.since(last) if last is not None else PrefixCounts()
            recent += counts.since(last) if last is not None else counts
        self.pods = {uid: counts for uid, counts in (self.pods | dict(told)).items() if uid in living}
        self.grown = [each for each in self.grown if each[0] > now - WINDOW_SECONDS]
        if recent.asked:
            self.grown.append((now, PrefixCounts(recent.known, recent.asked)))
        return PrefixCounts(news.known, news.asked)

    def told(self, engine: Engine, problem: str, news: PrefixCounts | None) -> EngineHits:
        """Sum up."""
        window = sum((counts for _, counts in self.grown), PrefixCounts())
        total = sum(self.pods.values(), PrefixCounts())
        return EngineHits(
            pods=len(self.pods),
            rate=self._rate(window, FEW.get(engine, FEW_TOKENS)),
            has_no_hits=has_no_hits(engine, total) or has_no_hits(engine, window),
            is_off=total.is_on is False,
            problem="" if self.pods else problem,
            news=news,
        )

    def _rate(self, window: PrefixCounts, few: float) -> float | None:
        if window.asked:
            return window.rate if window.asked >= few else None
        gauges = [counts.gauge for counts in self.pods.values() if counts.gauge is not None]
        return sum(gauges) / len(gauges) if gauges else None
