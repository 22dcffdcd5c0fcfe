"""Vector stores in trouble: each call ends in time, with an error that says what happened, and recovers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from cachewright.errors import SpaceNotFound, StoreError, StoreRefused, StoreUnavailable
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import VectorSpace, VectorStore
from tests.support.postgres_servers import PostgresServer, run_postgres
from tests.support.proxies import Proxy
from tests.support.qdrant_servers import QdrantServer, run_qdrant
from tests.support.vectors import NOW, VectorSubject, random_vector, vector_entry
from tests.support.waiting import until

TENANT, PARTITION = "tenant-a", "partition-1"
DEADLINE_SECONDS = 2.0
SLACK_SECONDS = 1.5
"""For two busy cores."""

Server = QdrantServer | PostgresServer


@dataclass
class Troubled:
    """A store on a server of its own, with a space in it."""

    server: Server
    subject: VectorSubject
    opened: list[VectorStore] = field(default_factory=list)

    @property
    def store(self) -> VectorStore:
        """The store."""
        return self.subject.store

    @property
    def space(self) -> VectorSpace:
        """The space."""
        return self.subject.space()

    async def search(self) -> list[str]:
        """Search for the first entry."""
        hits = await self.store.search(self.space, random_vector(1), TENANT, PARTITION, NOW)
        return [hit.question for hit in hits]

    async def finds(self) -> bool:
        """Tell whether the first entry is found."""
        try:
            return (await self.search())[:1] == ["Question 1?"]
        except StoreError:
            return False


def address(server: Server) -> tuple[str, str | None]:
    """Return URL and key."""
    return (server.url, server.api_key) if isinstance(server, QdrantServer) else (server.dsn(), None)


@pytest.fixture(scope="module", params=["qdrant", "postgres"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of each kind that these tests may maltreat."""
    with run_qdrant() if request.param == "qdrant" else run_postgres() as running:
        yield running


@pytest.fixture
async def troubled(server: Server) -> AsyncIterator[Troubled]:
    """A store with one entry."""
    url, key = address(server)
    trouble = Troubled(server, VectorSubject(open_vector_store(url, api_key=key)))
    await trouble.store.check()
    await trouble.store.put(await trouble.subject.opened(), vector_entry(1))
    yield trouble
    await trouble.store.aclose()


@contextmanager
def within(seconds: float = DEADLINE_SECONDS + SLACK_SECONDS) -> Iterator[None]:
    """Fail when the block takes longer."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took < seconds, f"took {took:.1f} s"


async def test_a_frozen_server_costs_the_deadline(troubled: Troubled) -> None:
    """Not a minute of TCP, not the client's own patience; and when it goes on, so do we."""
    await troubled.search()
    troubled.server.freeze()
    try:
        with within(), pytest.raises(StoreUnavailable, match="no answer within 2 s"):
            await troubled.search()
        with within(), pytest.raises(StoreUnavailable):
            await troubled.store.put(troubled.space, vector_entry(2))
        with within(), pytest.raises(StoreUnavailable):
            await troubled.store.check()
    finally:
        troubled.server.thaw()
    await until(troubled.finds)


async def test_a_caller_who_has_no_time_is_let_go_at_once(troubled: Troubled) -> None:
    """A budget that runs out ends the wait for a frozen server, whatever the client would like to tidy up."""
    await troubled.search()
    troubled.server.freeze()
    try:
        with within(0.05 + SLACK_SECONDS), pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await troubled.search()
        with within(0.05 + SLACK_SECONDS), pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.gather(*(troubled.search() for _ in range(20)))
    finally:
        troubled.server.thaw()
    await until(troubled.finds)


async def test_connections_stay_few(troubled: Troubled) -> None:
    """Also after many calls at once that were all given up."""
    troubled.server.freeze()
    try:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await asyncio.gather(*(troubled.search() for _ in range(50)))
    finally:
        troubled.server.thaw()

    async def few() -> bool:
        return await asyncio.to_thread(troubled.server.connections) <= 2 * 32

    await until(troubled.finds)
    await until(few)


async def test_a_dead_server_is_unavailable_and_comes_back(troubled: Troubled) -> None:
    """With what it had stored, and over connections that were made before it died."""
    await asyncio.gather(*(troubled.search() for _ in range(5)))
    troubled.server.kill()
    with within(), pytest.raises(StoreUnavailable):
        await troubled.search()
    with within(), pytest.raises(StoreUnavailable):
        await troubled.subject.ensure(troubled.subject.space(2))
    troubled.server.restart()
    assert await troubled.search() == ["Question 1?"]
    assert await troubled.store.count(troubled.space) == 1


