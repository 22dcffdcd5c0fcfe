"""`cachewright janitor`, as a Job runs it: a process, a folder of mounts, real stores."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from cachewright.keys.credentials import MarkerName
from cachewright.keys.digest import key_id_of, key_prefix
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import RECORD_DATA_KEY, KeyspaceState
from cachewright.policy.document import (
    POLICY_DATA_KEY,
    GatewayPolicy,
    SweepPolicy,
    TenancyPolicy,
    UpstreamPolicy,
)
from cachewright.stores.embeddings import EmbeddingSpace
from cachewright.stores.postgres_embeddings import PostgresEmbeddingStore
from cachewright.stores.postgres_link import open_link
from cachewright.stores.redis_entries import open_cache_store
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import VectorSpace
from tests.stores.test_janitor import World
from tests.support.postgres_servers import PostgresServer
from tests.support.qdrant_servers import run_qdrant
from tests.support.redis_servers import RedisServer, run_redis
from tests.support.vectors import random_vector, vector_entry


@dataclass
class Ended:
    """How a command ended."""

    code: int
    told: dict[str, Any]
    complaint: str


async def janitor(*words: str) -> Ended:
    """Run the command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cachewright.cli",
        "janitor",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return Ended(process.returncode or 0, json.loads(out) if out else {}, err.decode())


def mount(folder: Path, path: str, text: str) -> None:
    """Write a file as kubelet would."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def mount_gateway(folder: Path, world: World, url: str, sweep: SweepPolicy | None = None) -> list[str]:
    """Write what a gateway has, but for secrets that a janitor does not need; returns the option."""
    policy = GatewayPolicy(
        cache="ml/support-bot",
        cache_id=world.cache_id,
        key_id=key_id_of("ab" * 32),
        binding="binding",
        model="llama",
        upstream=UpstreamPolicy(url="http://engine:8000/v1", timeout_seconds=20),
        tenancy=TenancyPolicy(mode="Single"),
        routes=(),
        exact=None,
        total_budget_seconds=5,
        sweep=sweep,
        max_cacheable_body_bytes=1,
        max_body_bytes=1,
    )
    mount(folder, f"policy/{POLICY_DATA_KEY}", policy.to_json())
    mount(folder, f"record/{RECORD_DATA_KEY}", world.record.to_json())
    mount(folder, "redis/url", url + "\n")
    return ["--config-dir", str(folder)]


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A store of one's own."""
    with run_redis("redis") as running:
        yield running


async def test_a_cache_without_gateways_is_tidied(tmp_path: Path, server: RedisServer) -> None:
    """What is being deleted goes, what is in use is counted, and the operator finds the report."""
    world = World(open_cache_store(server.url("gateway")), server.cache_id)
    deleting = await world.switch("a")
    await world.fill(deleting, 250)
    active = await world.switch("b")
    kept = await world.fill(active, 20)
    await world.give_up(KeyspaceState.DELETING, deleting)
    options = mount_gateway(tmp_path, world, server.url("gateway"))
    ended = await janitor(*options, "--rate", "100000")
    assert (ended.code, ended.complaint) == (0, "")
    assert ended.told == {
        "removed": 250,
        "reclaimed": [str(deleting)],
        "failed": {},
        "left": [],
        "entries": {str(active): 20, str(deleting): 0},
    }
    report = await world.report(deleting)
    assert report is not None
    assert report.state == "done"
    assert await world.left_of(kept) == 20
    await world.store.aclose()


async def test_what_is_not_done_is_told(tmp_path: Path, server: RedisServer) -> None:
    """Another janitor at work, or a store that is missing: the exit code says that something is left."""
    world = World(open_cache_store(server.url("gateway")), server.cache_id)
    deleting = await world.switch("a", "Semantic")
    await world.give_up(KeyspaceState.DELETING, deleting, layer="Semantic")
    options = mount_gateway(tmp_path, world, server.url("gateway"))
    assert await world.store.hold_janitor(world.cache_id, "somebody", 60)
    ended = await janitor(*options)
    assert (ended.code, ended.told["left"], ended.told["failed"]) == (1, [str(deleting)], {})
    assert await world.store.free_janitor(world.cache_id, "somebody")
    ended = await janitor(*options)
    assert (ended.code, ended.told["left"]) == (1, [str(deleting)])
    assert "is not configured" in ended.told["failed"][str(deleting)]
    await world.store.aclose()


