"""The story of a cache on a real API server, with the troubles that its own ways of writing may add to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from cachewright.kube.client import KubeApi
from tests.support.redis_servers import RedisServer, run_redis
from tests.support.rotation_story import TROUBLES, tell
from tests.support.rotation_world import RotationWorld

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    """Give one store for all stories; each has a cache id of its own."""
    with run_redis("valkey") as running:
        yield running


@pytest.fixture
async def world(kube_api: KubeApi, namespace: str, redis: RedisServer) -> AsyncIterator[RotationWorld]:
    """Give a namespace with nothing in it yet."""
    made = RotationWorld(kube_api, redis, namespace)
    yield made
    await made.end()


async def test_an_operator_that_dies_after_each_write_comes_to_the_same(world: RotationWorld) -> None:
    """As on an API server in memory, with defaults, field managers and versions as they really are."""
    await tell(world, TROUBLES["operator dies after each write"])
