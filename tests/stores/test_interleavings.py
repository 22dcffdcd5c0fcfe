"""Nothing is served that is over, and nothing stored where it does not belong, in whatever order."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.redis_entries import open_cache_store
from tests.stores.backdoors import MemoryBackdoor, RedisBackdoor
from tests.stores.interleavings import World
from tests.support.redis_topologies import Topology

IS_SOAK = settings().max_examples >= 20_000
"""`--hypothesis-profile=soak`."""

SCHEDULES = 100_000 if IS_SOAK else 1000
"""On the store in memory."""

SCHEDULES_ON_REDIS = 2500 if IS_SOAK else 60

STEPS = st.binary(min_size=30, max_size=80)

HAPPENS = (
    "hits",
    "local hits",
    "write None",
    "write changed",
    "write readonly",
    "retractions",
    "revocations",
    "rollouts",
    "rollouts missed",
    "rollbacks",
    "failovers",
    "sweeps",
)
"""What all schedules together must have come to, or they tried nothing."""


@pytest.fixture
def seen() -> Iterator[Counter[str]]:
    """Count what the schedules of a test came to, and fail where they tried nothing."""
    counted: Counter[str] = Counter()
    yield counted
    assert [what for what in HAPPENS if not counted[what]] == []
    assert counted["hits"] + counted["local hits"] > counted["schedules"] / 4
    assert counted["local hits"] > counted["schedules"] / 20


def judge(world: World, seen: Counter[str]) -> None:
    """Count what happened, and fail where something was served that must not be."""
    seen.update(world.seen)
    seen["schedules"] += 1
    assert world.violations == []


def test_nothing_is_served_that_is_over(seen: Counter[str]) -> None:
    """Two gateways with L0, lost and late messages, an operator, and a store that forgets."""

    @settings(max_examples=SCHEDULES, deadline=None, database=None)
    @given(STEPS)
    def schedules(steps: bytes) -> None:
        async def play() -> World:
            store = MemoryCacheStore(time.monotonic)
            world = World(store, "c" * 16, MemoryBackdoor(store))
            await world.play(steps)
            return world

        judge(asyncio.run(play()), seen)

    schedules()


def test_nothing_is_served_that_is_over_by_real_scripts(
    seen: Counter[str], topologies: Callable[[str], Topology]
) -> None:
    """The same with the scripts that a real server runs; each schedule has a cache of its own."""
    topology = topologies("unix")
    with (
        asyncio.Runner() as runner,
        Redis(port=topology.nodes[0].port, username="root", password="root") as root,
    ):
        store = open_cache_store(topology.url)

        @settings(max_examples=SCHEDULES_ON_REDIS, deadline=None, database=None)
        @given(STEPS)
        def schedules(steps: bytes) -> None:
            cache_id = secrets.token_hex(8)
            world = World(store, cache_id, RedisBackdoor(root, cache_id), is_followed=False)
            runner.run(world.play(steps))
            world.backdoor.lose()
            judge(world, seen)

        schedules()
        runner.run(store.aclose())