async def test_time_ends(tmp_path: Path, server: RedisServer) -> None:
    """A turn that takes too long is given up, and says so."""
    world = World(open_cache_store(server.url("gateway")), server.cache_id)
    deleting = await world.switch("a")
    await world.fill(deleting, 500)
    await world.give_up(KeyspaceState.DELETING, deleting)
    options = mount_gateway(tmp_path, world, server.url("gateway"), SweepPolicy(keys_per_second=100))
    ended = await janitor(*options, "--timeout", "0.5")
    assert ended.code == 1
    assert "not done within 0.5 s" in ended.complaint
    await world.store.aclose()


async def test_a_deleted_cache_leaves_nothing_behind(tmp_path: Path, server: RedisServer) -> None:
    """Keys of every kind and spaces of vectors go; those of another cache and of others stay."""
    with run_qdrant() as qdrant:
        world = World(open_cache_store(server.url("gateway")), server.cache_id)
        names = await world.fill(await world.switch("a"), 120)
        names += await world.fill(await world.switch("b"), 120)
        await world.store.set_marker(MarkerName(world.cache_id, "7c" * 32), 600)
        await world.store.acquire_lock(names[0], "token", 600)
        await world.store.raise_generations(world.cache_id, ["d:manual"])
        other = secrets.token_hex(8)
        vectors = open_vector_store(qdrant.url, api_key=qdrant.api_key)
        spaces = [VectorSpace(cache, names[0].keyspace, 8) for cache in (world.cache_id, other)]
        for space in spaces:
            await vectors.ensure(space, "probe", random_vector("probe"))
            await vectors.put(space, vector_entry(1))
        async with Redis.from_url(server.url("root")) as root:
            foreign = {"session": b"x", names[0].key.replace(world.cache_id, other): b"x"}
            await root.mset(foreign)
            mount(tmp_path, "redis/url", server.url("gateway"))
            mount(tmp_path, "qdrant/api-key", qdrant.api_key)
            words = ["--delete-cache", world.cache_id, "--config-dir", str(tmp_path)]
            ended = await janitor(*words, "--qdrant-url", qdrant.url, "--rate", "100000")
            assert (ended.code, ended.complaint) == (0, "")
            assert ended.told == {
                "cacheID": world.cache_id,
                "spaces": 1,
                "keys": 240 + 64 + 2,
                "verified": True,
            }
            left = [key async for key in root.scan_iter(count=1000)]
            assert sorted(left) == sorted(key.encode() for key in foreign)
        assert await vectors.list_spaces(world.cache_id) == []
        assert await vectors.list_spaces(other) == [names[0].keyspace]
        await vectors.aclose()
        await world.store.aclose()


async def test_nothing_is_deleted_by_a_wrong_command(tmp_path: Path, server: RedisServer) -> None:
    """An id that is none, or a folder that names no store."""
    mount(tmp_path / "empty", "keep", "")
    for words, complaint in (
        (["--delete-cache", "*", "--config-dir", str(tmp_path)], "takes the 16 hex digits"),
        (["--delete-cache", "0" * 16, "--config-dir", str(tmp_path)], "names no store"),
        (["--config-dir", str(tmp_path)], "cannot be read"),
    ):
        ended = await janitor(*words)
        assert ended.code == 2
        assert complaint in ended.complaint
        assert "Traceback" not in ended.complaint
    mount(tmp_path, "redis/url", "redis://127.0.0.1:1/0")
    ended = await janitor("--delete-cache", "0" * 16, "--config-dir", str(tmp_path))
    assert ended.code == 1
    assert "a store did not do it" in ended.complaint
    assert key_prefix("0" * 16) not in ended.complaint
    assert server.connections() == 0


async def test_a_deleted_cache_leaves_no_tables(tmp_path: Path, postgres: PostgresServer) -> None:
    """Neither of vectors nor of embeddings; those of another cache stay."""
    cache_id, other, keyspace = secrets.token_hex(8), secrets.token_hex(8), Keyspace("a" * 16, 1)
    vectors, cold = open_vector_store(postgres.dsn()), PostgresEmbeddingStore(open_link(postgres.dsn()))
    await vectors.check()
    for cache in (cache_id, other):
        await vectors.ensure(VectorSpace(cache, keyspace, 8), "probe", random_vector("probe"))
        await cold.ensure(EmbeddingSpace(cache, keyspace))
    mount(tmp_path, "postgres/dsn", postgres.dsn())
    ended = await janitor("--delete-cache", cache_id, "--config-dir", str(tmp_path))
    assert (ended.code, ended.complaint) == (0, "")
    assert ended.told["spaces"] == 2
    assert [await store.list_spaces(cache_id) for store in (vectors, cold)] == [[], []]
    assert [await store.list_spaces(other) for store in (vectors, cold)] == [[keyspace], [keyspace]]
    for store in (vectors, cold):
        await store.drop(other, keyspace)
        await store.aclose()
