"""What the model of interleavings can see: each safeguard is left out in turn, and something must come of it.

A model in which nothing goes wrong without a safeguard tells nothing about that safeguard.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from cachewright.keys.digest import EntryName
from cachewright.keys.permission import WritePermission
from cachewright.layers import known_marks
from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.protocols import Found, Marks, WriteOutcome
from tests.stores.backdoors import MemoryBackdoor
from tests.stores.interleavings import World

MOST_SCHEDULES = 4000
"""The rarest of these takes some hundreds."""

_find, _write = MemoryCacheStore.find, MemoryCacheStore.write


def _yes(*_: object, **__: object) -> bool:
    return True


def _nothing_was_there(*_: object) -> float:
    return 0.0


def write_under_any_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let in what was asked before a removal, a retraction or a switch."""

    async def write(
        self: MemoryCacheStore, name: EntryName, value: bytes, ttl_seconds: float, seen: Marks
    ) -> WriteOutcome:
        return await _write(self, name, value, ttl_seconds, self._marks(name.cache_id) or seen)

    monkeypatch.setattr(MemoryCacheStore, "write", write)


def write_while_readonly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let in what pods of two versions answer."""
    monkeypatch.setattr(WritePermission, "allows", _yes)


def rely_on_marks_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve copies of entries however long ago the store was looked at."""
    monkeypatch.setattr(known_marks, "VALID_SECONDS", float("inf"))


def see_no_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look entries up as if nothing had ever been retracted."""

    async def find(self: MemoryCacheStore, name: EntryName, counters: Sequence[str] = ()) -> Found:
        return replace(await _find(self, name, counters), generations=(0,) * len(counters))

    monkeypatch.setattr(MemoryCacheStore, "find", find)


def remove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say that an entry is removed, and leave it."""
    monkeypatch.setattr(MemoryCacheStore, "_forget", _nothing_was_there)


@pytest.mark.parametrize(
    "leave_out",
    [write_under_any_marks, write_while_readonly, rely_on_marks_for_ever, see_no_counter, remove_nothing],
)
def test_without_a_safeguard_something_is_served_that_is_over(
    leave_out: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By schedules like those that find nothing with it."""
    leave_out(monkeypatch)

    async def play(schedule: bytes) -> World:
        store = MemoryCacheStore(time.monotonic)
        world = World(store, "c" * 16, MemoryBackdoor(store))
        await world.play(schedule)
        return world

    for number in range(MOST_SCHEDULES):
        chance = random.Random(number)  # noqa: S311 - schedules, not secrets
        if asyncio.run(play(chance.randbytes(chance.randint(30, 80)))).violations:
            return
    pytest.fail(f"nothing came of it in {MOST_SCHEDULES} schedules")
