"""Controls of other caching gateways, as far as they narrow what the cache may do. Pure.

Clients that were written for LiteLLM, Portkey, Cloudflare AI Gateway or Bifrost keep the controls they send.
None of them widens anything: no control makes a request cacheable that is not, lets an answer live longer
than declared, or changes whose it is. A value that cannot be read counts as the narrowest there is.

Asked by the gateway, for headers and for LiteLLM's object `cache` in a body, which is for a gateway alone and
never reaches the upstream or the key. `docs/migrate.md` shows the tables below; a test compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from cachewright.policy.wishes import Wishes

BODY_FIELD: Final = "cache"
"""Where LiteLLM's clients put their controls."""


class Effect(StrEnum):
    """What a control does here."""

    REFRESH = "a fresh answer, which may replace the stored one"
    NO_STORE = "the cache has no part in the request"
    MAX_AGE = "no stored answer that is older"
    TTL = "the answer lives no longer than this, nor than declared"
    PARTITION = "one more part of the key: shared only with requests that say the same"
    THRESHOLD = "a similar question counts from this similarity on, never from less than declared"
    EXACT_ONLY = "no answer that was given to another question, however similar"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Control:
    """One control of one product."""

    product: str
    name: str
    """Of the header, in lower case, or of the field in `cache`."""
    effect: Effect
    only: str = ""
    """The one value that has the effect; empty: any that is not false."""


HEADER_CONTROLS: Final = (
    Control("Portkey", "x-portkey-cache-force-refresh", Effect.REFRESH),
    Control("Portkey", "x-portkey-cache-namespace", Effect.PARTITION),
    Control("Cloudflare", "cf-aig-skip-cache", Effect.NO_STORE),
    Control("Cloudflare", "cf-skip-cache", Effect.NO_STORE),
    Control("Cloudflare", "cf-aig-cache-ttl", Effect.TTL),
    Control("Cloudflare", "cf-aig-cache-key", Effect.PARTITION),
    Control("Bifrost", "x-bf-cache-no-store", Effect.NO_STORE),
    Control("Bifrost", "x-bf-cache-ttl", Effect.TTL),
    Control("Bifrost", "x-bf-cache-key", Effect.PARTITION),
    Control("Bifrost", "x-bf-cache-type", Effect.REFRESH, only="semantic"),
    Control("Bifrost", "x-bf-cache-threshold", Effect.THRESHOLD),
)

OWN_CONTROLS: Final = (
    Control("cachewright", "cachewright-threshold", Effect.THRESHOLD),
    Control("cachewright", "cachewright-layers", Effect.EXACT_ONLY, only="exact"),
)
"""Beside `Cache-Control`, as docs/cache-status.md tells."""

BODY_CONTROLS: Final = (
    Control("LiteLLM", "no-cache", Effect.REFRESH),
    Control("LiteLLM", "no-store", Effect.NO_STORE),
    Control("LiteLLM", "s-maxage", Effect.MAX_AGE),
    Control("LiteLLM", "s-max-age", Effect.MAX_AGE),
    Control("LiteLLM", "ttl", Effect.TTL),
    Control("LiteLLM", "namespace", Effect.PARTITION),
    Control("LiteLLM", "use-cache", Effect.NOTHING),
)

_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_DECIMAL: Final = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
_NEVER: Final = 2.0
"""A similarity that no two questions have."""

_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_TEXT: Final = 20
_LONGEST_SECONDS: Final = 1e9
_FALSE: Final = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What all controls of a request come to."""

    wishes: Wishes = field(default_factory=Wishes)
    ttl_seconds: float | None = None
    """Longest life of the answer; None: as declared."""
    partition: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Further parts of the key, by the control's name."""
    threshold: float = 0.0
    """Least similarity of another question whose answer is wanted; above 1: none is."""

    @property
    def exact_only(self) -> bool:
        """True: no answer that was given to another question is wanted."""
        return self.threshold > 1

    def and_(self, other: Narrowing) -> Narrowing:
        """Return what meets both."""
        lives = [life for life in (self.ttl_seconds, other.ttl_seconds) if life is not None]
        return Narrowing(
            self.wishes.and_(other.wishes),
            min(lives, default=None),
            self.partition + other.partition,
            max(self.threshold, other.threshold),
        )


NOTHING: Final = Narrowing()


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> Narrowing:
    """Read the controls among a request's headers, whose names are in lower case."""
    narrowing = NOTHING
    for name, value in headers:
        control = _HEADERS_BY_NAME.get(name)
        if control is not None:
            narrowing = narrowing.and_(_read(control, value.decode("latin-1").strip()))
    return narrowing


def read_body(request: Mapping[str, Any]) -> tuple[Narrowing, dict[str, Any] | None]:
    """Read LiteLLM's controls, and return the request without them; None where it has none."""
    found = request.get(BODY_FIELD)
    if not isinstance(found, Mapping):  # not LiteLLM's: the upstream's to understand
        return NOTHING, None
    narrowing = NOTHING
    for control in BODY_CONTROLS:
        if control.name in found:
            narrowing = narrowing.and_(_read(control, found[control.name]))
    return narrowing, {name: value for name, value in request.items() if name != BODY_FIELD}


def _read(control: Control, value: object) -> Narrowing:
    if value is None or control.effect is Effect.NOTHING:
        return NOTHING
    match control.effect:
        case Effect.REFRESH:
            return Narrowing(Wishes(refresh=True)) if _is_meant(control, value) else NOTHING
        case Effect.NO_STORE:
            return Narrowing(Wishes(no_store=True)) if _is_meant(control, value) else NOTHING
        case Effect.MAX_AGE:
            seconds = _seconds(value)
            return Narrowing(Wishes(refresh=seconds == 0, max_age_seconds=int(seconds)))
        case Effect.TTL:
            seconds = _seconds(value)
            return Narrowing(ttl_seconds=seconds) if seconds else Narrowing(Wishes(no_store=True))
        case Effect.PARTITION:
            return Narrowing(partition=((control.name, (str(value),)),))
        case Effect.THRESHOLD:
            return Narrowing(threshold=_similarity(value))
        case Effect.EXACT_ONLY:
            return Narrowing(threshold=_NEVER) if _is_meant(control, value) else NOTHING


def _is_meant(control: Control, value: object) -> bool:
    text = str(value).lower()
    return text == control.only if control.only else text not in _FALSE


def _similarity(value: object) -> float:
    """Read a similarity from 0 to 1; more than any for anything else, as the narrowest there is."""
    text = str(value)
    is_plain = len(text) <= _LONGEST_TEXT and _DECIMAL.fullmatch(text)
    return float(text) if is_plain and float(text) <= 1 else _NEVER


def _seconds(value: object) -> float:
    """Read a number of seconds or a duration as Go writes it; 0 for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return min(max(0.0, float(value)), _LONGEST_SECONDS)
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isascii():
        return 0.0
    if value.isdigit():
        return min(float(value), _LONGEST_SECONDS)
    if not _DURATION.fullmatch(value):
        return 0.0
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(value))


_HEADERS_BY_NAME: Final = {control.name.encode(): control for control in (*HEADER_CONTROLS, *OWN_CONTROLS)}
