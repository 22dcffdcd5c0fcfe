"""`Cache-Status` (RFC 9211): what the cache did with a request, in one header. Pure."""

from __future__ import annotations

from typing import Final, Literal

from cachewright.gateway.headers import Headers
from cachewright.layers.exact import Hit
from cachewright.layers.similar import NoMatch
from cachewright.policy.reasons import BypassReason, SemanticReason

_NAME: Final = b"cache-status"
_CACHE: Final = "cachewright"

SIMILARITY_HEADER: Final = b"cachewright-similarity"
"""The cosine between a question and the one whose answer it got, or else the one most similar to it."""

GUARD_HEADER: Final = b"cachewright-guard"
"""What the guard refused similar questions for."""


def hit_headers(hit: Hit, entry_id: str, *, exposes_similarity: bool = False) -> Headers:
    """Say that the answer comes from the cache, how old it is and how long it stays, in whole seconds.

    `entry_id` is opaque, as `keys.entry_id` makes it: no digest that tenants could compare is ever shown.
    `exposes_similarity` tells how similar the question was that it had been given to.
    """
    detail = "; detail=semantic" if hit.similarity is not None or hit.entry.source else ""
    headers = [
        (_NAME, f'{_CACHE}; hit; ttl={int(hit.ttl_seconds)}{detail}; key="{entry_id}"'.encode()),
        (b"age", str(int(hit.age_seconds)).encode()),
    ]
    if exposes_similarity and hit.similarity is not None:
        headers.append((SIMILARITY_HEADER, f"{hit.similarity:.4f}".encode()))
    return headers


def miss_headers(
    entry_id: str,
    detail: BypassReason | None = None,
    collapsed: bool = False,
    unlike: SemanticReason | None = None,
) -> Headers:
    """Say that nothing was found, or why it was not served, and where the answer is kept if it is.

    `collapsed`: the request did not go upstream itself, but was answered together with one that did.
    `unlike`: why no similar question's answer was given.
    """
    why = f"fwd=request; detail={detail}" if detail else "fwd=miss"
    if collapsed:
        why = "fwd=miss; collapsed"
    elif unlike and not detail:
        why = f"fwd=miss; detail={unlike}"
    return [(_NAME, f'{_CACHE}; {why}; key="{entry_id}"'.encode())]


def nearness_headers(unlike: NoMatch) -> Headers:
    """Say how similar the most similar question was that got no answer served, and what spoke against it."""
    headers: Headers = []
    if unlike.similarity is not None:
        headers.append((SIMILARITY_HEADER, f"{unlike.similarity:.4f}".encode()))
    if unlike.refused:
        headers.append((GUARD_HEADER, ", ".join(unlike.refused).encode()))
    return headers


def embedding_headers(
    found: int,
    of: int,
    *,
    ttl_seconds: float | None = None,
    age_seconds: float = 0.0,
    collapsed: bool = False,
) -> Headers:
    """Say how many of a request's inputs had a vector, and for how long those stay, in whole seconds.

    `collapsed`: no embedder was asked, but another request that asks for the same was waited for.
    """
    if found == of:
        ttl = "" if ttl_seconds is None else f"; ttl={int(ttl_seconds)}"
        return [
            (_NAME, f"{_CACHE}; hit{ttl}".encode()),
            (b"age", str(int(age_seconds)).encode()),
        ]
    how = f"fwd=partial; detail={found}-of-{of}" if found else "fwd=miss"
    return [(_NAME, f"{_CACHE}; {how}{'; collapsed' if collapsed else ''}".encode())]


def bypass_headers(reason: BypassReason, collapsed: bool = False) -> Headers:
    """Say why the request was not looked up; `collapsed` as for a miss."""
    how = "fwd=bypass; collapsed" if collapsed else "fwd=bypass"
    return [(_NAME, f"{_CACHE}; {how}; detail={reason}".encode())]


def unsent_headers(reason: BypassReason) -> Headers:
    """Say why the request was neither answered from the cache nor sent on."""
    return [(_NAME, f"{_CACHE}; detail={reason}".encode())]


def outcome_of(headers: Headers) -> Literal["hit", "miss", "collapsed", "bypass"] | None:
    """Tell from a reply's headers what the cache did; None for what it had no part in, such as an error.

    A cache behind us may have its own line, so only ours counts.
    """
    for name, value in reversed(headers):
        if name == _NAME and value.startswith(f"{_CACHE};".encode()):
            if value.startswith(f"{_CACHE}; hit".encode()):
                return "hit"
            if b"fwd=bypass" in value:
                return "bypass"
            return "collapsed" if b"; collapsed" in value else "miss"
    return None
