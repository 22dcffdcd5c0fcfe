"""What concerns Redis and Valkey alone: rights, broken servers, broken data, bounded time and connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from cachewright.errors import InvalidInput, StoreRefused, StoreUnavailable
from cachewright.keys.digest import heartbeat_key, record_key
from cachewright.keys.scheme import TAGS
from cachewright.stores import redis_client
from cachewright.stores.protocols import CacheStore, WriteOutcome
from cachewright.stores.redis_entries import open_cache_store
from cachewright.stores.redis_record import open_record_store
from tests.stores.conftest import Subject
from tests.support.redis_servers import RedisServer
from tests.support.waiting import PATIENCE_SECONDS


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[CacheStore]:
    """A gateway's store."""
    opened = open_cache_store(server.url("gateway"))
    yield opened
    await opened.aclose()


@pytest.fixture
async def root(server: RedisServer) -> AsyncIterator[Redis]:
    """A client that may do everything."""
    client = Redis.from_url(server.url("root"))
    await client.flushall()
    yield client
    await client.aclose()


@pytest.mark.parametrize("user", ["gateway", "operator"])
@pytest.mark.parametrize(
    "command",
    ["FLUSHALL", "FLUSHDB", "CONFIG GET *", "KEYS *", "SWAPDB 0 1", "ACL LIST", "SHUTDOWN"],
)
async def test_users_cannot_do_what_they_need_not(server: RedisServer, user: str, command: str) -> None:
    """Neither a gateway nor the operator can empty or reconfigure a server."""
    async with Redis.from_url(server.url(user)) as client:
        with pytest.raises(NoPermissionError):
            await client.execute_command(*command.split())  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("command", ["SCAN 0", "UNLINK x", "HKEYS x"])
async def test_the_operator_cannot_empty_a_keyspace(server: RedisServer, command: str) -> None:
    """Only gateways walk over keys and remove them."""
    async with Redis.from_url(server.url("operator")) as client:
        with pytest.raises(NoPermissionError):
            await client.execute_command(*command.split())  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("user", ["gateway", "operator"])
async def test_users_cannot_touch_foreign_keys(server: RedisServer, user: str) -> None:
    """Another cache's record is out of reach, inside scripts too."""
    foreign = record_key("f" * 16, "00")
    async with Redis.from_url(server.url(user)) as client:
        with pytest.raises(NoPermissionError):
            await client.hget(foreign, "revision")
        with pytest.raises(NoPermissionError):
            await client.unlink(foreign)
        with pytest.raises(NoPermissionError):
            await client.eval("return redis.call('HGET', KEYS[1], 'revision')", 1, foreign)


async def test_the_operator_reads_no_entries(server: RedisServer) -> None:
    """The operator's user handles the record alone."""
    async with Redis.from_url(server.url("operator")) as client:
        with pytest.raises(NoPermissionError):
            await client.get(record_key(server.cache_id, "00"))


async def test_probes_need_no_password_and_may_only_ping(server: RedisServer) -> None:
    """The health user is of no other use."""
    async with Redis.from_url(f"redis://health:x@127.0.0.1:{server.port}/0") as client:
        assert await client.ping()
        with pytest.raises(NoPermissionError):
            await client.get("x")


async def test_the_operator_publishes_with_its_rights(server: RedisServer, root: Redis) -> None:
    """Under all 64 hash tags, for gateways to read."""
    record = Subject(open_cache_store(server.url("gateway")), server.cache_id).record(4)
    operator = open_record_store(server.url("operator"))
    try:
        assert await operator.publish_record(record) == 4
        assert await operator.read_record(server.cache_id) == record
    finally:
        await operator.aclose()
    assert len(await root.keys(f"{{cw1:{server.cache_id}:*}}:record")) == len(TAGS)


async def test_the_operator_beats_with_its_rights(server: RedisServer, root: Redis) -> None:
    """Under all 64 hash tags, each with a TTL of its own; one tag that lost its copy is told of."""
    record = Subject(open_cache_store(server.url("gateway")), server.cache_id).record(4)
    operator = open_record_store(server.url("operator"))
    try:
        await operator.publish_record(record)
        assert await operator.beat(server.cache_id, 4, 600)
        for tag in TAGS:
            assert 590_000 < await root.pttl(heartbeat_key(server.cache_id, tag)) <= 600_000
        await root.delete(record_key(server.cache_id, "07"))
        assert not await operator.beat(server.cache_id, 4, 600)
        assert await operator.publish_record(record) == 4
        assert await operator.beat(server.cache_id, 4, 600)
    finally:
        await operator.aclose()


async def test_a_copy_from_before_there_were_permissions_is_completed(
    server: RedisServer, store: CacheStore, root: Redis
) -> None:
    """Publishing the same revision again makes it writable; nothing else about it changes."""
    subject = Subject(store, server.cache_id)
    await store.publish_record(subject.record(1))
    for tag in TAGS:
        await root.hdel(record_key(server.cache_id, tag), "free", "fenced")
    marks = (await store.find(subject.name())).marks
    assert marks is not None
    assert await store.write(subject.name(), b"x", 60, marks) is WriteOutcome.READONLY
    assert await store.publish_record(subject.record(1)) == 1
    marks = (await store.find(subject.name())).marks
    assert marks is not None
    assert await store.write(subject.name(), b"x", 60, marks)
    assert await store.publish_record(subject.record(1)) == 1
    assert (await store.find(subject.name())).marks == marks


