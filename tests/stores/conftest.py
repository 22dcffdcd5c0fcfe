"""Every implementation of CacheStore, each on a server of its own kind."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from qdrant_client import AsyncQdrantClient

from cachewright.keys.digest import EntryName
from cachewright.keys.record import Record
from cachewright.stores import redis_client
from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.protocols import CacheStore
from cachewright.stores.qdrant_link import QdrantLink
from cachewright.stores.qdrant_vectors import QdrantVectorStore
from cachewright.stores.redis_entries import open_cache_store
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import VectorStore
from tests.support.redis_servers import FLAVORS, RedisServer, run_redis
from tests.support.redis_topologies import Topology, run_cluster, run_sentinels, run_tls, run_unix
from tests.support.vectors import VectorSubject
from tests.support.waiting import PATIENCE_SECONDS

TOPOLOGIES = {"unix": run_unix, "tls": run_tls, "sentinel": run_sentinels, "cluster": run_cluster}


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls take their time, but for tests of what a slow server costs."""
    monkeypatch.setattr(redis_client, "COMMAND_TIMEOUT_SECONDS", PATIENCE_SECONDS)


@dataclass
class Subject:
    """A store under test and the cache whose keys it may touch."""

    store: CacheStore
    cache_id: str

    def record(self, revision: int, keyspace_id: str = "0" * 16) -> Record:
        """Return a record of this cache at a revision."""
        empty = Record(self.cache_id, revision - 1, revision - 1)
        return empty.with_layer("Exact", keyspace_id, "binding", "2026-11-30T00:00:00Z")

    def name(self, digest: str = "ab" * 32) -> EntryName:
        """Return the name of an entry."""
        return EntryName(self.cache_id, self.record(1).layers["Exact"].keyspace, "tag", digest)


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A real server of each kind."""
    with run_redis(request.param) as running:
        yield running


@pytest.fixture(scope="session")
def topologies() -> Iterator[Callable[[str], Topology]]:
    """Give servers beyond a plain one, each started when it is first asked for and shared by the run."""
    running: dict[str, Topology] = {}
    with ExitStack() as stack:

        def start(kind: str) -> Topology:
            if kind not in running:
                running[kind] = stack.enter_context(TOPOLOGIES[kind]())
            return running[kind]

        yield start


@pytest.fixture(params=[*FLAVORS, *TOPOLOGIES, "memory"])
async def subject(
    request: pytest.FixtureRequest, topologies: Callable[[str], Topology]
) -> AsyncIterator[Subject]:
    """A fresh, empty store of each kind; servers that are slow to start are shared under another cache id."""
    if request.param == "memory":
        yield Subject(MemoryCacheStore(time.monotonic), "c" * 16)
        return
    if request.param in TOPOLOGIES:
        store = open_cache_store(topologies(request.param).url)
        yield Subject(store, secrets.token_hex(8))
        await store.aclose()
        return
    with run_redis(request.param) as running:
        store = open_cache_store(running.url("gateway"))
        yield Subject(store, running.cache_id)
        await store.aclose()


VECTOR_STORES = ("memory", "qdrant-local", "qdrant", "postgres")


@pytest.fixture(params=VECTOR_STORES)
async def vectors(request: pytest.FixtureRequest) -> AsyncIterator[VectorSubject]:
    """A vector store of each kind; servers are shared, under another cache id each time."""
    subject = VectorSubject(_open_vectors(request))
    await subject.store.check()
    yield subject
    for keyspace in await subject.store.list_spaces(subject.cache_id):
        await subject.store.drop(subject.cache_id, keyspace)
    await subject.store.aclose()


def _open_vectors(request: pytest.FixtureRequest) -> VectorStore:
    match request.param:
        case "qdrant":
            server = request.getfixturevalue("qdrant")
            return open_vector_store(server.url, api_key=server.api_key)
        case "postgres":
            return open_vector_store(request.getfixturevalue("postgres").dsn())
        case "qdrant-local":
            return QdrantVectorStore(QdrantLink(AsyncQdrantClient(location=":memory:")))
    return open_vector_store("memory://")
