"""Stores filled with what a load says, by the layers' own code, and what they then take up.

The tests of the package `sizing` and `bench.sizing` compare that with what was worked out.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import psycopg
from redis.asyncio import Redis

from cachewright.keys.digest import EntryName, tenant_tag
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.entry import Entry, encode_dependence, encode_entry
from cachewright.layers.ticket import NONCE_BYTES, encode_ticket
from cachewright.sizing.load import Load
from cachewright.stores.embeddings import ColdEmbedding, EmbeddingSpace
from cachewright.stores.postgres_embeddings import PostgresEmbeddingStore
from cachewright.stores.postgres_link import open_link
from cachewright.stores.postgres_sql import put_parameters, put_statement
from cachewright.stores.postgres_vectors import PostgresVectorStore
from cachewright.stores.qdrant_points import entry_point
from cachewright.stores.qdrant_vectors import QdrantVectorStore
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import EntryId, Quantization, VectorEntry, VectorSpace, VectorStore
from tests.support.postgres_servers import PostgresServer
from tests.support.qdrant_servers import QdrantServer
from tests.support.redis_servers import RedisServer
from tests.support.waiting import PATIENCE_SECONDS

CACHE: Final = "ab" * 8
KEYSPACE: Final = Keyspace("cd" * 8, 1)
KEY: Final = bytes(range(32))
NOW: Final = 1_800_000_000.0
TENANTS: Final = 10
BATCH: Final = 100

_WORDS: Final = sorted(
    {word for word in (Path(__file__).parents[2] / "docs" / "api.md").read_text().split() if word.isalpha()}
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer with its question and its vector."""

    name: EntryName
    value: bytes
    """As the exact layer stores it."""
    ticket: bytes
    question: str
    vector: array[float]


def answers(load: Load) -> Iterator[Answer]:
    """Make answers as a model would give them: prose within an envelope of JSON, each another."""
    source = random.Random(1)  # noqa: S311 - the same each time is what is wanted
    vectors = np.random.default_rng(1).standard_normal((load.entries, max(1, load.dimensions)), np.float32)
    for number in range(load.entries):
        tag = tenant_tag(KEY, b"tenant %d" % (number % TENANTS))
        name = EntryName(CACHE, KEYSPACE, tag, hashlib.sha256(b"%d" % number).hexdigest())
        dependence = encode_dependence([f"t:{tag}", "l:Exact"], [0, 0])
        entry = Entry(
            "application/json",
            _body(source, load.answer_bytes),
            NOW,
            3600.0,
            upstream_seconds=1.5,
            dependence=dependence,
        )
        yield Answer(
            name,
            encode_entry(entry, name, KEY),
            encode_ticket(bytes(NONCE_BYTES), dependence),
            _prose(source, load.question_bytes),
            array("f", vectors[number].tobytes()),
        )


async def fill_redis(server: RedisServer, load: Load) -> int:
    """Store answers and tickets, and return the bytes of memory that the server needs for it all."""
    client = Redis.from_url(server.url("root"))
    try:
        for answer in answers(load):
            await client.set(answer.name.key, answer.value, px=3_600_000)
            twin = EntryName(CACHE, Keyspace("ef" * 8, 1), answer.name.tenant_tag, answer.name.digest)
            await client.set(twin.key, answer.ticket, px=3_600_000)
        return int((await client.info("memory"))["used_memory"])
    finally:
        await client.aclose()


async def fill_vectors(store: VectorStore, load: Load, quantization: Quantization) -> VectorSpace:
    """Store the entries of the semantic layer in a space of its own."""
    space = VectorSpace(CACHE, KEYSPACE, load.dimensions, quantization=quantization)
    await store.check()
    await store.drop(CACHE, KEYSPACE)
    await store.ensure(space, "probe", array("f", [1.0] * load.dimensions))
    entries = map(_vector_entry, answers(load))
    while batch := list(islice(entries, BATCH)):
        await _put(store, space, batch)
    return space


@dataclass(frozen=True, slots=True)
class PostgresSizes:
    """Bytes on disk, as the server tells them."""

    table: int
    """With what is kept beside it, and every index but the graph."""
    graph: int
    cold: int


