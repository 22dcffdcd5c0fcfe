"""What status says of external stores, within one pass over real servers: which store, and what is wrong."""

from __future__ import annotations

import asyncio
import base64
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from cachewright.errors import StoreError
from cachewright.gateway.probing import ProbeDuty
from cachewright.kube.events import KubeEvents
from cachewright.kube.memory import MemoryKube
from cachewright.kube.protocol import INFERENCE_CACHES
from cachewright.policy.document import PostgresPolicy
from cachewright.reconcile.service import Outcome, Reconciler
from cachewright.reconcile.settings import OperatorSettings
from cachewright.render.settings import RenderSettings
from cachewright.stores.redis_record import open_record_store
from tests.gateway.harness import running
from tests.gateway.semantic import SemanticGateway, embedding_server
from tests.support.caches import cache_document
from tests.support.postgres_servers import PostgresServer, run_postgres
from tests.support.postgres_tls import TlsProxy
from tests.support.proxies import Proxy
from tests.support.qdrant_servers import GivenServer, QdrantServer
from tests.support.redis_servers import RedisServer, run_redis
from tests.support.redis_topologies import Topology, make_certificates
from tests.support.small_disks import fill, small_disk
from tests.support.vectors import vector_entry
from tests.support.waiting import until


class HttpsProxy(TlsProxy):
    """TLS from the first byte on."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Say nothing: the handshake is over."""


@dataclass
class World:
    """One object with external stores, in a cluster that is a dictionary, and passes over it."""

    redis_url: str
    qdrant_url: str
    qdrant_key: str
    dsn: str
    store: str = "Qdrant"
    ca: str = ""
    """PEM for Qdrant and PostgreSQL."""
    redis_ca: str = ""
    """PEM for Redis."""
    replicas: int = 2
    monotonic: float = 0.0
    namespace: str = "ml"
    name: str = "demo"
    cache_id: str | None = None
    kube: MemoryKube = field(default_factory=MemoryKube)

    def __post_init__(self) -> None:
        self.reconciler = Reconciler(
            kube=self.kube,
            settings=OperatorSettings(render=RenderSettings(gateway_image="cachewright:test")),
            clock=lambda: datetime.now(UTC),
            events=KubeEvents(self.kube, "test-operator", lambda: datetime.now(UTC)),
            open_record_store=open_record_store,
            monotonic=lambda: self.monotonic,
        )

    async def apply(self) -> None:
        """Write the object and its Secrets as they are wanted now."""
        secrets = {"redis": self.redis_url, "qdrant": self.qdrant_key, "pg": self.dsn, "ca": self.ca}
        secrets["redis-ca"] = self.redis_ca
        for name, value in secrets.items():
            labels = {"cachewright.dev/use": "true"}
            metadata = {"name": name, "namespace": self.namespace, "labels": labels}
            data = {"value": base64.b64encode(value.encode()).decode()}
            await self.kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

        def ref(name: str) -> dict[str, str]:
            return {"name": name, "key": "value"}

        ca = {"caSecretRef": ref("ca")} if self.ca else {}
        redis_ca = {"caSecretRef": ref("redis-ca")} if self.redis_ca else {}
        qdrant_ca = ca if self.qdrant_url.startswith("https") else {}
        stores = {
            "redis": {"external": {"urlSecretRef": ref("redis"), **redis_ca}},
            "qdrant": {"external": {"url": self.qdrant_url, "apiKeySecretRef": ref("qdrant"), **qdrant_ca}},
            "postgres": {"external": {"dsnSecretRef": ref("pg"), **ca}},
        }
        layers = {
            "exact": {},
            "semantic": {"store": self.store},
            "embedding": {"cold": "Postgres"},
        }
        parts: dict[str, Any] = {"stores": stores, "layers": layers, "embedder": {"builtin": {}}}
        parts["gateway"] = {"replicas": self.replicas}
        if self.cache_id is not None:
            parts["cacheID"] = self.cache_id
        document = cache_document(self.name, self.namespace, spec=parts)
        del document["metadata"]["uid"]
        await self.kube.apply(document)

    async def reconcile(self) -> Outcome:
        """Run one pass."""
        return await self.reconciler.reconcile(self.namespace, self.name)

    async def told(self) -> tuple[str, str, str]:
        """Apply, run one pass, and return status, reason and sentence of StoresReady."""
        await self.apply()
        await self.reconcile()
        return await self.stores_ready()

    async def is_well(self) -> bool:
        """Tell whether a pass finds all stores well: not on a machine where they answer too late."""
        self.monotonic += 60
        return (await self.told())[:2] == ("True", "Ready")

    async def stores_ready(self) -> tuple[str, str, str]:
        """Return status, reason and sentence of StoresReady as they stand."""
        document = await self.kube.get(INFERENCE_CACHES, self.namespace, self.name)
        assert document is not None
        conditions = {each["type"]: each for each in document["status"]["conditions"]}
        found = conditions["StoresReady"]
        return found["status"], found["reason"], found["message"]


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    """A server of the test's own: some turn it into a replica."""
    with run_redis("valkey") as running:
        yield running


