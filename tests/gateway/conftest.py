"""A gateway in front of the stand-in engine, with a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from e2e.engine import Engine
from tests.gateway.harness import Gateway, root_client, running
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
