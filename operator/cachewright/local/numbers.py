"""From the gateway's metrics to the numbers that people watch: rates, hit rate, times, reasons.

Used by the live view and by plain lines. A `Tally` is what was counted up to a moment; what happened in
between is the difference of two.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from prometheus_client import CollectorRegistry

WINDOW_SECONDS: Final = 60.0
"""What "now" means in rates and times."""

Buckets = Mapping[float, float]
"""Observations up to and including each bound, cumulated as Prometheus does."""

_EMPTY: Final[Buckets] = {}


@dataclass(frozen=True, slots=True)
class Tally:
    """What has been counted since the start, at one moment."""

    at: float
    """Seconds, monotonic."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Requests by outcome."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why requests were not looked up."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Why answers to misses were not stored."""
    times: Mapping[str, Buckets] = field(default_factory=dict)
    """Time to the head of the answer, by outcome."""
    similar: Counter[str] = field(default_factory=Counter)
    """Similar questions that were looked for, as hit or miss."""
    vectors: Counter[str] = field(default_factory=Counter)
    """Texts that were to be embedded, by where their vectors came from."""
    saved_seconds: float = 0.0
    """What the upstream took for answers that hits gave without it."""
    saved_tokens: int = 0
    """What the upstream counted for them, asked and answered."""
    store_is_left_alone: bool = False

    @property
    def requests(self) -> int:
        """All requests."""
        return self.outcomes.total()

    @property
    def hit_rate(self) -> float | None:
        """Hits among look-ups; None without any."""
        looked_up = self.outcomes["hit"] + self.outcomes["miss"]
        return self.outcomes["hit"] / looked_up if looked_up else None

    def since(self, before: Tally) -> Tally:
        """Return what was counted after `before`."""
        times = {
            outcome: {
                bound: count - before.times.get(outcome, _EMPTY).get(bound, 0) for bound, count in now.items()
            }
            for outcome, now in self.times.items()
        }
        return Tally(
            self.at,
            self.outcomes - before.outcomes,
            self.reasons - before.reasons,
            self.refusals - before.refusals,
            times,
            self.similar - before.similar,
            self.vectors - before.vectors,
            self.saved_seconds - before.saved_seconds,
            self.saved_tokens - before.saved_tokens,
            self.store_is_left_alone,
        )

    def seconds(self, outcome: str, share: float) -> float | None:
        """Estimate a quantile of the time to the answer; None where nothing was measured."""
        return quantile(self.times.get(outcome, _EMPTY), share)


_COUNTED: Final[Mapping[str, tuple[str, str]]] = {
    "cachewright_requests_total": ("outcomes", "outcome"),
    "cachewright_not_cached_total": ("reasons", "reason"),
    "cachewright_not_stored_total": ("refusals", "reason"),
    "cachewright_embedding_inputs_total": ("vectors", "tier"),
}
"""By the name of a sample: the field of a tally that it is added to, and the label by which."""


def take_tally(registry: CollectorRegistry, at: float) -> Tally:
    """Read the gateway's metrics."""
    counted: dict[str, Counter[str]] = {field: Counter() for field, _ in _COUNTED.values()}
    similar: Counter[str] = Counter()
    times: dict[str, dict[float, float]] = {}
    saved_seconds, saved_tokens, left_alone = 0.0, 0.0, False
    for sample in (sample for metric in registry.collect() for sample in metric.samples):
        match sample.name:
            case name if name in _COUNTED:
                into, label = _COUNTED[name]
                counted[into][sample.labels[label]] += int(sample.value)
            case "cachewright_lookup_seconds_count" if sample.labels["layer"] == "semantic":
                similar[sample.labels["outcome"]] += int(sample.value)
            case "cachewright_request_seconds_bucket":
                of_outcome = times.setdefault(sample.labels["outcome"], {})
                of_outcome[float(sample.labels["le"])] = sample.value
            case "cachewright_saved_seconds_total":
                saved_seconds += sample.value
            case "cachewright_saved_tokens_total":
                saved_tokens += sample.value
            case "cachewright_breaker_open":
                left_alone = left_alone or sample.value > 0
    return Tally(
        at,
        **counted,
        times=times,
        similar=similar,
        saved_seconds=saved_seconds,
        saved_tokens=int(saved_tokens),
        store_is_left_alone=left_alone,
    )


def quantile(buckets: Buckets, share: float) -> float | None:
    """Estimate a quantile from a histogram, between a bucket's bounds by proportion."""
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0
    if total <= 0:
        return None
    rank, below_bound, below_count = share * total, 0.0, 0.0
    for bound in bounds:
        count = buckets[bound]
        if count >= rank and count > below_count:
            if bound == float("inf"):
                return below_bound  # somewhere beyond the last bound
            return below_bound + (bound - below_bound) * (rank - below_count) / (count - below_count)
        below_bound, below_count = bound, count
    return below_bound


class History:
    """Tallies of the last minute."""

    def __init__(self, first: Tally) -> None:
        self._tallies: deque[Tally] = deque([first])
        self.first = first

    @property
    def latest(self) -> Tally:
        """The newest tally."""
        return self._tallies[-1]

    def add(self, tally: Tally) -> None:
        """Remember a tally and forget what is older than the window."""
        self._tallies.append(tally)
        while len(self._tallies) > 2 and tally.at - self._tallies[1].at >= WINDOW_SECONDS:
            self._tallies.popleft()

    @property
    def window(self) -> Tally:
        """What was counted within the window."""
        return self.latest.since(self._tallies[0])

    @property
    def window_seconds(self) -> float:
        """How long the window is so far."""
        return max(self.latest.at - self._tallies[0].at, 1e-9)

    def steps(self) -> list[Tally]:
        """Return the differences of neighbouring tallies, oldest first."""
        tallies = list(self._tallies)
        return [after.since(before) for before, after in pairwise(tallies)]
