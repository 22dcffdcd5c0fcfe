"""Whatever breaks at any step of a cache's life, it ends in the same keyspaces, and nothing wrong is served.

With a real store, the layers and janitor of real gateways, and passes of the operator on an API server in
memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from cachewright.kube.memory import MemoryKube
from tests.support.redis_servers import RedisServer, run_redis
from tests.support.rotation_story import TROUBLES, tell
from tests.support.rotation_world import RotationWorld


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    """Give one store for all stories; each has a cache id of its own."""
    with run_redis("valkey") as running:
        yield running


@pytest.fixture
async def world(redis: RedisServer) -> AsyncIterator[RotationWorld]:
    """Give an API server with nothing in it yet."""
    made = RotationWorld(MemoryKube(), redis, "ml")
    yield made
    await made.end()


@pytest.mark.parametrize("name", TROUBLES)
async def test_whatever_goes_wrong_the_story_ends_the_same(world: RotationWorld, name: str) -> None:
    """No answer in another version's keyspace, nothing in use deleted, nothing dead revived; it goes on."""
    await tell(world, TROUBLES[name])
