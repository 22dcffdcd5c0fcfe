"""Domain-tagged, length-prefixed encoding: from named byte strings to one byte string without collisions.

`("ab", "c")` and `("a", "bc")` encode differently, and so do equal values under different names.
Called by fingerprints, context hashes and digests.
"""

from __future__ import annotations

from collections.abc import Iterable


def encode_fields(domain: str, fields: Iterable[tuple[str, bytes]]) -> bytes:
    """Join `fields` (name, value) under `domain` so that no other fields give the same bytes.

    Each part is preceded by its length as 8 bytes, big-endian.
    """
    parts = [_prefixed(domain.encode())]
    for name, value in fields:
        parts.append(_prefixed(name.encode()))
        parts.append(_prefixed(value))
    return b"".join(parts)


def encode_list(values: Iterable[str]) -> bytes:
    """Join texts in their order, each preceded by its length."""
    return b"".join(_prefixed(value.encode()) for value in values)


def _prefixed(value: bytes) -> bytes:
    return len(value).to_bytes(8, "big") + value
