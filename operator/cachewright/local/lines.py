"""Numbers as plain lines: one an interval, for logs, pipes and terminals without a picture. Pure.

Used by the session where output is no terminal, or with `--plain`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cachewright.local.numbers import Tally

SHOWN_REASONS = 4


def line(tally: Tally, seconds: float) -> str:
    """Return one line about what was counted within `seconds`."""
    parts = [f"{tally.requests} requests ({tally.requests / seconds:.1f}/s)"]
    if tally.hit_rate is not None:
        parts.append(f"hit rate {tally.hit_rate:.0%}")
    for outcome in ("hit", "miss"):
        half, most = tally.seconds(outcome, 0.5), tally.seconds(outcome, 0.99)
        if half is not None and most is not None:
            parts.append(f"{outcome} p50 {shown_seconds(half)} p99 {shown_seconds(most)}")
    parts += [f"{what}: {text}" for what, text in explained(tally)]
    if tally.store_is_left_alone:
        parts.append("the store does not answer and is left alone")
    return "  ".join(parts)


def explained(tally: Tally) -> Iterable[tuple[str, str]]:
    """Give the most frequent reasons, where there are any."""
    for what, counts in (("not cached", tally.reasons), ("not stored", tally.refusals)):
        if counts.total():
            yield what, _most(counts)


def shown_seconds(seconds: float | None) -> str:
    """Write a time as people read it."""
    if seconds is None:
        return "-"
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.0f} s"


def _most(counts: Counter[str]) -> str:
    shown = [f"{reason} {count}" for reason, count in counts.most_common(SHOWN_REASONS) if count]
    rest = sum(count for _, count in counts.most_common()[SHOWN_REASONS:])
    return ", ".join([*shown, f"others {rest}"] if rest else shown)
