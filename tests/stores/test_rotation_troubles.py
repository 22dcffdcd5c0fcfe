"""Whatever breaks at any step of a cache's life, it ends in the same keyspaces, and nothing wrong is served.

With a real store, the layers and janitor of real gateways, and passes of the operator on an API server in
memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from cachewright.errors import StoreRefused
from cachewright.keys.digest import key_pattern
from cachewright.keys.keyspaces import Keyspace
from cachewright.kube.memory import MemoryKube
from cachewright.kube.protocol import INFERENCE_CACHES
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
    """Give an API server with nothing in it yet, and a store that remembers no cache of an earlier test."""
    made = RotationWorld(MemoryKube(), redis, "ml")
    for key in list(made.client.scan_iter(match=key_pattern("*"), count=1000)):
        made.client.delete(key)
    yield made
    await made.end()


@pytest.mark.parametrize("name", TROUBLES)
async def test_whatever_goes_wrong_the_story_ends_the_same(world: RotationWorld, name: str) -> None:
    """No answer in another version's keyspace, nothing in use deleted, nothing dead revived; it goes on."""
    await tell(world, TROUBLES[name])


async def test_space_that_cannot_be_reclaimed_is_told_until_it_is(world: RotationWorld) -> None:
    """From what the janitor reports in the store to the condition, and back."""
    locked = True

    async def drop(_keyspace: Keyspace) -> None:
        if locked:
            raise StoreRefused("table is locked")

    world.drops["Exact"] = drop
    await world.begin("1")
    await world.edit(rotation={"maxRetained": 0})
    await world.roll("1", "2")
    assert (await world.conditions())["RotationComplete"] == "False ReclaimFailed"
    assert (await world.conditions())["Ready"].startswith("True")
    (past,) = (await world.record()).past
    told = (await world.child(INFERENCE_CACHES, "demo"))["status"]["conditions"]
    (message,) = (each["message"] for each in told if each["type"] == "RotationComplete")
    assert str(past.keyspace) in message
    assert "table is locked" in message
    locked = False
    await world.settle()  # the janitor works
    await world.settle()  # the operator hears of it
    assert (await world.record()).past == ()
    assert (await world.conditions())["RotationComplete"] == "True Switched"


async def test_a_store_that_fills_up_keeps_the_latest_for_the_way_back(world: RotationWorld) -> None:
    """What is older goes, by what a real server says of its memory; the condition stays while it is full."""
    await world.begin("1")
    for version in (2, 3, 4):
        await world.roll(str(version - 1), str(version))
    assert [past.model_version for past in (await world.record()).past] == ["1", "2", "3"]
    world.client.setrange("ballast", 8 * 1024 * 1024, b"!")  # beside it, connections take little
    used = int(world.client.info("memory")["used_memory"])
    try:
        world.client.config_set("maxmemory", int(used / 0.95))
        await world.settle()
        assert [past.model_version for past in (await world.record()).past] == ["3"]
        assert (await world.conditions())["MemoryPressure"] == "True StoreNearlyFull"
    finally:
        world.client.config_set("maxmemory", 0)
        world.client.delete("ballast")
    await world.settle()
    assert "MemoryPressure" not in await world.conditions()
    await world.roll("4", "3")
    assert (await world.conditions())["RotationComplete"] == "True RolledBack"