@pytest.fixture
def world(redis: RedisServer, qdrant: QdrantServer | GivenServer, postgres: PostgresServer) -> World:
    """All stores well."""
    return World(redis.url("root"), qdrant.url, qdrant.api_key or "", postgres.dsn())


def closed_port() -> int:
    """Return a port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_stores_that_are_well_are_ready_and_are_asked_again_after_a_minute(world: World) -> None:
    """One pass is enough to know; the next look comes by itself, since nothing tells of a store's end."""
    await until(world.is_well, seconds=60)
    outcome = await world.reconcile()
    assert outcome.requeue_after_seconds == pytest.approx(60)


async def test_each_store_is_named_with_what_is_wrong(world: World) -> None:
    """Wrong password, wrong key, nobody there: within one pass after the Secret or the URL changed."""
    dsn, redis_url, qdrant_url, key = world.dsn, world.redis_url, world.qdrant_url, world.qdrant_key
    port = closed_port()

    world.dsn = dsn.replace("postgres-test-password", "wrong")
    status, reason, message = await world.told()
    assert (status, reason) == ("False", "StoreRefused")
    assert message.startswith("PostgreSQL: ")
    assert "password authentication failed" in message

    world.dsn = dsn.replace("127.0.0.1", "nobody.invalid")
    status, reason, message = await world.told()
    assert (status, reason) == ("False", "StoreUnreachable")
    assert "nobody.invalid" in message
    assert "postgres-test-password" not in message

    world.dsn, world.qdrant_key = dsn, "wrong"
    status, reason, message = await world.told()
    assert (status, reason) == ("False", "StoreRefused")
    assert message.startswith("Qdrant: ")
    assert "401" in message

    world.qdrant_key, world.qdrant_url = key, f"http://127.0.0.1:{port}"
    status, reason, message = await world.told()
    assert (status, reason, message[:8]) == ("False", "StoreUnreachable", "Qdrant: ")

    world.qdrant_url, world.redis_url = qdrant_url, redis_url.replace("root:root", "root:wrong")
    status, reason, message = await world.told()
    assert (status, reason, message[:7]) == ("False", "StoreRefused", "Redis: ")

    world.redis_url = f"redis://127.0.0.1:{port}"
    status, reason, message = await world.told()
    assert (status, reason, message[:7]) == ("False", "StoreUnreachable", "Redis: ")

    world.redis_url = "not a URL"
    status, reason, message = await world.told()
    assert (status, reason, message[:7]) == ("False", "SecretInvalid", "Redis: ")

    world.redis_url = redis_url
    await until(world.is_well, seconds=60)


