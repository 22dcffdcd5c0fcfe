"""Entries: from an answer to the bytes kept in a store, and back.

An entry is sealed under the cache's key together with its own name, so that a value that was damaged,
truncated, written by somebody else or moved to another key is a miss. Called by the exact layer.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass
from typing import Final

from cachewright.keys.digest import EntryName
from cachewright.keys.fields import encode_fields

ENTRY_FORMAT: Final = 1
"""First byte of every entry; readers treat any other as a miss."""

_SEAL_BYTES: Final = 16
_HEAD: Final = struct.Struct(">QQH")
"""Stored at and TTL in milliseconds, length of the content type."""

_PREFIX_BYTES: Final = 1 + _SEAL_BYTES


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer with status 200 and what it takes to replay it."""

    content_type: str
    body: bytes
    stored_at: float
    """Seconds since the epoch, by the clock of the gateway that stored it."""
    ttl_seconds: float
    """As declared when it was stored; it never slides."""


def encode_entry(entry: Entry, name: EntryName, key: bytes) -> bytes:
    """Render and seal an entry for the place `name`."""
    content_type = entry.content_type.encode()
    head = _HEAD.pack(round(entry.stored_at * 1000), round(entry.ttl_seconds * 1000), len(content_type))
    rest = head + content_type + entry.body
    return bytes([ENTRY_FORMAT]) + _seal(rest, name, key) + rest


def decode_entry(value: bytes, name: EntryName, key: bytes) -> Entry | None:
    """Read what `encode_entry` wrote for the same name and key; None for anything else."""
    if len(value) < _PREFIX_BYTES + _HEAD.size or value[0] != ENTRY_FORMAT:
        return None
    seal, rest = value[1:_PREFIX_BYTES], value[_PREFIX_BYTES:]
    if not hmac.compare_digest(seal, _seal(rest, name, key)):
        return None
    stored_at_ms, ttl_ms, length = _HEAD.unpack_from(rest)
    body_at = _HEAD.size + length
    return Entry(rest[_HEAD.size : body_at].decode(), rest[body_at:], stored_at_ms / 1000, ttl_ms / 1000)


def _seal(rest: bytes, name: EntryName, key: bytes) -> bytes:
    fields = encode_fields("cachewright/entry", [("name", name.key.encode()), ("rest", rest)])
    return hashlib.blake2b(fields, digest_size=_SEAL_BYTES, key=key).digest()
