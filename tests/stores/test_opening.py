"""Opening a store by its URL."""

from __future__ import annotations

import pytest

from cachewright.errors import InvalidInput, StoreRefused
from cachewright.keys.digest import EntryName
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.opening import memory_url, open_store
from cachewright.stores.redis_entries import RedisCacheStore


def test_each_scheme_has_its_store() -> None:
    """Memory for itself, Redis for everything else; neither connects to anything."""
    assert isinstance(open_store("redis://127.0.0.1:1/0"), RedisCacheStore)
    store = open_store("memory://")
    assert isinstance(store, MemoryCacheStore)
    bounded = open_store(memory_url(1000))
    assert isinstance(bounded, MemoryCacheStore)
    assert bounded.max_bytes == 1000 < store.max_bytes


@pytest.mark.parametrize(
    "url", ["memory://x", "memory://?max_bytes=0", "memory://?max_bytes=1k", "http://x", ""]
)
def test_what_is_no_store(url: str) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidInput):
        open_store(url)


async def test_memory_is_bounded_in_bytes() -> None:
    """The oldest entries go first, replacing one counts once, and one that is too large is not kept."""
    store = open_store(memory_url(1000))
    record = Record("0" * 16, 0, 0).with_layer("Exact", name(1).keyspace.id, "binding", "t")
    await store.publish_record(record)

    async def put(number: int, size_bytes: int) -> None:
        marks = (await store.find(name(number))).marks
        assert marks is not None
        assert await store.write(name(number), b"x" * size_bytes, 60.0, marks)

    async def kept() -> list[int]:
        return [number for number in range(9) if (await store.find(name(number))).value is not None]

    for number in (1, 2, 3, 4):
        await put(number, 300)
    assert await kept() == [2, 3, 4]
    await put(4, 100)
    await put(5, 300)
    assert await kept() == [2, 3, 4, 5]
    await store.remove(name(2))
    await put(6, 300)
    assert await kept() == [3, 4, 5, 6]
    with pytest.raises(StoreRefused):
        await put(7, 1001)
    assert await kept() == [3, 4, 5, 6]


def name(number: int) -> EntryName:
    """Name an entry."""
    return EntryName("0" * 16, Keyspace("1" * 16, 1), "tenant", f"{number:064x}")