async def test_trouble_is_looked_at_again_within_seconds_and_ends_by_itself(
    world: World, qdrant: QdrantServer
) -> None:
    """A store that goes is told of after a minute at most, and its return within five seconds."""
    async with Proxy(int(qdrant.url.rsplit(":", 1)[1])) as proxy:
        world.qdrant_url = f"http://127.0.0.1:{proxy.port}"
        await until(world.is_well, seconds=60)
    await world.reconcile()
    assert (await world.stores_ready())[0] == "True", "it was well less than a minute ago"
    world.monotonic += 60
    outcome = await world.reconcile()
    assert (await world.stores_ready())[:2] == ("False", "StoreUnreachable")
    assert outcome.requeue_after_seconds is not None
    assert outcome.requeue_after_seconds <= 5
    assert not outcome.retry, "the queue's back-off is for the API server"
    world.qdrant_url = qdrant.url
    await until(world.is_well, seconds=60)


async def test_a_frozen_server_holds_up_no_pass(world: World, qdrant: QdrantServer) -> None:
    """A pass ends within the time limits of the stores, and says that nobody answers."""
    async with Proxy(int(qdrant.url.rsplit(":", 1)[1])) as proxy:
        proxy.swallow = True
        world.qdrant_url = f"http://127.0.0.1:{proxy.port}"
        started = time.monotonic()
        status, reason, message = await world.told()
        assert time.monotonic() - started < 60
    assert (status, reason) == ("False", "StoreUnreachable")
    assert "no answer within" in message


async def test_certificates_are_verified_and_the_authority_is_named_as_the_cause(
    world: World, qdrant: QdrantServer, postgres: PostgresServer, tmp_path: Path
) -> None:
    """The right authority is enough; another one is named as the cause, and so is what is no certificate."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
        make_certificates(folder)
    certificate = (ours / "server.crt", ours / "server.key")
    async with (
        TlsProxy(postgres.port, *certificate) as database,
        HttpsProxy(int(qdrant.url.rsplit(":", 1)[1]), *certificate) as vectors,
    ):
        world.dsn = world.dsn.replace(str(postgres.port), str(database.port))
        world.qdrant_url = f"https://127.0.0.1:{vectors.port}"
        world.ca = (ours / "ca.crt").read_text()
        await until(world.is_well, seconds=60)
        encrypted, plain = world.qdrant_url, qdrant.url
        for url, store in ((encrypted, "Qdrant: "), (plain, "PostgreSQL: ")):
            world.qdrant_url, world.ca = url, (theirs / "ca.crt").read_text()
            status, _, message = await world.told()
            assert (status, message[: len(store)]) == ("False", store)
            assert "certificate verify failed" in message, message
            world.ca = "hunter2"
            status, reason, message = await world.told()
            assert (status, reason, message[: len(store)]) == ("False", "SecretInvalid", store), message
            assert "hunter2" not in message


async def test_a_redis_with_an_unknown_authority_says_so(
    world: World, topologies: Callable[[str], Topology]
) -> None:
    """TLS without the authority that signed the server's certificate; with it in a Secret all is well."""
    plain, tls = world.redis_url, topologies("tls")
    assert tls.ca_file is not None
    world.redis_url = tls.url.partition("?")[0].replace("gateway:gateway", "root:root")
    status, reason, message = await world.told()
    assert (status, reason) == ("False", "StoreUnreachable")
    assert "certificate verify failed" in message
    world.redis_ca = tls.ca_file.read_text()
    await until(world.is_well, seconds=60)
    world.redis_url = plain
    status, reason, message = await world.told()
    assert (status, reason) == ("False", "SecretInvalid")
    assert "only schemes that begin with rediss speak TLS" in message