async def test_a_restart_between_two_calls_is_not_noticed(troubled: Troubled) -> None:
    """Connections that the server closed meanwhile are not used again."""
    await asyncio.gather(*(troubled.search() for _ in range(5)))
    troubled.server.restart()
    assert await asyncio.gather(*(troubled.search() for _ in range(5))) == [["Question 1?"]] * 5


async def test_a_slow_server_is_waited_for_until_the_deadline(troubled: Troubled) -> None:
    """An answer that takes a second is an answer; one that takes three is none."""
    url, key = address(troubled.server)
    async with Proxy(troubled.server.port) as proxy:
        store = open_vector_store(url.replace(str(troubled.server.port), str(proxy.port)), api_key=key)
        proxy.delay_seconds = 0.1
        with within(DEADLINE_SECONDS + SLACK_SECONDS):
            hits = await store.search(troubled.space, random_vector(1), TENANT, PARTITION, NOW)
            assert [hit.question for hit in hits] == ["Question 1?"]
        proxy.delay_seconds = 3.0
        with within(), pytest.raises(StoreUnavailable):
            await store.search(troubled.space, random_vector(1), TENANT, PARTITION, NOW)
        await store.aclose()


async def test_dropped_packets_cost_the_deadline(troubled: Troubled) -> None:
    """A network that swallows everything looks like a frozen server, and heals like one."""
    url, key = address(troubled.server)
    async with Proxy(troubled.server.port) as proxy:
        store = open_vector_store(url.replace(str(troubled.server.port), str(proxy.port)), api_key=key)
        await store.search(troubled.space, random_vector(1), TENANT, PARTITION, NOW)
        proxy.swallow = True
        with within(), pytest.raises(StoreUnavailable):
            await store.search(troubled.space, random_vector(1), TENANT, PARTITION, NOW)
        proxy.swallow = False
        assert await store.search(troubled.space, random_vector(1), TENANT, PARTITION, NOW)
        await store.aclose()


async def test_nobody_listening_is_unavailable(troubled: Troubled) -> None:
    """At once, and the address alone is told."""
    url, _ = address(troubled.server)
    store = open_vector_store(url.replace(str(troubled.server.port), "1"), api_key="secret-key")
    with within(), pytest.raises(StoreUnavailable) as raised:
        await store.search(troubled.space, random_vector(1), TENANT, PARTITION, NOW)
    assert "password" not in str(raised.value)
    await store.aclose()


async def test_a_wrong_credential_is_refused(troubled: Troubled) -> None:
    """Not unavailable: trying again is useless. And it is never repeated."""
    url, _ = address(troubled.server)
    store = open_vector_store(url.replace("postgres-test-password", "wrong-secret"), api_key="wrong-secret")
    for call in (
        store.check(),
        store.search(troubled.space, random_vector(1), TENANT, PARTITION, NOW),
        store.list_spaces(troubled.subject.cache_id),
    ):
        with within(), pytest.raises(StoreRefused) as raised:
            await call
        assert "wrong-secret" not in str(raised.value)
        assert not isinstance(raised.value, SpaceNotFound)
    await store.aclose()


async def test_another_protocol_is_no_answer(troubled: Troubled) -> None:
    """A URL that leads to something else gives an error, not a crash."""
    url, key = address(troubled.server)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n["something"]')
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        store = open_vector_store(url.replace(str(troubled.server.port), str(port)), api_key=key)
        for call in (
            store.check(),
            store.search(troubled.space, random_vector(1), TENANT, PARTITION, NOW),
            store.put(troubled.space, vector_entry(1)),
            store.read_body(troubled.space, vector_entry(1).id, b"nonce"),
        ):
            with within(), pytest.raises(StoreError) as raised:
                await call
            assert "something" not in str(raised.value)
        await store.aclose()


async def test_a_space_dropped_under_a_search_is_not_found(troubled: Troubled) -> None:
    """A janitor may drop what a slow gateway still searches."""
    await asyncio.gather(
        *(troubled.finds() for _ in range(10)),
        troubled.store.drop(troubled.subject.cache_id, troubled.space.keyspace),
    )
    with pytest.raises(SpaceNotFound):
        await troubled.search()
