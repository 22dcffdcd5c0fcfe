"""What locks promise, on every implementation."""

from __future__ import annotations

import asyncio

from tests.stores.conftest import Subject
from tests.support.waiting import until


async def test_one_of_many_takes_a_lock(subject: Subject) -> None:
    """However many ask at once, and the holder can be named."""
    tokens = [f"token-{number}" for number in range(50)]
    taken = await asyncio.gather(*(subject.store.acquire_lock(subject.name(), token, 60) for token in tokens))
    assert sum(taken) == 1
    assert await subject.store.lock_holder(subject.name()) == tokens[taken.index(True)]


async def test_locks_are_apart(subject: Subject) -> None:
    """Each entry has a lock of its own, which is not the entry."""
    other = subject.name("ac" * 32)
    assert await subject.store.acquire_lock(subject.name(), "a", 60)
    assert await subject.store.lock_holder(other) is None
    assert await subject.store.acquire_lock(other, "b", 60)
    assert (await subject.store.find(subject.name())).value is None


async def test_only_its_holder_frees_a_lock(subject: Subject) -> None:
    """A token that holds nothing frees nothing, and freeing twice is harmless."""
    assert not await subject.store.release_lock(subject.name(), "a")
    assert await subject.store.acquire_lock(subject.name(), "a", 60)
    assert not await subject.store.release_lock(subject.name(), "b")
    assert await subject.store.lock_holder(subject.name()) == "a"
    assert await subject.store.release_lock(subject.name(), "a")
    assert not await subject.store.release_lock(subject.name(), "a")
    assert await subject.store.acquire_lock(subject.name(), "b", 60)


async def test_a_lock_frees_itself(subject: Subject) -> None:
    """When its holder is gone for good, the next one gets it; the late holder frees nothing of theirs."""
    assert await subject.store.acquire_lock(subject.name(), "dead", 0.1)

    async def is_taken_over() -> bool:
        return await subject.store.acquire_lock(subject.name(), "next", 60)

    await until(is_taken_over)
    assert not await subject.store.release_lock(subject.name(), "dead")
    assert await subject.store.lock_holder(subject.name()) == "next"
