"""The sweep of the cold tier: what it removes, and what it leaves alone."""

from __future__ import annotations

from cachewright.keys.embedding import embedding_counters
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.layers.embedding_sweep import BATCH, EmbeddingSweep
from cachewright.layers.pace import Pace
from cachewright.stores.embeddings import ColdEmbedding, EmbeddingSpace
from cachewright.stores.memory_embeddings import MemoryEmbeddingStore

CACHE = "c" * 16
RECORD = Record(CACHE, 0, 4).with_layer("Embedding", "e" * 16, "binding", "2026-11-30T00:00:00Z")
IN_USE = EmbeddingSpace(CACHE, RECORD.layers["Embedding"].keyspace)


async def test_retracted_vectors_and_forgotten_spaces_go() -> None:
    """What can be reached stays, and so does a space that a newer record may name."""
    store = MemoryEmbeddingStore()
    forgotten, newer = Keyspace("a" * 16, 2), Keyspace("b" * 16, RECORD.incarnation + 1)
    for keyspace in (IN_USE.keyspace, forgotten, newer):
        await store.ensure(EmbeddingSpace(CACHE, keyspace))
    vectors = [ColdEmbedding(f"{number:064x}", b"\0\0\0\0", 1) for number in range(BATCH + 3)]
    await store.write(IN_USE, "acme", vectors, 0)
    await store.write(IN_USE, "globex", vectors[:1], 0)
    await store.raise_generations(CACHE, embedding_counters("acme")[:1])
    removed = await EmbeddingSweep(store).run(RECORD, Pace(1e9, lambda: 0.0))
    assert removed == BATCH + 3
    assert await store.count(IN_USE) == 1
    assert await store.list_spaces(CACHE) == [IN_USE.keyspace, newer]
