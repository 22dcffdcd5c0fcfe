"""Wishes: how a client narrows what the cache may do with its request; nothing it says widens it. Pure.

Read from `Cache-Control` (RFC 9111, section 5.2.1), and by whatever else understands a client's controls.
Asked by the gateway's flow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client wants of the cache."""

    refresh: bool = False
    """No stored answer; a fresh one may replace it."""
    no_store: bool = False
    """The cache has no part in this request."""
    max_age_seconds: int | None = None
    """No stored answer that is older."""
    only_cached: bool = False
    """A stored answer or none."""

    def and_(self, other: Wishes) -> Wishes:
        """Return what meets both."""
        ages = [age for age in (self.max_age_seconds, other.max_age_seconds) if age is not None]
        return Wishes(
            self.refresh or other.refresh,
            self.no_store or other.no_store,
            min(ages, default=None),
            self.only_cached or other.only_cached,
        )

    def allow(self, age_seconds: float) -> bool:
        """Tell whether a stored answer of this age may be served."""
        too_old = self.max_age_seconds is not None and age_seconds > self.max_age_seconds
        return not self.refresh and not too_old


def read_cache_control(values: Iterable[bytes], pragma: Iterable[bytes] = ()) -> Wishes:
    """Read the values of `Cache-Control`; `Pragma: no-cache` counts only where there are none.

    A `max-age` that is no number of seconds counts as 0: a wish that cannot be read is not a permission.
    """
    wishes = Wishes()
    directives = [part for value in (list(values) or pragma) for part in value.split(b",")]
    for directive in directives:
        name, _, argument = directive.strip().partition(b"=")
        match name.strip().lower():
            case b"no-cache":
                wishes = wishes.and_(Wishes(refresh=True))
            case b"no-store":
                wishes = wishes.and_(Wishes(no_store=True))
            case b"only-if-cached":
                wishes = wishes.and_(Wishes(only_cached=True))
            case b"max-age":
                digits = argument.strip(b' "')
                seconds = int(digits[:9]) if digits.isdigit() else 0
                wishes = wishes.and_(Wishes(refresh=seconds == 0, max_age_seconds=seconds))
    return wishes