@pytest.mark.parametrize("kind", ["sentinel", "cluster", "unix"])
async def test_each_form_of_redis_is_told_alike(
    kind: str, world: World, topologies: Callable[[str], Topology]
) -> None:
    """Behind Sentinels, as a cluster, on a socket: well, a wrong password, and nobody there."""
    url = topologies(kind).url.replace("gateway:gateway", "root:root")
    world.redis_url = url
    await until(world.is_well, seconds=60)
    world.redis_url = url.replace("root:root", "root:hunter2")
    status, reason, message = await world.told()
    assert (status, reason, message[:7]) == ("False", "StoreRefused", "Redis: "), message
    assert "hunter2" not in message
    gone = {"sentinel": ("/mymaster", "/nobody"), "unix": (".sock", ".gone")}
    nobody = f"redis+cluster://root:root@127.0.0.1:{closed_port()}"
    world.redis_url = url.replace(*gone[kind]) if kind in gone else nobody
    status, reason, message = await world.told()
    assert (status, reason, message[:7]) == ("False", "StoreUnreachable", "Redis: "), message


async def test_a_replica_of_redis_is_unfit(world: World, redis: RedisServer) -> None:
    """It answers, and takes no writes."""
    await until(world.is_well, seconds=60)
    store = open_record_store(redis.url("root"))
    try:
        async with store._link.use("test") as client:  # type: ignore[attr-defined]
            await client.replicaof("127.0.0.1", closed_port())
            status, reason, message = await world.told()
            await client.replicaof("NO", "ONE")
    finally:
        await store.aclose()
    assert (status, reason) == ("False", "StoreUnfit")
    assert "replica" in message


async def test_an_eviction_policy_that_may_take_the_record_is_told_with_the_mend(
    world: World, redis: RedisServer
) -> None:
    """It warns, and makes nothing unready: whatever is evicted is written again."""
    store = open_record_store(redis.url("root"))
    try:
        async with store._link.use("test") as client:  # type: ignore[attr-defined]
            await client.config_set("maxmemory-policy", "allkeys-lru")
            status, reason, message = await world.told()
            document = await world.kube.get(INFERENCE_CACHES, world.namespace, world.name)
            await client.config_set("maxmemory-policy", "volatile-lfu")
    finally:
        await store.aclose()
    assert (status, reason) == ("False", "StorePolicyUnsafe")
    assert "CONFIG SET maxmemory-policy volatile-lfu" in message
    assert document is not None
    ready = next(each for each in document["status"]["conditions"] if each["type"] == "Ready")
    assert ready["reason"] != "StorePolicyUnsafe"
    await until(world.is_well, seconds=60)


async def test_a_redis_that_cannot_write_to_its_disk_says_so(world: World, redis: RedisServer) -> None:
    """After a snapshot that failed a server refuses writes; it is named while answers can still be read."""
    store = open_record_store(redis.url("root"))
    link = store._link  # type: ignore[attr-defined]

    async def is_saved(status: str) -> bool:
        async with link.use("test") as client:
            found = await client.info("persistence")
        return found["rdb_last_bgsave_status"] == status and not found["rdb_bgsave_in_progress"]

    try:
        in_the_way = redis.folder / "dump.rdb"
        in_the_way.mkdir()
        async with link.use("test") as client:
            await client.bgsave()
        await until(partial(is_saved, "err"))
        status, reason, message = await world.told()
        in_the_way.rmdir()
        async with link.use("test") as client:
            await client.bgsave()
        await until(partial(is_saved, "ok"))
    finally:
        await store.aclose()
    assert (status, reason) == ("False", "StoreRefused")
    assert message.startswith("Redis: rdb_last_bgsave_status is err: the server cannot write to its disk")
    await until(world.is_well, seconds=60)