async def fill_postgres(server: PostgresServer, load: Load, quantization: Quantization) -> PostgresSizes:
    """Store the entries of the semantic layer, and vectors of the embedding layer beside them."""
    store = open_vector_store(server.dsn())
    cold = PostgresEmbeddingStore(open_link(server.dsn()))
    try:
        space = await fill_vectors(store, load, quantization)
        await _fill_cold(cold, load)
    finally:
        await store.aclose()
        await cold.aclose()
    with psycopg.connect(server.dsn()) as connection:
        total, graph, cold_bytes = connection.execute(
            "SELECT pg_total_relation_size(%(table)s),"
            " (SELECT coalesce(sum(pg_relation_size(indexrelid)), 0)::bigint FROM pg_index"
            "  JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam"
            "  WHERE indrelid = %(table)s::regclass AND amname = 'hnsw'),"
            " pg_total_relation_size(%(cold)s)",
            {"table": space.name, "cold": f"emb_{space.name}"},
        ).fetchone() or (0, 0, 0)
    return PostgresSizes(total - graph, graph, cold_bytes)


async def fill_qdrant(server: QdrantServer, load: Load, quantization: Quantization) -> int:
    """Store the entries of the semantic layer, and return the bytes that they take on disk."""
    store = open_vector_store(server.url, api_key=server.api_key)
    try:
        await fill_vectors(store, load, quantization)
    finally:
        await store.aclose()
    return disk_bytes(server.folder / "storage")


def disk_bytes(folder: Path) -> int:
    """Count the blocks of a folder: files with holes are smaller than they say."""
    told = subprocess.run(["du", "-s", "-B1", str(folder)], check=True, capture_output=True, text=True)
    return int(told.stdout.split()[0])


async def _fill_cold(cold: PostgresEmbeddingStore, load: Load) -> None:
    space = EmbeddingSpace(CACHE, KEYSPACE)
    await cold.ensure(space)
    await cold.drop(CACHE, KEYSPACE)
    await cold.ensure(space)
    batches: dict[str, list[ColdEmbedding]] = {}
    for answer in answers(load):
        held = ColdEmbedding(answer.name.digest, answer.vector.tobytes(), 12)
        batches.setdefault(answer.name.tenant_tag, []).append(held)
    for tag, batch in batches.items():
        assert await cold.write(space, tag, batch, 0)


async def _put(store: VectorStore, space: VectorSpace, batch: list[VectorEntry]) -> None:
    """Store entries as `put` does, many at once and with time enough on a busy machine."""
    if isinstance(store, QdrantVectorStore):
        async with store._link.use("fill", PATIENCE_SECONDS) as client:
            await client.upsert(space.name, [entry_point(entry) for entry in batch], wait=True)
        return
    assert isinstance(store, PostgresVectorStore)
    async with store._link.use("fill", PATIENCE_SECONDS) as connection, connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0")
        rows = map(put_parameters, batch)
        await connection.cursor().executemany(put_statement(space.name), rows)


def _vector_entry(answer: Answer) -> VectorEntry:
    partition = hashlib.sha256(answer.name.tenant_tag.encode()).hexdigest()
    return VectorEntry(
        id=EntryId(answer.name.tenant_tag, answer.name.digest),
        vector=answer.vector,
        partition=partition,
        question=answer.question,
        nonce=answer.ticket[:NONCE_BYTES],
        body=answer.value,
        metadata=answer.name.tag,
        stored_at=NOW,
        expires_at=NOW + 3600.0,
    )


def _body(source: random.Random, size: int) -> bytes:
    """Make a completion of this many bytes."""
    document = {
        "id": f"chatcmpl-{source.getrandbits(128):032x}",
        "object": "chat.completion",
        "created": int(NOW),
        "model": "demo-model",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "%s"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 31, "completion_tokens": 170, "total_tokens": 201},
    }
    envelope = json.dumps(document)
    return (envelope % _prose(source, max(1, size - len(envelope) + 2))).encode()


def _prose(source: random.Random, size: int) -> str:
    return " ".join(source.choice(_WORDS) for _ in range(size // 3 + 1))[:size]
