"""Disk and memory of PostgreSQL with pgvector: from numbers of entries to bytes. Pure.

Pages of 8 KiB hold whole rows and whole elements of a graph, so what a vector costs jumps with its length.
The layouts are those of PostgreSQL's `htup_details.h` and `heaptoast.h` and of pgvector's `hnsw.h`, of the
tables that `stores.postgres_sql` and `stores.postgres_embeddings` make. tests/stores hold it
against a server.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.semantic import HnswSpec
from cachewright.sizing.load import (
    DIGEST_BYTES,
    ENTRY_HEAD_BYTES,
    MEBIBYTE,
    TENANT_TAG_BYTES,
    Load,
    Need,
    Part,
    scaled,
)

PAGE_BYTES: Final = 8192
ROW_SPACE_BYTES: Final = 8168
GRAPH_SPACE_BYTES: Final = 8160

TOAST_TARGET_BYTES: Final = 2032
"""A row that is longer has its answer, and then its question, kept beside the table."""

TOAST_CHUNK_BYTES: Final = 1996
CHUNK_HEAD_BYTES: Final = 44
PACKED_ROWS: Final = 60
"""Rows whose chunks are put into pages, to see how many they take."""

CHUNK_INDEX_BYTES: Final = 30
COMPRESSED_FROM_BYTES: Final = 2000
COMPRESSED_SHARE: Final = 0.7
"""What the server's compression leaves of a longer answer; shorter ones gain too little."""

RANDOM_INDEX_FILL: Final = 0.66
"""Of an index whose keys come in no order."""

POINTER_BYTES: Final = 18

SMALL_INDEXES_BYTES: Final = 16 + 2 * 22
"""An entry's share of the indexes by partition, where equal keys are stored once, and by the two times."""

DATABASE_BYTES: Final = 40 * MEBIBYTE
"""Catalogues of the server's databases, before anything is stored."""

WAL_BYTES: Final = 576 * MEBIBYTE
"""`max_wal_size` of the managed server, and the files in use beyond it."""

DEAD_SHARE: Final = 0.1
"""Rows that were replaced or have gone, and whose room is not used again yet."""

SERVER_MEMORY_BYTES: Final = 192 * MEBIBYTE
"""The server with a few dozens of connections."""

VECTOR_MAX: Final = 2000
HALFVEC_MAX: Final = 4000


def postgres_need(
    load: Load, *, semantic: int, expired_share: float, cold: bool, hnsw: HnswSpec, rounded: bool
) -> Need:
    """Add up; `expired_share` of the entries lies there until the next sweep."""
    held = round(semantic * load.keyspaces * (1 + expired_share))
    cold_vectors = load.embeddings if cold else 0
    graph = scaled(held, graph_bytes(load.dimensions, hnsw.m, rounded=rounded))
    rows = scaled(held, row_bytes(load) + key_index_bytes(DIGEST_BYTES) + SMALL_INDEXES_BYTES)
    cold_bytes = cold_row_bytes(load.dimensions) + key_index_bytes(DIGEST_BYTES // 2)
    cold_disk = scaled(cold_vectors, cold_bytes)
    room = round(DEAD_SHARE * (rows + graph + cold_disk))
    parts = (
        Part("server and catalogues", 1, SERVER_MEMORY_BYTES, DATABASE_BYTES),
        Part("write-ahead log", 1, disk_bytes=WAL_BYTES),
        Part("similar answers", held, disk_bytes=rows),
        Part("graph of their vectors", held, graph, graph),
        Part("cold vectors", cold_vectors, scaled(cold_vectors, key_index_bytes(32)), cold_disk),
        Part("rows that have gone", 1, disk_bytes=room),
    )
    return Need("postgres", tuple(part for part in parts if part.entries and (part.disk_bytes or graph)))


def row_bytes(load: Load) -> float:
    """Disk of one entry of the semantic layer, without indexes."""
    vector = 12 + 4 * load.dimensions
    body, question = ENTRY_HEAD_BYTES + load.answer_bytes, load.question_bytes
    fixed = 24 + (TENANT_TAG_BYTES + 1) + 2 * (DIGEST_BYTES + 1) + 17 + 3 + 16 + 8
    row = fixed + vector + body + question
    beside: list[float] = []
    if row > TOAST_TARGET_BYTES:
        beside.append(_compressed(body))
        row -= body - POINTER_BYTES
    if row > TOAST_TARGET_BYTES and question > POINTER_BYTES:
        beside.append(question)
        row -= question - POINTER_BYTES
    if row > ROW_SPACE_BYTES:
        beside.append(vector)
        row -= vector - POINTER_BYTES
    return _paged(row + 4, ROW_SPACE_BYTES) + toast_bytes(*beside)


def cold_row_bytes(dimensions: int) -> float:
    """Disk of one vector of the embedding layer, without its index."""
    vector = 4 + 4 * dimensions
    row = 24 + (TENANT_TAG_BYTES + 1) + (DIGEST_BYTES // 2 + 1) + 8 + 4 + 8 + 8
    if row + vector <= TOAST_TARGET_BYTES:
        return _paged(row + vector + 4, ROW_SPACE_BYTES)
    return _paged(row + POINTER_BYTES + 4, ROW_SPACE_BYTES) + toast_bytes(vector)


def key_index_bytes(digest_bytes: int) -> float:
    """An entry's share of the index of a primary key."""
    return (12 + _aligned(TENANT_TAG_BYTES + 1 + digest_bytes + 1)) / RANDOM_INDEX_FILL


def graph_bytes(dimensions: int, m: int, *, rounded: bool) -> float:
    """An entry's share of the graph; 0 where there are too many dimensions for one."""
    if not dimensions or dimensions > HALFVEC_MAX:
        return 0.0
    is_half = rounded or dimensions > VECTOR_MAX
    element = _aligned(72 + 8 + (2 if is_half else 4) * dimensions)
    neighbours = _aligned(4 + 6 * 2 * m)
    together = element + neighbours + 8
    if together <= GRAPH_SPACE_BYTES:
        return _paged(together, GRAPH_SPACE_BYTES)
    return _paged(element + 4, GRAPH_SPACE_BYTES) + _paged(neighbours + 4, GRAPH_SPACE_BYTES)


def toast_bytes(*sizes: float) -> float:
    """Disk of the values of a row that are kept beside its table, in chunks, with their index.

    Chunks are written one after the other, and one that does not fit begins a page.
    """
    chunks: list[float] = []
    for size in sizes:
        whole, rest = divmod(size, TOAST_CHUNK_BYTES)
        chunks += [TOAST_CHUNK_BYTES] * int(whole) + ([rest] if rest else [])
    pages, free = 0, 0.0
    for chunk in chunks * PACKED_ROWS:
        row = chunk + CHUNK_HEAD_BYTES
        if row > free:
            pages, free = pages + 1, ROW_SPACE_BYTES
        free -= row
    return pages * PAGE_BYTES / PACKED_ROWS + len(chunks) * CHUNK_INDEX_BYTES


def _compressed(size: float) -> float:
    return size * COMPRESSED_SHARE if size > COMPRESSED_FROM_BYTES else size


def _paged(size: float, space: int) -> float:
    """Disk of one thing of this size, where as many as fit share a page."""
    return PAGE_BYTES / max(1, int(space // _aligned(size)))


def _aligned(size: float) -> int:
    return int(-(-size // 8) * 8)
