"""Entries: from an answer to the bytes kept in a store, and back.

An entry is sealed under the cache's key together with its own name, so that a value that was damaged,
truncated, written by somebody else or moved to another key is a miss. Called by the exact layer.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from cachewright.keys.digest import EntryName
from cachewright.keys.fields import encode_fields
from cachewright.policy.answers import KeptAnswer

ENTRY_FORMAT: Final = 3
"""First byte of every entry; readers treat any other as a miss."""

MOST_HEAD_BYTES: Final = 4096
"""Of an entry; all but usage and body lie within them, with 64 documents too."""

_SEAL_BYTES: Final = 16
_HEAD: Final = struct.Struct(">QQQQHHHI")
"""Stored at, TTL, the upstream's time and the age before in milliseconds, lengths of content type, source,
counters and usage."""

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
    usage: bytes = b""
    """The event with the usage of a stream; see `policy.answers`."""
    upstream_seconds: float = 0.0
    """What the upstream took for it."""
    older_seconds: float = 0.0
    """Age that the answer had already when it was stored: it was copied from another entry."""
    source: bytes = b""
    """Link to the entry that it was copied from; see `keys.entry_link`."""

    dependence: bytes = b""
    """Generation counters that its name depends on, with their values, as `encode_dependence` writes them."""

    @property
    def generations(self) -> dict[str, int]:
        """The counters that its name depends on, with the values at which it was stored."""
        return decode_dependence(self.dependence)

    @property
    def answer(self) -> KeptAnswer:
        """What clients are given of it."""
        return KeptAnswer(self.content_type, self.body, self.usage)


def encode_entry(entry: Entry, name: EntryName, key: bytes) -> bytes:
    """Render and seal an entry for the place `name`."""
    content_type = entry.content_type.encode()
    head = _HEAD.pack(
        round(entry.stored_at * 1000),
        round(entry.ttl_seconds * 1000),
        round(entry.upstream_seconds * 1000),
        round(entry.older_seconds * 1000),
        len(content_type),
        len(entry.source),
        len(entry.dependence),
        len(entry.usage),
    )
    rest = head + content_type + entry.source + entry.dependence + entry.usage + entry.body
    return bytes([ENTRY_FORMAT]) + _seal(rest, name, key) + rest


def decode_entry(value: bytes, name: EntryName, key: bytes) -> Entry | None:
    """Read what `encode_entry` wrote for the same name and key; None for anything else."""
    if len(value) < _PREFIX_BYTES + _HEAD.size or value[0] != ENTRY_FORMAT:
        return None
    seal, rest = value[1:_PREFIX_BYTES], value[_PREFIX_BYTES:]
    if not hmac.compare_digest(seal, _seal(rest, name, key)):
        return None
    stored_at_ms, ttl_ms, upstream_ms, older_ms, *lengths = _HEAD.unpack_from(rest)
    _, source_at, dependence_at, usage_at, body_at = accumulate(lengths, initial=_HEAD.size)
    return Entry(
        content_type=rest[_HEAD.size : source_at].decode(),
        body=rest[body_at:],
        stored_at=stored_at_ms / 1000,
        ttl_seconds=ttl_ms / 1000,
        usage=rest[usage_at:body_at],
        upstream_seconds=upstream_ms / 1000,
        older_seconds=older_ms / 1000,
        source=rest[source_at:dependence_at],
        dependence=rest[dependence_at:usage_at],
    )


def encode_dependence(counters: Sequence[str], generations: Sequence[int], template: str = "") -> bytes:
    """Render counters and their values for an entry, and the mark of its prompt template where it has one.

    The mark stands there as a counter that is 0 for ever.
    """
    pairs = [*zip(counters, generations, strict=True), *([(template, 0)] if template else [])]
    return "\n".join(f"{counter} {generation}" for counter, generation in pairs).encode()


def generations_in(head: bytes) -> dict[str, int] | None:
    """Read the counters that an entry depends on from its first `MOST_HEAD_BYTES`; None where it is none.

    Without its seal, so for counting alone.
    """
    if len(head) < _PREFIX_BYTES + _HEAD.size or head[0] != ENTRY_FORMAT:
        return None
    rest = head[_PREFIX_BYTES:]
    *_, type_length, source_length, length, _ = _HEAD.unpack_from(rest)
    begin = _HEAD.size + type_length + source_length
    try:
        return decode_dependence(rest[begin : begin + length])
    except ValueError:
        return None


def stored_at_of(head: bytes) -> float:
    """Tell when an entry was stored, in seconds since the epoch, from its first bytes; 0 where it is none."""
    is_entry = len(head) >= _PREFIX_BYTES + _HEAD.size and head[0] == ENTRY_FORMAT
    return float(_HEAD.unpack_from(head, _PREFIX_BYTES)[0]) / 1000 if is_entry else 0.0


def head_bytes_of(head: bytes) -> int:
    """Tell how many of an entry's first bytes hold the counters it depends on; 0 where it is none."""
    if len(head) < _PREFIX_BYTES + _HEAD.size or head[0] != ENTRY_FORMAT:
        return 0
    *_, type_length, source_length, length, _ = _HEAD.unpack_from(head, _PREFIX_BYTES)
    return int(_PREFIX_BYTES + _HEAD.size + type_length + source_length + length)


def decode_dependence(text: bytes) -> dict[str, int]:
    """Read what `encode_dependence` wrote; raises ValueError for anything else."""
    pairs = (line.rpartition(" ") for line in text.decode().split("\n") if line)
    return {counter: int(generation) for counter, _, generation in pairs}


def _seal(rest: bytes, name: EntryName, key: bytes) -> bytes:
    fields = encode_fields("cachewright/entry", [("name", name.key.encode()), ("rest", rest)])
    return hashlib.blake2b(fields, digest_size=_SEAL_BYTES, key=key).digest()
