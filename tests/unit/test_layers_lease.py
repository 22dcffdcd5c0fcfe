"""Leases: one holder, a bounded wait for it, and no wait for a store that is slow or broken."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from cachewright.errors import StoreUnavailable
from cachewright.keys.digest import EntryName
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.breaker import Breaker
from cachewright.layers.lease import Lease, Leases
from cachewright.stores.memory import MemoryCacheStore
from tests.support.waiting import until

NAME = EntryName("c" * 16, Keyspace("0" * 16, 1), "tag", "ab" * 32)
BUDGET_SECONDS = 0.1


class Store(MemoryCacheStore):
    """A store that can be frozen or broken."""

    frozen = False
    error: Exception | None = None

    async def acquire_lock(self, name: EntryName, token: str, ttl_seconds: float) -> bool:
        """Take the lock, unless told otherwise."""
        if self.frozen:
            await asyncio.sleep(3600)
        if self.error is not None:
            raise self.error
        return await MemoryCacheStore.acquire_lock(self, name, token, ttl_seconds)


class Place:
    """A store, its breaker, and an answer that may turn up."""

    def __init__(self) -> None:
        self.store = Store(time.monotonic)
        self.breaker = Breaker(self.store.ping, BUDGET_SECONDS, lambda _: None)
        self.answer: str | None = None

    def lease(self) -> Lease:
        """Return another gateway's claim."""
        return Leases(self.store, self.breaker, BUDGET_SECONDS).lease(NAME)

    async def is_free(self) -> bool:
        """Tell whether nobody holds the lease."""
        return await self.store.lock_holder(NAME) is None

    async def find(self) -> str | None:
        """Look for the answer."""
        return self.answer


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """A place whose breaker is closed in the end."""
    made = Place()
    yield made
    await made.breaker.aclose()


async def test_the_first_asks_and_the_second_finds(place: Place) -> None:
    """The first goes on at once; the second gets what the first has stored."""
    first, second = place.lease(), place.lease()
    assert await first.take_or_find(place.find, 5) is None
    waiting = asyncio.create_task(second.take_or_find(place.find, 5))
    await asyncio.sleep(0)
    place.answer = "stored"
    first.release()
    assert await asyncio.wait_for(waiting, 2) == "stored"
    second.release()
    await until(place.is_free)


async def test_a_free_lease_is_taken_over(place: Place) -> None:
    """Where the holder let go without an answer, the next one asks, and holds the lease."""
    first, second = place.lease(), place.lease()
    await first.take_or_find(place.find, 5)
    waiting = asyncio.create_task(second.take_or_find(place.find, 5))
    await asyncio.sleep(0)
    first.release()
    assert await asyncio.wait_for(waiting, 2) is None
    assert await place.store.lock_holder(NAME) is not None
    first.release()  # no longer its own
    await asyncio.sleep(0.02)
    assert not await place.is_free()


async def test_the_wait_is_bounded(place: Place) -> None:
    """A holder that takes too long is waited for no longer."""
    await place.lease().take_or_find(place.find, 5)
    started = time.monotonic()
    assert await place.lease().take_or_find(place.find, 0.2) is None
    assert 0.2 <= time.monotonic() - started < 2


@pytest.mark.parametrize("trouble", ["frozen", "broken", "broken while waiting", "left alone"])
async def test_trouble_with_the_store_costs_a_budget_at_most(place: Place, trouble: str) -> None:
    """Whatever is wrong, the upstream is asked."""
    if trouble == "broken while waiting":
        await place.lease().take_or_find(place.find, 5)
        asyncio.get_running_loop().call_later(0.05, setattr, place.store, "error", StoreUnavailable("gone"))
    elif trouble == "broken":
        place.store.error = StoreUnavailable("gone")
    elif trouble == "frozen":
        place.store.frozen = True
    else:
        place.breaker.trip()
    started = time.monotonic()
    lease = place.lease()
    assert await lease.take_or_find(place.find, 5) is None
    lease.release()
    assert time.monotonic() - started < BUDGET_SECONDS + 1
    assert place.breaker.is_open == (trouble == "left alone")  # look-ups decide about that


async def test_one_that_is_cancelled_lets_go(place: Place) -> None:
    """Also of a lease whose answer was under way."""
    lease = place.lease()
    await lease.take_or_find(place.find, 5)
    waiting = place.lease()
    task = asyncio.create_task(waiting.take_or_find(place.find, 5))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    waiting.release()
    assert await place.store.lock_holder(NAME) is not None  # the other's
    lease.release()
    await until(place.is_free)


async def test_a_process_does_not_wait_for_itself(place: Place) -> None:
    """A lease that it left behind is taken over at once."""
    leases = Leases(place.store, place.breaker, BUDGET_SECONDS)
    await leases.lease(NAME).take_or_find(place.find, 5)
    started = time.monotonic()
    assert await leases.lease(NAME).take_or_find(place.find, 5) is None
    assert time.monotonic() - started < 2


async def test_a_lease_is_let_go_of_after_trouble(place: Place) -> None:
    """One that could not be freed while the store was left alone is freed as soon as it is well."""
    lease = place.lease()
    await lease.take_or_find(place.find, 5)
    place.breaker.trip()
    lease.release()
    assert not await place.is_free()
    await until(place.is_free, seconds=2)
