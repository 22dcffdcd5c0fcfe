"""What only PostgreSQL can get wrong: extension, rights, locks, large partitions, TLS, a full disk."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from cachewright.errors import (
    InvalidInput,
    SpaceNotFound,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    StoreUnfit,
)
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores import postgres_link, postgres_sql, postgres_vectors
from cachewright.stores.postgres_vectors import PostgresVectorStore
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import Quantization, VectorSpace
from tests.support.postgres_servers import PostgresServer, run_postgres
from tests.support.postgres_tls import TlsProxy
from tests.support.redis_topologies import make_certificates
from tests.support.vectors import NOW, VectorSubject, near, random_vector, vector_entry
from tests.support.waiting import until

TENANT, PARTITION = "tenant-a", "partition-1"


@pytest.fixture
async def subject(postgres: PostgresServer) -> AsyncIterator[VectorSubject]:
    """A store on the shared server."""
    found = VectorSubject(open_vector_store(postgres.dsn()))
    await found.store.check()
    yield found
    for keyspace in await found.store.list_spaces(found.cache_id):
        await found.store.drop(found.cache_id, keyspace)
    await found.store.aclose()


@pytest.fixture
async def admin(postgres: PostgresServer) -> AsyncIterator[psycopg.AsyncConnection[tuple[object, ...]]]:
    """A connection of the administrator's own."""
    async with await psycopg.AsyncConnection.connect(postgres.dsn(), autocommit=True) as connection:
        yield connection


Admin = psycopg.AsyncConnection[tuple[object, ...]]


async def make_database(postgres: PostgresServer, admin: Admin) -> tuple[str, str]:
    """Make a database and a user who may log in and nothing else; returns the user's DSN and the admin's."""
    name = f"test_{secrets.token_hex(4)}"
    await admin.execute(SQL("CREATE ROLE {} LOGIN PASSWORD 'user-password'").format(Identifier(name)))
    await admin.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    return postgres.dsn(name, "user-password", name), postgres.dsn(database=name)


async def test_the_extension_is_asked_for_by_name(postgres: PostgresServer, admin: Admin) -> None:
    """A user who may not install it is told what to let a superuser run; then all is well."""
    user_dsn, admin_dsn = await make_database(postgres, admin)
    store = open_vector_store(user_dsn)
    with pytest.raises(StoreUnfit, match="CREATE EXTENSION vector"):
        await store.check()
    superuser = open_vector_store(admin_dsn)
    assert "pgvector 0.8" in (await superuser.check()).version
    await superuser.aclose()
    assert (await store.check()).product == "PostgreSQL"
    await store.aclose()


async def test_many_install_the_extension_at_once(postgres: PostgresServer, admin: Admin) -> None:
    """All gateways of a cache check at their start."""
    _, admin_dsn = await make_database(postgres, admin)
    store = open_vector_store(admin_dsn)
    await asyncio.gather(*(store.check() for _ in range(6)))
    await store.aclose()