async def test_what_a_database_lacks_is_told_with_the_mend(world: World, postgres: PostgresServer) -> None:
    """An old pgvector, a role that may make no tables, a read-only database, too few connections."""
    world.store = "Postgres"
    await until(world.is_well, seconds=60)
    async with await psycopg.AsyncConnection.connect(postgres.dsn(), autocommit=True) as admin:
        version = "UPDATE pg_extension SET extversion = %s WHERE extname = 'vector' RETURNING extversion"
        ask = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        real = await (await admin.execute(ask)).fetchone()
        await admin.execute(version, ["0.7.4"])
        world.monotonic += 60
        try:
            status, reason, message = await world.told()
        finally:
            await admin.execute(version, real)
        assert (status, reason) == ("False", "StoreUnfit")
        assert "pgvector 0.8 or newer is needed, and the database has 0.7.4" in message

        await admin.execute("CREATE ROLE told_reader LOGIN PASSWORD 'told'")
        world.dsn = postgres.dsn("told_reader", "told")
        status, reason, message = await world.told()
        assert (status, reason) == ("False", "StoreUnfit")
        assert "GRANT CREATE ON SCHEMA public TO told_reader" in message

        await admin.execute("ALTER ROLE told_reader SET default_transaction_read_only = on")
        world.monotonic += 60
        assert "read-only" in (await world.told())[2]
        await admin.execute("DROP ROLE told_reader")

    world.dsn, world.replicas = postgres.dsn(), 8
    status, reason, message = await world.told()
    assert (status, reason) == ("False", "TooFewConnections")
    assert "may open 128 connections" in message


async def test_a_standby_of_postgres_is_unfit(world: World) -> None:
    """A server in recovery answers, and takes no writes."""
    with run_postgres() as standby:
        standby.kill()
        (standby.folder / "data" / "standby.signal").touch()
        standby.restart()
        world.dsn = standby.dsn()
        status, reason, message = await world.told()
    assert (status, reason) == ("False", "StoreUnfit")
    assert "replica" in message


async def is_full(gateway: SemanticGateway) -> bool:
    """Keep some answers as the gateway does; tells whether all were refused, also those that are small."""
    current = gateway.process._parts_and_record()
    assert current is not None
    parts, record = current
    assert parts.space is not None
    assert parts.vectors is not None
    space = await parts.space.of(record.layers["Semantic"].keyspace)
    refused = 0
    for _ in range(20):
        entry = vector_entry(secrets.token_hex(8), dimensions=space.dimensions)
        try:
            await parts.vectors.put(space, entry)
        except StoreError:
            refused += 1
    return refused == 20


async def test_a_full_disk_of_postgres_is_told_with_its_cause(world: World, tmp_path: Path) -> None:
    """A gateway tries to write; what the database says stands in the condition until there is room again."""
    with run_redis("valkey") as redis, small_disk(200) as disk, run_postgres(disk=disk) as postgres:
        world.store, world.dsn = "Postgres", postgres.dsn()
        world.redis_url, world.cache_id = redis.url("root"), redis.cache_id
        async with embedding_server() as embeddings:
            gateway = SemanticGateway(tmp_path, redis, "http://127.0.0.1:1", embeddings)
            gateway.enact(semantic={"store": "Postgres"}, postgres=PostgresPolicy())
            gateway.mount("postgres/dsn", postgres.dsn())
            async with running(gateway):
                duty = ProbeDuty(gateway.process._parts_and_record)

                async def told() -> tuple[str, str, str]:
                    duty.connections_changed()
                    await duty.take_turn()
                    world.monotonic += 60
                    return await world.told()

                async def is_well() -> bool:
                    is_told = (await told())[:2] == ("True", "Ready")
                    current = gateway.process._parts_and_record()
                    # And the gateway keeps answers where the operator's record says.
                    return is_told and current is not None and current[1].revision > gateway.record.revision

                await until(is_well, seconds=60)
                assert not await is_full(gateway)
                ballast = fill(disk)
                await until(partial(is_full, gateway), seconds=60)
                status, reason, message = await told()
                assert (status, reason) == ("False", "LayerFailing")
                assert message.startswith("Layer Semantic: "), message
                assert "No space left on device" in message
                ballast.unlink()
                await until(is_well, seconds=60)
