"""Disk and memory of Qdrant: from numbers of entries to bytes. Pure.

Vectors and answers are on the volume, as the managed server's settings say; graphs, indexes of fields and,
with `quantization: Scalar`, 8-bit copies of vectors are in memory. Figures per point are measured on Qdrant's
own engine; tests/stores hold them against it.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.semantic import HnswSpec
from cachewright.sizing.load import ENTRY_HEAD_BYTES, MEBIBYTE, Load, Need, Part, scaled

PAYLOAD_BYTES: Final = 400
"""Names of fields, tenant, partition, digest, nonce and times, as they are written."""

BASE64_FACTOR: Final = 4 / 3
"""Answers are bytes and fields are text."""

COMPRESSED_FROM_BYTES: Final = 3000
COMPRESSED_SHARE: Final = 0.78
"""What the engine's compression leaves of a longer payload; shorter ones gain little."""

FIELD_INDEXES_BYTES: Final = 170
"""A point's share of the indexes of four fields, on disk."""

POINT_MEMORY_BYTES: Final = 550
"""Its ids and its share of the same indexes, in memory."""

LINK_BYTES: Final = 4
"""Of a graph, for each neighbour."""

COPY_FACTOR: Final = 1.1
"""8-bit copies lie in memory and on disk, with what brings them back."""

LOG_BYTES: Final = 64 * MEBIBYTE
"""Write-ahead log of one collection, at most: two files of 32 MiB."""

LOG_FACTOR: Final = 1.12
"""Numbers of a vector and its payload, as the log writes them."""

REBUILD_SHARE: Final = 0.5
"""Room that a segment needs to be written anew, beside the old one."""

SERVER_MEMORY_BYTES: Final = 128 * MEBIBYTE


def qdrant_need(load: Load, *, semantic: int, expired_share: float, hnsw: HnswSpec, quantized: bool) -> Need:
    """Add up; `expired_share` of the entries lies there until the next sweep."""
    held = round(semantic * load.keyspaces * (1 + expired_share))
    points = scaled(held, point_disk_bytes(load, quantized=quantized))
    graph = scaled(held, graph_bytes(hnsw.payload_m))
    copies = scaled(held, COPY_FACTOR * load.dimensions) if quantized else 0
    log = load.keyspaces * min(LOG_BYTES, scaled(semantic, log_bytes(load)))
    parts = (
        Part("server", 1, SERVER_MEMORY_BYTES),
        Part("similar answers", held, scaled(held, POINT_MEMORY_BYTES), points),
        Part("graphs of their vectors", held, graph, graph),
        Part("8-bit copies of vectors", held if quantized else 0, copies),
        Part("write-ahead log", load.keyspaces, disk_bytes=log),
        Part("room to rewrite segments", 1, disk_bytes=round(REBUILD_SHARE * (points + graph))),
    )
    return Need("qdrant", tuple(part for part in parts if part.entries))


def point_disk_bytes(load: Load, *, quantized: bool) -> float:
    """Disk of one entry, without graph and log."""
    vector = load.dimensions * (4 + (COPY_FACTOR if quantized else 0))
    payload = payload_bytes(load)
    kept = payload * COMPRESSED_SHARE if payload > COMPRESSED_FROM_BYTES else payload
    return vector + kept + FIELD_INDEXES_BYTES


def payload_bytes(load: Load) -> float:
    """Everything of a point but its vector, as it is sent."""
    body = BASE64_FACTOR * (ENTRY_HEAD_BYTES + load.answer_bytes)
    return PAYLOAD_BYTES + load.question_bytes + body


def log_bytes(load: Load) -> float:
    """What the log writes for one point."""
    return LOG_FACTOR * (4 * load.dimensions + payload_bytes(load))


def graph_bytes(payload_m: int) -> int:
    """A point's share of its tenant's graph."""
    return 2 * payload_m * LINK_BYTES
