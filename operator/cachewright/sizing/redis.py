"""Memory of Redis or Valkey: from numbers of entries to bytes of `maxmemory`. Pure.

Each entry is a string key with a TTL. The shape of its memory is that of Redis 7's `dict.c`, `object.c` and
`sds.c` on 64 bits; newer Valkeys need some tenths less. Held against real servers by tests/stores.
"""

from __future__ import annotations

from typing import Final

from cachewright.keys.digest import EntryName
from cachewright.keys.keyspaces import Keyspace
from cachewright.sizing.load import (
    DIGEST_BYTES,
    ENTRY_HEAD_BYTES,
    MEBIBYTE,
    TENANT_TAG_BYTES,
    TICKET_BYTES,
    Load,
    Need,
    Part,
    scaled,
)

KEY_BYTES: Final = len(
    EntryName("0" * 16, Keyspace("0" * 16, 1), "t" * TENANT_TAG_BYTES, "0" * DIGEST_BYTES).key
)

KEY_OVERHEAD_BYTES: Final = 24 + 24 + 16 + 25
"""Entries of the two tables, of keys and of TTLs, the value's object, and slots of tables that are two thirds
full."""

ALLOCATION_FACTOR: Final = 1.11
"""Sizes of allocations stand a quarter apart at most, so a ninth is lost on the way."""

CONTAINER_FACTOR: Final = 1.3
"""Fragmentation, client buffers and the server itself, over `maxmemory`."""

CONTAINER_BYTES: Final = 32 * MEBIBYTE

SERVER_BYTES: Final = 4 * MEBIBYTE
"""The empty server, and 64 copies of the record."""


def redis_need(load: Load, *, exact: bool, semantic: int, hot: bool) -> Need:
    """Add up; `semantic` is the number of entries that the semantic layer holds in one keyspace."""
    answers = load.entries * load.keyspaces if exact else 0
    tickets = semantic * load.keyspaces
    vectors = load.embeddings if hot else 0
    vector_bytes = ENTRY_HEAD_BYTES + 4 * load.dimensions
    answer_bytes = ENTRY_HEAD_BYTES + load.answer_bytes
    parts = (
        Part("server and record", 1, memory_bytes=SERVER_BYTES),
        Part("exact answers", answers, memory_bytes=scaled(answers, entry_bytes(answer_bytes))),
        Part("tickets of similar answers", tickets, memory_bytes=scaled(tickets, entry_bytes(TICKET_BYTES))),
        Part("hot vectors", vectors, memory_bytes=scaled(vectors, entry_bytes(vector_bytes))),
    )
    return Need("redis", tuple(part for part in parts if part.entries))


def entry_bytes(value_bytes: int) -> float:
    """Memory of one entry whose value has so many bytes."""
    return KEY_OVERHEAD_BYTES + _allocated(KEY_BYTES + 4) + ALLOCATION_FACTOR * (value_bytes + 6)


def container_memory_mebibytes(max_memory_bytes: int) -> int:
    """Derive the container's memory limit from `maxmemory`, in MiB, rounded up."""
    return -(-int(max_memory_bytes * CONTAINER_FACTOR + CONTAINER_BYTES) // MEBIBYTE)


def _allocated(size: int) -> int:
    return -(-size // 16) * 16
