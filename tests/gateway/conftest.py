"""A gateway in front of the stand-in engine, with a real store."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from e2e.engine import Engine
from tests.gateway.harness import Gateway, root_client, running
from tests.support.postgres_servers import PostgresServer
from tests.support.redis_servers import RedisServer, run_redis


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    """One server for all tests that leave it running."""
    with run_redis("valkey") as server:
        yield server


@pytest.fixture
async def redis(shared_redis: RedisServer) -> RedisServer:
    """The shared server, emptied."""
    async with root_client(shared_redis) as client:
        await client.flushall()
    return shared_redis


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server that a test may freeze or kill."""
    with run_redis("valkey") as server:
        yield server


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    """The stand-in engine."""
    async with Engine(port=0) as started:
        yield started


@pytest.fixture
def mounts(tmp_path: Path, redis: RedisServer, engine: Engine) -> Gateway:
    """A gateway that is not started yet, so that a test can change its mounts first."""
    return Gateway(tmp_path, redis, engine.url)


@pytest.fixture
async def gateway(mounts: Gateway) -> AsyncIterator[Gateway]:
    """A running gateway."""
    async with running(mounts):
        yield mounts


@pytest.fixture
def dsn(postgres: PostgresServer) -> Iterator[str]:
    """Return the connection string of an empty database."""
    name = f"test_{time.monotonic_ns()}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield postgres.dsn(database=name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
