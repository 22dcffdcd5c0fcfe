"""What only Qdrant can get wrong: versions, keys, collections of others, makers killed midway, its errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from qdrant_client import AsyncQdrantClient, models

from cachewright.errors import SpaceNotFound, StoreError, StoreRefused, StoreUnavailable, StoreUnfit
from cachewright.stores import qdrant_points
from cachewright.stores.qdrant_link import QdrantLink, open_link
from cachewright.stores.qdrant_vectors import QdrantVectorStore
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import Hnsw, Quantization
from tests.support.qdrant_servers import GivenServer, QdrantServer
from tests.support.vectors import NOW, VectorSubject, near, random_vector, vector_entry

TENANT, PARTITION = "tenant-a", "partition-1"
Qdrant = QdrantServer | GivenServer


@pytest.fixture
async def subject(qdrant: Qdrant) -> AsyncIterator[VectorSubject]:
    """A store on the shared server."""
    found = VectorSubject(open_vector_store(qdrant.url, api_key=qdrant.api_key))
    yield found
    for keyspace in await found.store.list_spaces(found.cache_id):
        await found.store.drop(found.cache_id, keyspace)
    await found.store.aclose()


@pytest.fixture
def link(qdrant: Qdrant) -> QdrantLink:
    """A client of the administrator's own."""
    return open_link(qdrant.url, qdrant.api_key)


@asynccontextmanager
async def answering(status: int, body: bytes, reason: str = "x") -> AsyncIterator[QdrantVectorStore]:
    """Give a store on a server that says the same to everything."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} {reason}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        kind = "Content-Type: application/json\r\nRetry-After: 1\r\n\r\n"
        writer.write(head.encode() + kind.encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        store = QdrantVectorStore(open_link(f"http://127.0.0.1:{port}"))
        yield store
        await store.aclose()


def complaint(text: str) -> bytes:
    """Write an error as Qdrant does."""
    return json.dumps({"status": {"error": text}, "time": 0.1}).encode()


@pytest.mark.parametrize("version", ["1.11.5", "0.9.0", "unknown"])
async def test_an_old_server_is_unfit(version: str) -> None:
    """Tenant indexes and the query API are needed; the message says what to update to."""
    body = json.dumps({"title": "qdrant - vector search engine", "version": version}).encode()
    async with answering(200, body) as store:
        with pytest.raises(StoreUnfit, match=rf"Qdrant 1\.12 or newer is needed; the server is {version}"):
            await store.check()


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (404, "Not found: Collection `x` doesn't exist!", SpaceNotFound),
        (400, "Wrong input: Vector dimension error: expected dim: 8, got 16", StoreRefused),
        (403, "Forbidden: Global manage access is required", StoreRefused),
        (500, "Service internal error: No space left on device: WAL buffer size exceeds", StoreUnavailable),
        (503, "Service unavailable", StoreUnavailable),
        (429, "Rate limiting exceeded: Write rate limit exceeded", StoreUnavailable),
    ],
)
async def test_errors_say_what_happened(status: int, text: str, kind: type[StoreError]) -> None:
    """In Qdrant's own words, and as what they mean for a caller."""
    async with answering(status, complaint(text)) as store:
        with pytest.raises(kind) as raised:
            await store.put(VectorSubject(store).space(), vector_entry(1))
        assert type(raised.value) is kind
        assert status == 429 or text in str(raised.value)


async def test_a_complaint_is_cut_short() -> None:
    """It may repeat what it was sent."""
    async with answering(400, complaint("x" * 10_000)) as store:
        with pytest.raises(StoreRefused) as raised:
            await store.put(VectorSubject(store).space(), vector_entry(1))
        assert len(str(raised.value)) < 300


async def test_points_of_somebody_else_are_no_hits(subject: VectorSubject, link: QdrantLink) -> None:
    """A point without our fields in one of our partitions ends the search, not the process."""
    space = await subject.opened()
    payload = {"tenant": TENANT, "partition": PARTITION, "expires_at_ms": int(NOW * 1000) + 1000}
    point = models.PointStruct(id=1, vector=random_vector(1).tolist(), payload=payload)
    async with link.use("store") as client:
        await client.upsert(space.name, [point], wait=True)
    with pytest.raises(StoreRefused, match="not an entry of ours"):
        await subject.store.search(space, random_vector(1), TENANT, PARTITION, NOW)
    await link.aclose()


async def test_a_collection_without_our_marker_is_left_alone(
    subject: VectorSubject, link: QdrantLink
) -> None:
    """Neither filled nor dropped nor listed, whatever its name is."""
    space = subject.space()
    async with link.use("make") as client:
        await client.create_collection(space.name, **qdrant_points.collection_settings(space))
        await client.upsert(space.name, [models.PointStruct(id=1, vector=[1.0] * 8)], wait=True)
    with pytest.raises(StoreRefused, match="not this cache's"):
        await subject.ensure(space)
    with pytest.raises(StoreRefused, match="marker of this cache"):
        await subject.store.drop(subject.cache_id, space.keyspace)
    assert await subject.store.list_spaces(subject.cache_id) == []
    async with link.use("drop") as client:
        await client.delete_collection(space.name)
    await link.aclose()


