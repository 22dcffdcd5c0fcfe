"""The election on an in-memory API and clocks that the test moves; the API tier repeats it with processes."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from cachewright.errors import KubeUnavailable
from cachewright.kube.lease import RETRY_SECONDS, LeaderElection, LeaseLost, Time
from cachewright.kube.memory import MemoryKube, Place
from cachewright.kube.protocol import LEASES, Manifest

START = datetime(2026, 1, 1, tzinfo=UTC)


class World:
    """One API, one course of time, and replicas whose clocks may be wrong."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        self.seconds = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def replica(self, identity: str, clock_error_seconds: float = 0.0) -> LeaderElection:
        """Make a replica."""

        def now() -> datetime:
            return START + timedelta(seconds=self.seconds + clock_error_seconds)

        return LeaderElection(
            self.kube, "ns", "operator", identity, Time(now, lambda: self.seconds, self.sleep)
        )

    async def sleep(self, seconds: float) -> None:
        """Wait until time has passed."""
        done = asyncio.Event()
        self._sleepers.append((self.seconds + seconds, done))
        await done.wait()

    async def advance(self, seconds: float) -> None:
        """Let time pass in steps of half a second, so that everybody acts in its turn."""
        for _ in range(int(seconds * 2)):
            self.seconds += 0.5
            for due, done in self._sleepers:
                if due <= self.seconds:
                    done.set()
            await settle()

    async def lease(self) -> Manifest:
        """Read the Lease."""
        found = await self.kube.get(LEASES, "ns", "operator")
        assert found is not None
        return found


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(30):
        await asyncio.sleep(0)


@pytest.fixture
def world() -> World:
    """Make an empty world."""
    return World()


async def test_the_first_replica_creates_the_lease(world: World) -> None:
    """A Lease that does not exist yet is created and held."""
    first = world.replica("first")
    before = first.leads
    await first.acquire()
    assert (before, first.leads) == (False, True)
    spec = (await world.lease())["spec"]
    assert spec["holderIdentity"] == "first"
    assert spec["leaseDurationSeconds"] == 10
    assert spec["renewTime"] == "2026-01-01T00:00:00.000000Z"


async def test_a_kept_lease_is_not_taken(world: World) -> None:
    """While the leader renews, the other one waits, however long."""
    first, second = world.replica("first"), world.replica("second")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    waiting = asyncio.create_task(second.acquire())
    await world.advance(120)
    assert first.leads
    assert not second.leads
    assert not waiting.done()
    keeping.cancel()
    waiting.cancel()


async def test_a_dead_leader_is_followed_within_its_duration(world: World) -> None:
    """Without renewals the Lease is free 10 s after its last change was seen, plus one retry."""
    first, second = world.replica("first"), world.replica("second")
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await world.advance(9.5)
    assert not waiting.done()
    assert not first.leads, "it must have stopped before the other begins"
    await world.advance(0.5 + RETRY_SECONDS)
    assert waiting.done()
    assert second.leads
    assert (await world.lease())["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("error_seconds", [-86400.0, 86400.0])
async def test_wrong_wall_clocks_change_nothing(world: World, error_seconds: float) -> None:
    """A replica whose clock is a day off neither takes a kept Lease nor waits longer for a dead one."""
    first, second = world.replica("first"), world.replica("second", error_seconds)
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    waiting = asyncio.create_task(second.acquire())
    await world.advance(60)
    assert not waiting.done()
    keeping.cancel()
    await world.advance(10 + 2 * RETRY_SECONDS)
    assert waiting.done()


async def test_a_released_lease_is_taken_at_once(world: World) -> None:
    """After a clean release the other replica leads as soon as it sees the change, without waiting."""
    first, second = world.replica("first"), world.replica("second")
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await settle()
    await first.release()
    assert not first.leads
    second.observe(await world.lease())
    await settle()
    assert waiting.done()
    assert second.leads


async def test_a_leader_that_cannot_renew_stops_in_time(world: World) -> None:
    """Seven seconds after the last good renewal the leader gives up, before anybody else may begin."""
    first = world.replica("first")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    await world.advance(20)
    assert not keeping.done()

    def refuse(verb: str, place: Place) -> None:
        raise KubeUnavailable(f"{verb} {place}: no answer in time")

    world.kube.before_write = refuse
    await world.advance(9)
    assert not first.leads
    assert isinstance(keeping.exception(), LeaseLost)


async def test_a_short_outage_is_survived(world: World) -> None:
    """Renewals that fail for less than the deadline cost nothing."""
    first = world.replica("first")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())

    def refuse(verb: str, place: Place) -> None:
        raise KubeUnavailable(f"{verb} {place}: no answer in time")

    world.kube.before_write = refuse
    await world.advance(5)
    world.kube.before_write = lambda _verb, _place: None
    await world.advance(30)
    assert first.leads
    assert not keeping.done()
    keeping.cancel()


async def test_a_leader_that_slept_through_its_time_does_not_lead(world: World) -> None:
    """A process that was frozen longer than the deadline may not write when it wakes up."""
    first = world.replica("first")
    await first.acquire()
    world.seconds += 60
    assert not first.leads


async def test_a_lease_taken_by_somebody_else_is_lost_at_once(world: World) -> None:
    """When the Lease names another holder, the leader stops without waiting for the deadline."""
    first = world.replica("first")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    lease = await world.lease()
    await world.kube.replace(lease | {"spec": {**lease["spec"], "holderIdentity": "thief"}})
    await world.advance(RETRY_SECONDS + 1)
    assert isinstance(keeping.exception(), LeaseLost)
    assert not first.leads
    assert (await world.lease())["spec"]["holderIdentity"] == "thief"


async def test_a_lease_that_somebody_touched_or_deleted_is_kept(world: World) -> None:
    """A label on the Lease, or its removal, does not end the leader's term."""
    first = world.replica("first")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    lease = await world.lease()
    lease["metadata"]["labels"] = {"seen": "yes"}
    await world.kube.replace(lease)
    await world.advance(4)
    await world.kube.delete(LEASES, "ns", "operator", lease["metadata"]["uid"])
    await world.advance(10)
    assert first.leads
    assert not keeping.done()
    assert (await world.lease())["spec"]["holderIdentity"] == "first"
    keeping.cancel()


async def test_of_two_that_come_at_once_one_leads(world: World) -> None:
    """Two replicas that find no Lease at the same moment do not both lead."""
    replicas = [world.replica("first"), world.replica("second")]
    tasks = [asyncio.create_task(each.acquire()) for each in replicas]
    await settle()
    assert sorted(each.leads for each in replicas) == [False, True]
    for task in tasks:
        task.cancel()


async def test_the_same_pod_takes_its_own_lease_up_again(world: World) -> None:
    """A restarted container with the same identity need not wait for its predecessor's Lease to expire."""
    await world.replica("pod-0").acquire()
    again = world.replica("pod-0")
    await again.acquire()
    assert again.leads