async def test_an_old_extension_is_unfit(subject: VectorSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without iterative scans a tenant would find its own entries only by luck."""
    monkeypatch.setattr(postgres_vectors, "MIN_PGVECTOR", (99, 1))
    with pytest.raises(StoreUnfit, match=r"pgvector 99\.1 or newer .* ALTER EXTENSION vector UPDATE"):
        await subject.store.check()


async def test_a_user_who_may_not_make_tables_is_refused(postgres: PostgresServer, admin: Admin) -> None:
    """With PostgreSQL's own words."""
    user_dsn, admin_dsn = await make_database(postgres, admin)
    superuser = open_vector_store(admin_dsn)
    await superuser.check()
    await superuser.aclose()
    user = VectorSubject(open_vector_store(user_dsn))
    with pytest.raises(StoreRefused, match="permission denied for schema public"):
        await user.opened()
    await user.store.aclose()


async def test_a_table_without_our_marker_is_left_alone(subject: VectorSubject, admin: Admin) -> None:
    """Somebody's table may have any name; neither filled nor dropped nor listed."""
    space = subject.space()
    await admin.execute(SQL("CREATE TABLE {} (a int)").format(Identifier(space.name)))
    with pytest.raises(StoreRefused, match="no marker of ours"):
        await subject.ensure(space)
    with pytest.raises(StoreRefused, match="no marker of ours"):
        await subject.store.drop(subject.cache_id, space.keyspace)
    assert await subject.store.list_spaces(subject.cache_id) == []
    await admin.execute(SQL("DROP TABLE {}").format(Identifier(space.name)))


async def test_a_marker_of_another_cache_protects(subject: VectorSubject, admin: Admin) -> None:
    """Names hold a part of the cache's id; the marker holds all of it, and decides."""
    space = await subject.opened()
    marker = await subject.store.read_marker(space)
    await admin.execute(
        postgres_sql.comment_statement(space.name, replace(marker, cache_id="f" * 16)).as_string(admin)
    )
    with pytest.raises(StoreRefused, match="marker of this cache"):
        await subject.store.drop(subject.cache_id, space.keyspace)
    with pytest.raises(StoreRefused, match="not this cache's"):
        await subject.ensure(space)
    await admin.execute(SQL("DROP TABLE {}").format(Identifier(space.name)))


async def test_dropping_does_not_wait_for_ever(
    subject: VectorSubject, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds the table is waited for a while; then it is kept, and dropped the next time."""
    monkeypatch.setattr(postgres_vectors, "LOCK_TIMEOUT", "100ms")
    space = await subject.opened()
    async with admin.transaction():
        await admin.execute(SQL("SELECT count(*) FROM {}").format(Identifier(space.name)))
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            await subject.store.drop(subject.cache_id, space.keyspace)
        assert await subject.store.count(space) == 0
    assert await subject.store.drop(subject.cache_id, space.keyspace)


async def test_a_maker_killed_midway_leaves_nothing(subject: VectorSubject) -> None:
    """Table, indexes and marker are one transaction."""
    space = subject.space()
    making = asyncio.create_task(subject.ensure(space))
    await asyncio.sleep(0)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    with pytest.raises(SpaceNotFound):
        await subject.store.read_marker(space)
    await subject.ensure(space)


@pytest.mark.parametrize("quantization", list(Quantization))
@pytest.mark.parametrize("dimensions", [32, 2100])
async def test_a_large_partition_is_searched_by_its_graph(
    subject: VectorSubject, monkeypatch: pytest.MonkeyPatch, quantization: Quantization, dimensions: int
) -> None:
    """With exact scores, also where the graph holds rounded vectors, and nothing of others or expired."""
    monkeypatch.setattr(postgres_vectors, "EXACT_MOST", 10)
    space = replace(subject.space(dimensions=dimensions), quantization=quantization)
    await subject.ensure(space)
    asked = random_vector("asked", dimensions)
    await subject.store.put(space, vector_entry("expired", asked, ttl_seconds=-1))
    for n in range(20):
        vector = near(asked, 0.95 - n / 40, n)
        await subject.store.put(space, vector_entry(n, vector))
        await subject.store.put(space, vector_entry(n, asked, tenant="tenant-b"))
        await subject.store.put(space, vector_entry(("other", n), asked, partition="partition-2"))
    for _ in range(2):  # the second time it is known to be large
        hits = await subject.store.search(space, asked, TENANT, PARTITION, NOW)
        assert [hit.question for hit in hits] == [f"Question {n}?" for n in range(5)]
        assert [hit.score for hit in hits] == pytest.approx([0.95 - n / 40 for n in range(5)], abs=1e-4)
        assert {hit.id.tenant_tag for hit in hits} == {TENANT}
    assert isinstance(subject.store, PostgresVectorStore)
    assert list(subject.store._large) == [(space.name, TENANT, PARTITION)]


async def test_what_is_known_to_be_large_is_bounded(
    subject: VectorSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest is forgotten, which costs it one exact search."""
    monkeypatch.setattr(postgres_vectors, "EXACT_MOST", 1)
    monkeypatch.setattr(postgres_vectors, "LARGE_PARTITIONS", 2)
    space = await subject.opened()
    for n in range(3):
        for twice in range(2):
            await subject.store.put(space, vector_entry((n, twice), partition=f"partition-{n}"))
        await subject.store.search(space, random_vector(1), TENANT, f"partition-{n}", NOW)
    assert isinstance(subject.store, PostgresVectorStore)
    assert [partition for *_, partition in subject.store._large] == ["partition-1", "partition-2"]


async def test_too_many_dimensions_for_a_graph_are_searched_exactly(subject: VectorSubject) -> None:
    """Embedders with 4,096 dimensions exist; pgvector indexes up to 4,000."""
    space = subject.space(dimensions=4096)
    await subject.ensure(space)
    assert postgres_sql.graph_search(space) is None
    asked = random_vector("asked", 4096)
    await subject.store.put(space, vector_entry(1, near(asked, 0.9)))
    (hit,) = await subject.store.search(space, asked, TENANT, PARTITION, NOW)
    assert hit.score == pytest.approx(0.9, abs=1e-4)


async def test_settings_of_a_search_do_not_stay(
    subject: VectorSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler hands the connection to somebody else."""
    monkeypatch.setattr(postgres_vectors, "EXACT_MOST", 1)
    space = await subject.opened()
    for n in range(3):
        await subject.store.put(space, vector_entry(n))
    await subject.store.search(space, random_vector(1), TENANT, PARTITION, NOW)
    assert isinstance(subject.store, PostgresVectorStore)
    async with subject.store._link.use("look") as connection:
        (value,) = await (await connection.execute("SHOW hnsw.iterative_scan")).fetchone() or ("",)
    assert value == "off"


async def test_large_tables_are_counted_by_estimate(
    subject: VectorSubject, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As good as the server's statistics; a tenant's entries are always counted."""
    monkeypatch.setattr(postgres_vectors, "COUNTED_MOST", 5)
    space = await subject.opened()
    for n in range(10):
        await subject.store.put(space, vector_entry(n))
    assert await subject.store.count(space) == 10
    await admin.execute(SQL("ANALYZE {}").format(Identifier(space.name)))
    await subject.store.remove(space, [vector_entry(1).id])
    assert await subject.store.count(space) == 10
    assert await subject.store.count(space, TENANT) == 9


async def test_names_are_identifiers(subject: VectorSubject) -> None:
    """A cache id that a person chose is hashed in the name; the marker holds it as it is."""
    space = VectorSpace('my"; DROP TABLE x; --', Keyspace("ab" * 8, 10**17), 8)
    assert len(space.name) <= 63
    await subject.ensure(space)
    assert (await subject.store.read_marker(space)).cache_id == space.cache_id
    assert await subject.store.list_spaces(space.cache_id) == [space.keyspace]
    assert await subject.store.drop(space.cache_id, space.keyspace)


async def test_a_full_disk_fails_writes_and_no_reads() -> None:
    """Searching goes on and storing says so; removing makes room."""
    with run_postgres(max_file_kb=17_000) as server:  # just above a file of the write-ahead log
        subject = VectorSubject(open_vector_store(server.dsn()))
        await subject.store.check()
        space = await subject.opened()

        async def fill() -> None:
            for number in range(100):
                entry = replace(vector_entry(number), body=secrets.token_bytes(400_000))
                await subject.store.put(space, entry)

        with pytest.raises(StoreError, match="could not extend file"):
            await fill()
        assert await subject.store.search(space, random_vector(1), TENANT, PARTITION, NOW)
        assert await subject.store.evict_oldest(space, 10) == 10
        await subject.store.aclose()


@pytest.mark.parametrize(
    "dsn",
    ["postgresql://user:secret@host:port/db", "postgresql://user:secret@host/db?no_such_option=1"],
)
def test_a_dsn_that_is_not_one_is_refused(dsn: str) -> None:
    """Without repeating it."""
    with pytest.raises(InvalidInput) as refused:
        open_vector_store(dsn)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


async def test_a_server_is_verified_over_tls(postgres: PostgresServer, tmp_path: Path) -> None:
    """With the authority that is given; a server that it does not vouch for, or none at all, is refused."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    ca_file, other_ca_file = make_certificates(ours), make_certificates(theirs)
    async with TlsProxy(postgres.port, ours / "server.crt", ours / "server.key") as proxy:
        dsn = postgres.dsn().replace(str(postgres.port), str(proxy.port))
        store = open_vector_store(dsn, ca_file=str(ca_file))
        assert (await store.check()).product == "PostgreSQL"
        await store.aclose()
        assert proxy.encrypted == 1
        store = open_vector_store(dsn, ca_file=str(other_ca_file))
        with pytest.raises(StoreRefused, match="certificate verify failed"):
            await store.check()
        await store.aclose()
    store = open_vector_store(postgres.dsn(), ca_file=str(ca_file))
    with pytest.raises(StoreRefused, match="SSL"):
        await store.check()
    await store.aclose()


async def test_connections_are_shared_and_few(postgres: PostgresServer) -> None:
    """Callers wait for a free one; whoever waits too long gets an error and leaves nothing behind."""
    link = postgres_link.open_link(postgres.dsn(), max_connections=2)

    async def ask() -> int:
        async with link.use("ask") as connection:
            ((process,),) = await (await connection.execute("SELECT pg_backend_pid()")).fetchall()
            return int(process)

    assert len(set(await asyncio.gather(*(ask() for _ in range(20))))) == 2
    async with link.use("hold"), link.use("hold"):
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.05 s"):
            async with link.use("wait", seconds=0.05):
                raise AssertionError
    await ask()
    await link.aclose()


async def test_a_call_that_was_given_up_ends_on_the_server(postgres: PostgresServer, admin: Admin) -> None:
    """By the statement timeout that each connection has: nothing runs on for nobody."""
    link = postgres_link.open_link(f"{postgres.dsn()}?application_name=given-up")

    async def sleep() -> None:
        async with link.use("sleep") as connection:
            await connection.execute("SELECT pg_sleep(60)")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await sleep()

    async def gone() -> bool:
        query = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'given-up' AND state = 'active'"
        return await (await admin.execute(query)).fetchone() is None

    await until(gone)
    with pytest.raises(StoreError):
        await sleep()
    await link.aclose()
