"""The work queue: order, one worker a key, pauses after failures; on a clock that the test moves."""

import asyncio
import heapq
import itertools
from collections.abc import Callable

import pytest

from cachewright.controller.queue import BACKOFF_CAP_SECONDS, CacheKey, WorkQueue

A = CacheKey("ns", "a")
B = CacheKey("ns", "b")
C = CacheKey("other", "c")


class FakeTimer:
    """A call in the future of FakeClock."""

    cancelled = False

    def cancel(self) -> None:
        """Drop the call."""
        self.cancelled = True


class FakeClock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._numbers = itertools.count()
        self._calls: list[tuple[float, int, FakeTimer, Callable[[CacheKey], object], CacheKey]] = []

    def time(self) -> float:
        """Return the moment it is."""
        return self.now

    def call_later(self, delay: float, callback: Callable[[CacheKey], object], key: CacheKey, /) -> FakeTimer:
        """Remember a call."""
        timer = FakeTimer()
        heapq.heappush(self._calls, (self.now + delay, next(self._numbers), timer, callback, key))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass, and make the calls that come due, each at its moment."""
        end = self.now + seconds
        while self._calls and self._calls[0][0] <= end:
            self.now, _, timer, callback, key = heapq.heappop(self._calls)
            if not timer.cancelled:
                callback(key)
        self.now = end


class Passes:
    """A `process` that records what it saw, and waits, fails or asks to come back as told."""

    def __init__(self) -> None:
        self.seen: list[CacheKey] = []
        self.running: list[CacheKey] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = False
        self.again_after: float | None = None

    async def __call__(self, key: CacheKey) -> float | None:
        """Be one pass."""
        self.seen.append(key)
        self.running.append(key)
        try:
            await self.gate.wait()
            if self.fails:
                raise RuntimeError("as told")
        finally:
            self.running.remove(key)
        return self.again_after


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


class Bench:
    """A queue, its clock, its passes and two workers."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.queue = WorkQueue(self.clock, jitter=lambda: 1.0)
        self.passes = Passes()
        self.workers = [asyncio.create_task(self.queue.work(self.passes)) for _ in range(2)]

    async def advance(self, seconds: float) -> None:
        """Let time pass, then the workers act."""
        self.clock.advance(seconds)
        await settle()


@pytest.fixture
async def bench() -> Bench:
    """Start two workers on an empty queue."""
    made = Bench()
    await settle()
    return made


async def test_keys_are_processed_in_the_order_they_came(bench: Bench) -> None:
    """First come, first served; a key that is in line already is there once."""
    bench.passes.gate.clear()
    bench.queue.add(A)
    bench.queue.add(B)
    await settle()
    bench.queue.add(C)
    bench.queue.add(C)
    assert bench.queue.depth == 1
    bench.passes.gate.set()
    await settle()
    assert bench.passes.seen == [A, B, C]


async def test_a_key_has_one_worker_at_a_time(bench: Bench) -> None:
    """What is added during a pass leads to one more pass after it, however often it was added."""
    bench.passes.gate.clear()
    bench.queue.add(A)
    await settle()
    for _ in range(3):
        bench.queue.add(A)
    await settle()
    assert bench.passes.running == [A]
    bench.passes.gate.set()
    await settle()
    assert bench.passes.seen == [A, A]


async def test_different_keys_run_at_the_same_time(bench: Bench) -> None:
    """Two workers are on two keys at once, and the third key waits."""
    bench.passes.gate.clear()
    for key in (A, B, C):
        bench.queue.add(key)
    await settle()
    assert bench.passes.running == [A, B]
    assert bench.queue.depth == 1


async def test_a_delayed_key_comes_when_it_is_due(bench: Bench) -> None:
    """`after` is kept to; the earliest of several wishes wins."""
    bench.queue.add(A, after=10)
    bench.queue.add(A, after=5)
    bench.queue.add(A, after=30)
    await bench.advance(4.9)
    assert bench.passes.seen == []
    await bench.advance(0.2)
    assert bench.passes.seen == [A]
    await bench.advance(100)
    assert bench.passes.seen == [A]


