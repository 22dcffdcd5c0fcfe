"""Which credentials count as accepted: by memory, by the store, until when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from cachewright.errors import StoreUnavailable
from cachewright.gateway.credentials import MOST_KNOWN, Credentials, CredentialSettings
from cachewright.keys.credentials import MarkerName, marker_name
from cachewright.layers.breaker import Breaker
from cachewright.stores.memory import MemoryCacheStore
from tests.support.waiting import until

KEY = bytes(32)
SETTINGS = CredentialSettings("c" * 16, "binding", ttl_seconds=60, budget_seconds=5)
GOOD = b"Bearer sk-good"


class CountingStore(MemoryCacheStore):
    """A store that counts what is asked of it, and can be told to fail or to hang."""

    calls = 0
    error: Exception | None = None
    frozen = False

    async def set_marker(self, name: MarkerName, ttl_seconds: float) -> None:
        """Count, then set."""
        await self._obey()
        await MemoryCacheStore.set_marker(self, name, ttl_seconds)

    async def marker_seconds(self, name: MarkerName) -> float:
        """Count, then look."""
        await self._obey()
        return await MemoryCacheStore.marker_seconds(self, name)

    async def _obey(self) -> None:
        self.calls += 1
        if self.frozen:
            await asyncio.sleep(3600)
        if self.error is not None:
            raise self.error


@dataclass
class World:
    """Two replicas on one store, with a clock of their own."""

    now: float = 1000.0
    made: list[Credentials] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Build the store and both replicas."""
        self.store = CountingStore(lambda: self.now)
        self.breaker = Breaker(self.store.ping, 5, lambda _: None)
        self.first, self.second = self.replica(), self.replica()

    def replica(self, settings: CredentialSettings = SETTINGS) -> Credentials:
        """Return one more replica."""
        self.made.append(Credentials(self.store, self.breaker, settings, KEY, lambda: self.now))
        return self.made[-1]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Two replicas that know nothing yet."""
    world = World()
    yield world
    await world.breaker.aclose()
    for credentials in world.made:
        await credentials.aclose()


def accepted_by(credentials: Credentials, wanted: bool = True) -> Callable[[], Awaitable[bool]]:
    """Return a condition to wait for."""

    async def condition() -> bool:
        return await credentials.is_accepted(GOOD) is wanted

    return condition


async def test_nobody_is_accepted_before_the_upstream_said_so(world: World) -> None:
    """Nor by an answer that is neither a success nor a refusal."""
    for status in (302, 404, 429, 500, 503):
        world.first.heard(GOOD, status)
        assert not await world.first.is_accepted(GOOD)


@pytest.mark.parametrize("status", [200, 201, 204])
async def test_a_success_counts_here_at_once_and_everywhere_soon(world: World, status: int) -> None:
    """For this credential alone."""
    world.first.heard(GOOD, status)
    assert await world.first.is_accepted(GOOD)
    await until(accepted_by(world.second))
    assert not await world.second.is_accepted(b"Bearer sk-bad")


async def test_it_ends_with_the_ttl_of_the_last_success_everywhere(world: World) -> None:
    """Hits prolong nothing, and a replica that learns of it late counts from the success."""
    world.first.heard(GOOD, 200)
    world.now += 50
    await until(accepted_by(world.second))
    world.now += 9
    assert await world.first.is_accepted(GOOD)
    assert await world.second.is_accepted(GOOD)
    world.now += 1
    assert not await world.first.is_accepted(GOOD)
    assert not await world.second.is_accepted(GOOD)


async def test_each_success_prolongs_it(world: World) -> None:
    """For the whole TTL again."""
    for _ in range(3):
        world.first.heard(GOOD, 200)
        await until(accepted_by(world.replica()))
        world.now += 59
        assert await world.first.is_accepted(GOOD)
        assert await world.replica().is_accepted(GOOD)


async def test_many_successes_are_told_to_the_store_once(world: World) -> None:
    """Within the first tenth of the TTL."""
    for _ in range(100):
        world.first.heard(GOOD, 200)
        await asyncio.sleep(0)
    assert world.store.calls == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_is_known_here_at_once_and_in_the_store_soon(world: World, status: int) -> None:
    """A replica that asks the store afterwards does not serve it either."""
    world.first.heard(GOOD, 200)
    await until(accepted_by(world.replica()))
    world.first.heard(GOOD, status)
    await until(accepted_by(world.first, wanted=False))
    assert not await world.second.is_accepted(GOOD)
    world.first.heard(GOOD, 200)
    await until(accepted_by(world.second))


@pytest.mark.parametrize("change", ["error", "frozen", "breaker"])
async def test_a_store_in_trouble_accepts_nobody_and_delays_nobody(world: World, change: str) -> None:
    """What memory knows still counts."""
    settings = CredentialSettings("c" * 16, "binding", ttl_seconds=60, budget_seconds=0.01)
    asking = world.replica(settings)
    world.store.error = StoreUnavailable("away") if change == "error" else None
    world.store.frozen = change == "frozen"
    if change == "breaker":
        world.breaker.trip()
    assert not await asking.is_accepted(GOOD)
    asking.heard(GOOD, 200)
    assert await asking.is_accepted(GOOD)


async def test_another_upstream_or_ttl_starts_anew(world: World) -> None:
    """What one upstream accepts says nothing of another."""
    world.first.heard(GOOD, 200)
    await until(accepted_by(world.second))
    for settings in (
        CredentialSettings("c" * 16, "other", 60, 5),
        CredentialSettings("c" * 16, "binding", 61, 5),
        CredentialSettings("d" * 16, "binding", 60, 5),
    ):
        assert not await world.replica(settings).is_accepted(GOOD)


async def test_memory_is_bounded(world: World) -> None:
    """However many credentials come."""
    for number in range(MOST_KNOWN + 10):
        world.first.heard(b"%d" % number, 200)
    assert len(world.first._good_until) == MOST_KNOWN
    assert len(world.first._tasks) <= 256


def test_a_markers_name_does_not_tell_the_credential() -> None:
    """It is a keyed digest in the cache's own slots."""
    name = marker_name(KEY, "c" * 16, "binding", 60, GOOD)
    assert name.key.startswith("{cw1:cccccccccccccccc:")
    assert "sk-good" not in name.key
    assert marker_name(bytes([1] * 32), "c" * 16, "binding", 60, GOOD) != name
