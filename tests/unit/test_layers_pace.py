"""The pace of long work."""

from __future__ import annotations

import pytest

from cachewright.layers.pace import Pace
from tests.support.clocks import ManualClock


async def test_steps_keep_the_rate() -> None:
    """However many keys a step looks at, as many pass in a second as were asked for."""
    clock = ManualClock()
    pace = Pace(1000, clock, clock.sleep)
    for keys in [200, 0, 50, 750] * 10:
        await pace.after(keys)
    assert clock.slept == pytest.approx(10.0)


async def test_time_spent_in_a_step_counts() -> None:
    """A step that took a while needs a shorter pause, but never one shorter than itself."""
    clock = ManualClock()
    pace = Pace(1000, clock, clock.sleep)
    clock.now += 0.05
    await pace.after(200)
    assert clock.slept == pytest.approx(0.15)
    clock.now += 0.15
    await pace.after(200)
    assert clock.slept == pytest.approx(0.15 + 0.15)


async def test_a_slow_store_is_left_alone_half_of_the_time() -> None:
    """Where each step takes longer than the rate allows, the pauses grow with it."""
    clock = ManualClock()
    pace = Pace(1_000_000, clock, clock.sleep)
    for _ in range(10):
        clock.now += 0.3
        await pace.after(200)
    assert clock.slept == pytest.approx(3.0)


async def test_no_burst_follows_a_standstill() -> None:
    """What a frozen store cost is not made up for."""
    clock = ManualClock()
    pace = Pace(100, clock, clock.sleep)
    clock.now += 3600
    await pace.after(100)
    before = clock.now
    for _ in range(10):
        await pace.after(100)
    assert clock.now - before >= 9