async def test_an_immediate_key_overtakes_its_own_delay(bench: Bench) -> None:
    """An event for a key that waits for its resync is served at once, and the resync is spared."""
    bench.queue.add(A, after=300)
    bench.queue.add(A)
    await settle()
    assert bench.passes.seen == [A]
    await bench.advance(400)
    assert bench.passes.seen == [A]


async def test_failures_pause_longer_each_time_up_to_a_cap(bench: Bench) -> None:
    """0.5 s, 1 s, 2 s … 60 s, 60 s; a success starts over."""
    bench.passes.fails = True
    bench.queue.add(A)
    await settle()
    pauses = []
    for _ in range(10):
        before, count = bench.clock.now, len(bench.passes.seen)
        while len(bench.passes.seen) == count:
            await bench.advance(0.5)
        pauses.append(bench.clock.now - before)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, BACKOFF_CAP_SECONDS, BACKOFF_CAP_SECONDS, BACKOFF_CAP_SECONDS]

    bench.passes.fails = False
    await bench.advance(BACKOFF_CAP_SECONDS)
    bench.passes.fails = True
    bench.queue.add(A)
    await settle()
    count = len(bench.passes.seen)
    await bench.advance(0.5)
    assert len(bench.passes.seen) == count + 1


def test_jitter_spreads_the_pauses() -> None:
    """The pause lies between half and all of its length, so that keys that failed together part."""
    pauses = []
    for jitter in (0.0, 0.5, 1.0):
        queue = WorkQueue(FakeClock(), jitter=lambda value=jitter: value)  # type: ignore[misc]
        pauses.append([queue._pause_after_failure(A) for _ in range(3)][2])
    assert pauses == [1.0, 1.5, 2.0]


async def test_an_event_cuts_a_pause_short(bench: Bench) -> None:
    """A key in back-off whose object changes is tried at once: the change may be the cure."""
    bench.passes.fails = True
    bench.queue.add(A)
    for _ in range(8):
        await bench.advance(BACKOFF_CAP_SECONDS)
    count = len(bench.passes.seen)
    bench.queue.add(A)
    await settle()
    assert len(bench.passes.seen) == count + 1


async def test_a_failing_pass_and_its_own_event_do_not_feed_each_other(bench: Bench) -> None:
    """An event during a pass that fails waits for the first pause."""
    bench.passes.fails = True
    bench.passes.gate.clear()
    bench.queue.add(A)
    await settle()
    bench.queue.add(A)
    bench.passes.gate.set()
    await settle()
    assert bench.passes.seen == [A]
    await bench.advance(0.5)
    assert bench.passes.seen == [A, A]


async def test_a_pass_can_ask_to_come_back(bench: Bench) -> None:
    """The seconds that a pass returns are when its key is next due."""
    bench.passes.again_after = 7.0
    bench.queue.add(A)
    await settle()
    await bench.advance(6.9)
    assert bench.passes.seen == [A]
    await bench.advance(0.2)
    assert bench.passes.seen == [A, A]


async def test_the_age_of_the_oldest_key_is_known(bench: Bench) -> None:
    """The age counts from when a key was due, and is 0 for an empty line."""
    assert bench.queue.oldest_age_seconds == 0
    bench.passes.gate.clear()
    for key in (A, B, C):
        bench.queue.add(key)
    await settle()
    await bench.advance(3)
    assert bench.queue.oldest_age_seconds == 3


async def test_closing_ends_after_the_running_passes(bench: Bench) -> None:
    """A closed queue finishes what runs, starts nothing that waits and takes nothing new."""
    bench.passes.gate.clear()
    for key in (A, B, C):
        bench.queue.add(key)
    bench.queue.add(CacheKey("ns", "later"), after=5)
    await settle()
    closing = asyncio.create_task(bench.queue.close())
    await settle()
    assert not closing.done()
    bench.queue.add(A)
    bench.passes.gate.set()
    await closing
    await asyncio.gather(*bench.workers)
    await bench.advance(100)
    assert bench.passes.seen == [A, B]
