"""A janitor that is killed in the middle, as real processes: the next one ends the work."""

from __future__ import annotations

import asyncio
import sys

from cachewright.keys.record import KeyspaceState
from cachewright.layers.janitor import Removal
from cachewright.stores.reclaim import ReclaimState
from cachewright.stores.redis_entries import open_cache_store
from tests.stores.test_janitor import World
from tests.support.redis_servers import run_redis
from tests.support.waiting import until

PROGRAM = """
import asyncio, sys, time
from cachewright.layers.janitor import Janitor, JanitorSettings
from cachewright.stores.redis_entries import open_cache_store

class Quiet:
    def removed(self, keys, why): pass
    def reclaimed(self, past, report): print(report.state, flush=True)
    def swept(self, report): pass

async def main(url, cache_id, rate):
    store = open_cache_store(url)
    record = await store.read_record(cache_id)
    settings = JanitorSettings(cache_id, float(rate), 3600, lock_seconds=2)
    await Janitor(store, settings, Quiet(), time.monotonic, time.time).work(record)
    await store.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_another_process_goes_on_after_a_kill() -> None:
    """What is left is removed, nothing else is touched, and the report counts what both removed."""
    with run_redis("valkey") as server:
        world = World(open_cache_store(server.url("gateway")), server.cache_id)
        deleting = await world.switch("a")
        gone = await world.fill(deleting, 1500)
        active = await world.switch("b")
        kept = await world.fill(active, 100)
        await world.give_up(KeyspaceState.DELETING, deleting)
        dying = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, server.url("gateway"), server.cache_id, "1000"
        )

        async def has_begun() -> bool:
            report = await world.report(deleting)
            return report is not None and report.removed > 0

        await until(has_begun)
        dying.kill()
        await dying.wait()
        left = await world.left_of(gone)
        assert 0 < left < 1500
        await world.janitor().work(world.record)
        assert await world.left_of(gone) == left, "the dead one's lock did not count"

        async def is_taken_over() -> bool:
            await world.janitor().work(world.record)
            report = await world.report(deleting)
            return report is not None and report.state is ReclaimState.DONE

        await until(is_taken_over)
        assert await world.left_of(gone) == 0
        assert await world.left_of(kept) == 100
        assert world.notes.keys[Removal.KEYSPACE] == left
        report = await world.report(deleting)
        assert report is not None
        assert left < report.removed <= 1500
        await world.store.aclose()
