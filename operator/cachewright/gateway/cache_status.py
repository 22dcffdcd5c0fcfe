"""`Cache-Status` (RFC 9211): what the cache did with a request, in one header. Pure."""

from __future__ import annotations

from typing import Final, Literal

from cachewright.gateway.headers import Headers
from cachewright.layers.exact import Hit
from cachewright.policy.reasons import BypassReason

_NAME: Final = b"cache-status"
_CACHE: Final = "cachewright"


def hit_headers(hit: Hit) -> Headers:
    """Say that the answer comes from the cache, how old it is and how long it stays, in whole seconds."""
    return [
        (_NAME, f"{_CACHE}; hit; ttl={int(hit.ttl_seconds)}".encode()),
        (b"age", str(int(hit.age_seconds)).encode()),
    ]


def forward_headers(reason: BypassReason | None, refreshed: bool = False, collapsed: bool = False) -> Headers:
    """Say why the request went upstream: not found, not looked up, or the client wanted it fresh.

    `collapsed`: it did not go there itself, but was answered together with one that did.
    """
    if collapsed:
        return [(_NAME, f"{_CACHE}; fwd=miss; collapsed".encode())]
    if refreshed:
        return [(_NAME, f"{_CACHE}; fwd=request; detail={BypassReason.CLIENT}".encode())]
    if reason is None:
        return [(_NAME, f"{_CACHE}; fwd=miss".encode())]
    return [(_NAME, f"{_CACHE}; fwd=bypass; detail={reason}".encode())]


def outcome_of(headers: Headers) -> Literal["hit", "miss", "bypass"] | None:
    """Tell from a reply's headers what the cache did; None for what it had no part in, such as an error.

    A cache behind us may have its own line, so only ours counts.
    """
    for name, value in reversed(headers):
        if name == _NAME and value.startswith(f"{_CACHE};".encode()):
            if value.startswith(f"{_CACHE}; hit".encode()):
                return "hit"
            return "bypass" if b"fwd=bypass" in value else "miss"
    return None