async def test_a_marker_of_another_cache_protects(subject: VectorSubject, link: QdrantLink) -> None:
    """Names hold a part of the cache's id; the marker holds all of it, and decides."""
    space = await subject.opened()
    marker = await subject.store.read_marker(space)
    async with link.use("store") as client:
        theirs = qdrant_points.marker_point(replace(marker, cache_id="f" * 16))
        await client.upsert(space.name, [theirs], wait=True)
    with pytest.raises(StoreRefused, match="marker of this cache"):
        await subject.store.drop(subject.cache_id, space.keyspace)
    with pytest.raises(StoreRefused, match="not this cache's"):
        await subject.ensure(space)
    async with link.use("drop") as client:
        await client.delete_collection(space.name)
    await link.aclose()


async def test_what_a_killed_maker_left_is_completed(subject: VectorSubject, link: QdrantLink) -> None:
    """An empty collection without a marker: not usable before, made whole by the next, or dropped."""
    for incarnation in (1, 2):
        space = subject.space(incarnation)
        async with link.use("make") as client:
            await client.create_collection(space.name, **qdrant_points.collection_settings(space))
        with pytest.raises(SpaceNotFound, match="not complete"):
            await subject.store.read_marker(space)
    assert len(await subject.store.list_spaces(subject.cache_id)) == 2
    assert await subject.store.drop(subject.cache_id, subject.space(2).keyspace)
    space = subject.space(1)
    await subject.ensure(space)
    await subject.store.put(space, vector_entry(1))
    assert await subject.store.search(space, random_vector(1), TENANT, PARTITION, NOW)
    await link.aclose()


async def test_a_collection_is_made_for_many_tenants(subject: VectorSubject, link: QdrantLink) -> None:
    """No graph over everything, one for each tenant, tenants stored together, every filter indexed."""
    space = replace(subject.space(), hnsw=Hnsw(16, 77, 24), quantization=Quantization.SCALAR)
    await subject.ensure(space)
    async with link.use("look") as client:
        info = await client.get_collection(space.name)
    hnsw = info.config.hnsw_config
    assert (hnsw.m, hnsw.payload_m, hnsw.ef_construct) == (0, 24, 77)
    assert isinstance(info.config.quantization_config, models.ScalarQuantization)
    assert set(info.payload_schema) == {"tenant", "partition", "stored_at_ms", "expires_at_ms"}
    await link.aclose()


async def test_quantized_vectors_are_scored_exactly(subject: VectorSubject) -> None:
    """A threshold of .93 means the same with and without quantization."""
    space = replace(subject.space(dimensions=64), quantization=Quantization.SCALAR)
    await subject.ensure(space)
    asked = random_vector("asked", 64)
    for n in range(20):
        await subject.store.put(space, vector_entry(n, near(asked, 0.95 - n / 40, n)))
    hits = await subject.store.search(space, asked, TENANT, PARTITION, NOW)
    assert [hit.question for hit in hits] == [f"Question {n}?" for n in range(5)]
    assert [hit.score for hit in hits] == pytest.approx([0.95 - n / 40 for n in range(5)], abs=1e-4)


async def test_more_are_evicted_than_fit_a_page(
    subject: VectorSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page, the oldest first."""
    monkeypatch.setattr("cachewright.stores.qdrant_vectors.PAGE", 3)
    space = await subject.opened()
    for n in range(10):
        await subject.store.put(space, vector_entry(n, stored_at=NOW + n))
    assert await subject.store.evict_oldest(space, 7) == 7
    hits = await subject.store.search(space, random_vector(9), TENANT, PARTITION, NOW)
    assert sorted(hit.question for hit in hits) == ["Question 7?", "Question 8?", "Question 9?"]


async def test_an_alias_is_a_name_too(subject: VectorSubject, link: QdrantLink) -> None:
    """As on a real server: the stand-in's aliases lead to their collection until it is gone."""
    space = await subject.opened()
    alias = f"alias-{subject.cache_id}"
    made = models.CreateAlias(collection_name=space.name, alias_name=alias)
    async with link.use("alias") as client:
        await client.update_collection_aliases([models.CreateAliasOperation(create_alias=made)])
        assert (await client.count(alias)).count == 1
        found = await client.get_collection_aliases(space.name)
        assert [one.alias_name for one in found.aliases] == [alias]
    await subject.store.drop(subject.cache_id, space.keyspace)
    with pytest.raises(SpaceNotFound):
        async with link.use("alias") as client:
            await client.count(alias)
    await link.aclose()


async def test_local_mode_and_server_say_the_same_of_what_is_missing() -> None:
    """Their errors differ in kind; ours do not."""
    store = QdrantVectorStore(QdrantLink(AsyncQdrantClient(location=":memory:")))
    with pytest.raises(SpaceNotFound):
        await store.read_marker(VectorSubject(store).space())
    await store.aclose()