async def test_copies_that_do_not_parse_count_as_absent(
    server: RedisServer, store: CacheStore, root: Redis
) -> None:
    """A damaged copy under one tag hides none of the others; the highest revision counts."""
    subject = Subject(store, server.cache_id)
    await store.publish_record(subject.record(2))
    await root.hset(record_key(server.cache_id, "00"), "record", "{")
    foreign = Subject(store, "f" * 16).record(9)
    await root.hset(record_key(server.cache_id, "01"), "record", foreign.to_json())
    assert await store.read_record(server.cache_id) == subject.record(2)


async def test_a_revision_that_is_no_number_is_an_error(
    server: RedisServer, store: CacheStore, root: Redis
) -> None:
    """Data that is not ours is refused, never guessed at."""
    subject = Subject(store, server.cache_id)
    await root.hset(subject.name().record_key, mapping={"revision": "x", "changes": "1"})
    with pytest.raises(StoreRefused):
        await store.find(subject.name())


async def test_an_emptied_server_never_comes_to_marks_seen_before(
    server: RedisServer, store: CacheStore, root: Redis
) -> None:
    """A write that was under way when everything was lost, a retraction too, is not let in afterwards."""
    subject = Subject(store, server.cache_id)
    await store.publish_record(subject.record(1))
    before = (await store.find(subject.name())).marks
    assert before is not None
    await root.flushall()
    await store.publish_record(subject.record(1))
    after = (await store.find(subject.name())).marks
    assert after is not None
    assert abs(after.changes - before.changes) > 1000
    assert not await store.write(subject.name(), b"late", 60, before)


async def test_scripts_come_back_after_a_restart(server: RedisServer, store: CacheStore, root: Redis) -> None:
    """A server that has lost its scripts is given them again."""
    subject = Subject(store, server.cache_id)
    await store.publish_record(subject.record(1))
    marks = (await store.find(subject.name())).marks
    assert marks is not None
    assert await store.write(subject.name(), b"x", 60, marks)
    await root.script_flush()
    assert await store.write(subject.name(), b"y", 60, marks)


async def test_a_server_that_came_back_is_used_again(
    server: RedisServer, store: CacheStore, root: Redis
) -> None:
    """Connections that died with a server are replaced without an error to any caller."""
    await asyncio.gather(*(store.ping() for _ in range(8)))
    await root.aclose()
    await asyncio.to_thread(server.restart)
    await asyncio.gather(*(store.ping() for _ in range(8)))


async def test_a_wrong_password_is_refused(server: RedisServer) -> None:
    """It is told apart from a server that is away, and the message holds no password."""
    store = open_cache_store(server.url("gateway").replace(":gateway@", ":hunter2@"))
    with pytest.raises(StoreRefused) as caught:
        await store.ping()
    await store.aclose()
    assert "hunter2" not in str(caught.value)


async def test_nobody_listening_is_unavailable() -> None:
    """A refused connection is an error at once."""
    store = open_cache_store("redis://gateway:hunter2@127.0.0.1:1/0")
    with pytest.raises(StoreUnavailable) as caught:
        await store.ping()
    await store.aclose()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "127.0.0.1:6379", "http://host", "redis://host:port"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    """When the store is opened, before any request."""
    with pytest.raises(InvalidInput):
        open_cache_store(url)


async def test_a_frozen_server_takes_bounded_time_and_connections(
    server: RedisServer, store: CacheStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call ends by its deadline, connections stay bounded, and all is well once the server goes on."""
    monkeypatch.setattr(redis_client, "COMMAND_TIMEOUT_SECONDS", 0.2)
    await asyncio.gather(*(store.ping() for _ in range(4)))
    server.freeze()
    try:
        started = time.monotonic()
        results = await asyncio.gather(*(store.ping() for _ in range(200)), return_exceptions=True)
        assert all(isinstance(result, StoreUnavailable) for result in results)
        assert time.monotonic() - started < 6  # each in turn would take longer than that on any machine
        assert server.connections() <= redis_client.MAX_CONNECTIONS
    finally:
        server.thaw()
    for number in range(200):
        subject = Subject(store, server.cache_id)
        found = await store.find(subject.name(f"{number:064x}"))
        assert found.value is None


async def test_a_longer_budget_waits_longer(
    server: RedisServer, store: CacheStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked for with more patience is still waited for when other calls are given up."""
    monkeypatch.setattr(redis_client, "COMMAND_TIMEOUT_SECONDS", 0.2)
    patient = open_cache_store(server.url("gateway"), call_seconds=PATIENCE_SECONDS)
    server.freeze()
    try:
        waiting = asyncio.create_task(patient.ping())
        with pytest.raises(StoreUnavailable):
            await store.ping()
        assert not waiting.done()
    finally:
        server.thaw()
    await waiting
    await patient.aclose()


async def test_what_a_full_server_evicted_is_told_to_the_operator(server: RedisServer, root: Redis) -> None:
    """And what had its time out, so that one which is too small can be told from one that is just full."""
    used = int((await root.info("memory"))["used_memory"])
    store = open_record_store(server.url("operator"))
    await root.config_resetstat()
    await root.config_set("maxmemory-policy", "volatile-lfu")
    await root.config_set("maxmemory", used + 2 * 1024 * 1024)
    try:
        for number in range(400):
            await root.set(f"filler-{number}", b"!" * 16_384, ex=3600)
        facts = await store.read_server()
        assert facts is not None
        assert facts.evicted_keys > 200
        assert facts.evicted_share > 0.9
    finally:
        await root.config_set("maxmemory", 0)
        await root.config_set("maxmemory-policy", "noeviction")
        await store.aclose()
