"""`Cache-Status` (RFC 9211): what the cache did with a request, in one header. Pure."""

from __future__ import annotations

from typing import Final

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


def forward_headers(reason: BypassReason | None, refreshed: bool = False) -> Headers:
    """Say why the request went upstream: not found, not looked up, or the client wanted it fresh."""
    if refreshed:
        return [(_NAME, f"{_CACHE}; fwd=request; detail={BypassReason.CLIENT}".encode())]
    if reason is None:
        return [(_NAME, f"{_CACHE}; fwd=miss".encode())]
    return [(_NAME, f"{_CACHE}; fwd=bypass; detail={reason}".encode())]
