"""Many objects on one server of each kind: every one finds what is its own, and nothing of the others'."""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from cachewright.errors import StoreUnavailable
from cachewright.keys.digest import EntryName
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.kube.memory import MemoryKube
from cachewright.kube.protocol import CONFIG_MAPS
from cachewright.reconcile.known_record import parse_record
from cachewright.stores.embedding_opening import open_embedding_store
from cachewright.stores.embeddings import ColdEmbedding, EmbeddingSpace, EmbeddingStore
from cachewright.stores.protocols import CacheStore
from cachewright.stores.redis_entries import open_cache_store
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import EntryId, VectorEntry, VectorSpace, VectorStore
from tests.stores.test_stores_told import World
from tests.support.postgres_servers import PostgresServer
from tests.support.qdrant_servers import GivenServer, QdrantServer
from tests.support.redis_servers import run_redis
from tests.support.vectors import NOW, PROBE_TEXT, random_vector
from tests.support.waiting import PATIENCE_SECONDS, until

T = TypeVar("T")

TENANT, DIGEST, PARTITION = "tenant-tag", "ab" * 32, "cd" * 32
"""The same in all objects, as if they had one digest key and were asked the same."""

VECTOR = random_vector("shared", 8)
OBJECTS = [("ml", f"demo-{number}") for number in range(10)] + [("web", "demo-0"), ("app", "demo-0")]


@dataclass
class Stores:
    """One server of each kind."""

    redis: CacheStore
    vectors: tuple[VectorStore, ...]
    cold: EmbeddingStore

    async def aclose(self) -> None:
        """Close all connections."""
        await self.redis.aclose()
        for store in self.vectors:
            await store.aclose()
        await self.cold.aclose()


@dataclass
class Owner:
    """One object's place on the shared servers."""

    record: Record
    stores: Stores

    def keyspace(self, layer: str) -> Keyspace:
        """Return the keyspace in use."""
        return self.record.layers[layer].keyspace

    @property
    def text(self) -> bytes:
        """What it writes, and nobody else."""
        return self.record.cache_id.encode()

    @property
    def entry(self) -> EntryName:
        """Its entry in Redis."""
        return EntryName(self.record.cache_id, self.keyspace("Exact"), TENANT, DIGEST)

    @property
    def space(self) -> VectorSpace:
        """Its space in a vector store."""
        return VectorSpace(self.record.cache_id, self.keyspace("Semantic"), len(VECTOR))

    @property
    def cold(self) -> EmbeddingSpace:
        """Its space in the cold tier."""
        return EmbeddingSpace(self.record.cache_id, self.keyspace("Embedding"))

    async def write(self) -> None:
        """Keep something of its own in every layer."""
        marks = (await self.stores.redis.find(self.entry)).marks
        assert marks is not None, "the operator has published the record"
        assert await self.stores.redis.write(self.entry, self.text, 600, marks)
        entry = VectorEntry(
            EntryId(TENANT, DIGEST), VECTOR, PARTITION, "", b"n" * 16, self.text, "", NOW, NOW + 600
        )
        for store in self.stores.vectors:
            await store.ensure(self.space, PROBE_TEXT, VECTOR)
            await store.put(self.space, entry)
        await self.stores.cold.ensure(self.cold)
        vector = array("f", [float(len(self.text)), *self.text]).tobytes()
        assert await self.stores.cold.write(self.cold, TENANT, [ColdEmbedding(DIGEST, vector, 1)], 0)

    async def end(self) -> None:
        """Remove all of it from every store."""
        cache_id = self.record.cache_id
        for store in self.stores.vectors:
            await store.drop(cache_id, self.keyspace("Semantic"))
        await self.stores.cold.drop(cache_id, self.keyspace("Embedding"))
        await self.stores.redis.unlink(cache_id, None, [self.entry.key])

    async def found(self) -> list[bytes | None]:
        """Read it all back: what Redis, the vector stores and the cold tier have."""
        read = [(await self.stores.redis.find(self.entry)).value]
        for store in self.stores.vectors:
            hits = await store.search(self.space, VECTOR, TENANT, PARTITION, NOW)
            assert len(hits) == 1
            read.append(await store.read_body(self.space, hits[0].id, hits[0].nonce))
        (held,) = (await self.stores.cold.find(self.cold, TENANT, [DIGEST])).embeddings.values()
        vector = array("f", held.vector)
        return [*read, bytes(int(value) for value in vector[1:])]


async def test_ten_objects_in_one_namespace_and_three_namespaces_share_stores(
    qdrant: QdrantServer | GivenServer, postgres: PostgresServer
) -> None:
    """Also where they are asked the same; and the end of one takes nothing from the others."""
    with run_redis("valkey") as redis:
        kube, records = MemoryKube(), []
        for namespace, name in OBJECTS:
            world = World(
                redis.url("root"),
                qdrant.url,
                qdrant.api_key or "",
                postgres.dsn(),
                replicas=1,
                namespace=namespace,
                name=name,
                kube=kube,
            )
            await until(world.is_well, seconds=PATIENCE_SECONDS)
            config_map = await kube.get(CONFIG_MAPS, namespace, f"{name}-record")
            record = parse_record(config_map) if config_map else None
            assert record is not None
            records.append(record)
        assert len({record.cache_id for record in records}) == len(OBJECTS)
        vectors = (open_vector_store(qdrant.url, api_key=qdrant.api_key), open_vector_store(postgres.dsn()))
        await vectors[1].check()
        stores = Stores(open_cache_store(redis.url("root")), vectors, open_embedding_store(postgres.dsn()))
        try:
            await _share([Owner(record, stores) for record in records], stores)
        finally:
            await stores.aclose()


async def _share(owners: list[Owner], stores: Stores) -> None:
    for owner in owners:
        await patiently(owner.write)
    for owner in owners:
        assert await patiently(owner.found) == [owner.text] * 4
    first, *others = owners
    cache_id = first.record.cache_id
    for store in stores.vectors:
        assert await patiently(partial(store.list_spaces, cache_id)) == [first.keyspace("Semantic")]
    await patiently(first.end)
    for store in stores.vectors:
        assert await patiently(partial(store.list_spaces, cache_id)) == []
    assert (await patiently(partial(stores.redis.find, first.entry))).value is None
    for owner in others:
        assert await patiently(owner.found) == [owner.text] * 4
    for owner in others:
        await patiently(owner.end)


async def patiently(action: Callable[[], Awaitable[T]]) -> T:
    """Do it once more while a store takes longer than a call may: the machine may have others to serve."""
    results: list[T] = []

    async def is_done() -> bool:
        try:
            results.append(await action())
        except StoreUnavailable:
            return False
        return True

    await until(is_done, seconds=PATIENCE_SECONDS)
    return results[0]
