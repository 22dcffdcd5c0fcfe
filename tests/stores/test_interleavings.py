"""Nothing is served after a switch, a retraction or a removal is done, in whatever order things happen."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.redis_entries import open_cache_store
from tests.stores.interleavings import World
from tests.support.redis_topologies import Topology

SCHEDULES = max(2000, settings().max_examples)
"""On the store in memory; `--hypothesis-profile=soak` makes it 20,000."""

SCHEDULES_ON_REDIS = SCHEDULES // 8

STEPS = st.binary(min_size=30, max_size=80)


@pytest.fixture
def seen() -> Iterator[Counter[str]]:
    """Count what the schedules of a test came to, and fail where they tried nothing."""
    counted: Counter[str] = Counter()
    yield counted
    assert counted["hits"] > counted["schedules"] / 4
    assert counted["local hits"] > counted["schedules"] / 20


def judge(world: World, seen: Counter[str]) -> None:
    """Count what was served, and fail where something was served too late."""
    seen.update({"schedules": 1, "hits": world.hits, "local hits": world.local_hits})
    assert world.violations == []


def test_nothing_is_served_after_done(seen: Counter[str]) -> None:
    """Two gateways with L0, lost and late messages, a store that may lose everything."""

    @settings(max_examples=SCHEDULES, deadline=None, database=None)
    @given(STEPS)
    def schedules(steps: bytes) -> None:
        async def play() -> World:
            store = MemoryCacheStore(time.monotonic)
            world = World(store, "c" * 16, lose=store.forget_all)
            await world.play(steps)
            return world

        judge(asyncio.run(play()), seen)

    schedules()


def test_nothing_is_served_after_done_by_real_scripts(
    seen: Counter[str], topologies: Callable[[str], Topology]
) -> None:
    """The same with the scripts that a real server runs; each schedule has a cache of its own."""
    with asyncio.Runner() as runner:
        store = open_cache_store(topologies("unix").url)

        @settings(max_examples=SCHEDULES_ON_REDIS, deadline=None, database=None)
        @given(STEPS)
        def schedules(steps: bytes) -> None:
            world = World(store, secrets.token_hex(8))
            runner.run(world.play(steps))
            judge(world, seen)

        schedules()
        runner.run(store.aclose())
