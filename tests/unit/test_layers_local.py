"""L0: what may be served from this process' memory, for how long, and what ends that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from cachewright.errors import StoreUnavailable
from cachewright.keys.digest import EntryName
from cachewright.keys.generations import Dependence
from cachewright.keys.record import Record
from cachewright.layers import local_upkeep
from cachewright.layers.breaker import Breaker
from cachewright.layers.entry import Entry
from cachewright.layers.exact import ExactLayer, ExactSettings, Hit, Miss
from cachewright.layers.known_marks import VALID_SECONDS, KnownMarks
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.local import MOST_CHANGES, OVERHEAD_BYTES, LocalCache, LocalSettings, Question
from cachewright.layers.local_upkeep import LocalUpkeep
from cachewright.policy.reasons import BypassReason
from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.protocols import Found, Marks
from tests.support.waiting import until

CACHE = "c" * 16
DIGEST = "ab" * 32
FIRST = Record(CACHE, 0, 0).with_layer("Exact", "1" * 16, "binding", "t")
SECOND = FIRST.with_layer("Exact", "2" * 16, "binding", "t")
WALL = 1_790_000_000.0


class CountingStore(MemoryCacheStore):
    """A store that counts look-ups, and can be told to fail."""

    finds = 0
    is_down = False

    async def find(self, name: EntryName, counters: Sequence[str] = ()) -> Found:
        """Count, then look."""
        self.finds += 1
        if self.is_down:
            raise StoreUnavailable("away")
        return await MemoryCacheStore.find(self, name, counters)


@dataclass
class World:
    """One gateway's layer with L0, a store, and a second gateway's layer without."""

    now: float = 100.0
    local_ttl_seconds: float = 30.0
    known: KnownRecord = field(default_factory=lambda: KnownRecord(CACHE))

    def __post_init__(self) -> None:
        """Build both layers."""
        self.store = CountingStore(self.clock)
        self.breaker = Breaker(self.store.ping, 5.0, lambda _: None)
        self.marks = KnownMarks(self.clock)
        self.local = LocalCache(LocalSettings(10, self.local_ttl_seconds), self.marks, self.clock)
        self.layer = self._layer(self.known, self.local)
        self.known.offer(FIRST)
        other = KnownRecord(CACHE)
        other.offer(FIRST)
        self.other = self._layer(other, None)

    def clock(self) -> float:
        """Return monotonic seconds."""
        return self.now

    def _layer(self, known: KnownRecord, local: LocalCache | None) -> ExactLayer:
        settings = ExactSettings(CACHE, "binding", 60.0, 5.0)
        return ExactLayer(
            self.store, known, self.breaker, settings, bytes(32), lambda: WALL + self.now, local, self.clock
        )

    async def ask(self, digest: str = DIGEST) -> Hit | Miss | BypassReason:
        """Look a question up."""
        return await self.layer.look_up("tag", digest)

    async def local_hit(self) -> bool:
        """Look the question up; tells whether it was answered from L0."""
        finds = self.store.finds
        found = await self.ask()
        is_local = isinstance(found, Hit) and found.is_local
        assert is_local == (self.store.finds == finds)
        return is_local

    async def fill(self, body: bytes = b"body") -> None:
        """Store an answer and look it up once, so that it is in L0."""
        place = await self.other.look_up("tag", DIGEST)
        assert isinstance(place, Miss | Hit)
        place = place.place if isinstance(place, Hit) else place
        assert await self.other.write(place, "application/json", body) is None
        found = await self.ask()
        assert isinstance(found, Hit)
        assert not found.is_local

    async def read_marks(self) -> None:
        """Do what the upkeep does."""
        self.marks.saw_all(await self.store.read_marks(CACHE), self.now)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A store with the first record, and an answer in L0."""
    made = World()
    await made.store.publish_record(FIRST)
    await made.fill()
    yield made
    await made.breaker.aclose()


async def test_a_copy_is_served_without_the_store(world: World) -> None:
    """The same answer with the same place, age and time to live, and no call."""
    from_store = await world.other.look_up("tag", DIGEST)
    world.now += 0.5
    finds = world.store.finds
    hit = await world.ask()
    assert isinstance(from_store, Hit)
    assert isinstance(hit, Hit)
    assert hit == replace(from_store, age_seconds=0.5, ttl_seconds=59.5, is_local=True)
    assert world.store.finds == finds


async def test_a_copy_counts_for_a_second_after_the_marks_were_read(world: World) -> None:
    """From the beginning of the read; a later read of the same marks prolongs it."""
    world.now += 0.9
    assert await world.local_hit()
    await world.read_marks()
    world.now += 0.9
    assert await world.local_hit()
    world.now += 0.1
    assert not await world.local_hit()
    assert await world.local_hit()


async def test_a_switch_ends_copies_with_the_next_marks(world: World) -> None:
    """Even while the store tells nothing of changed keys, nothing is served a second after it."""
    await world.store.publish_record(SECOND)
    assert await world.local_hit()  # not known yet; done is reported later than this can last
    world.now += VALID_SECONDS
    assert isinstance(await world.ask(), Miss)
    assert not await world.local_hit()


async def test_a_record_that_is_known_ends_copies_at_once(world: World) -> None:
    """The mounted record moves the keyspace without any read."""
    world.known.offer(SECOND)
    assert isinstance(await world.ask(), Miss)


@pytest.mark.parametrize("by_another", [True, False])
async def test_a_removed_entry_is_served_no_more(world: World, by_another: bool) -> None:
    """At once where it was removed, and within a second elsewhere."""
    found = await world.ask()
    assert isinstance(found, Hit)
    await (world.other if by_another else world.layer).remove(found.place.name)
    if by_another:
        await world.read_marks()
    assert isinstance(await world.ask(), Miss)


async def test_raised_generations_end_copies(world: World) -> None:
    """A retraction raises the changes under every tag."""
    await world.store.raise_generations(CACHE, ["t:tag"])
    await world.read_marks()
    assert not await world.local_hit()


async def test_questions_with_other_counters_share_no_copy(world: World) -> None:
    """One user's answer is no copy for another, whose counter may have been raised."""
    await world.store.raise_generations(CACHE, ["u:alice"])
    finds = []
    for user in ("u:bob", "u:alice"):
        counters = cast("Dependence", _Counters((user,)))
        found = await world.layer.look_up("tag", DIGEST, counters)
        finds.append(type(found))
    assert finds == [Hit, Miss]


@dataclass(frozen=True)
class _Counters:
    """A Dependence whose digest is easily told apart."""

    counters: tuple[str, ...]
    template: str = ""

    def digest_at(self, generations: tuple[int, ...]) -> str:
        return f"{generations[0]:064x}"


async def test_a_changed_key_is_dropped_at_once(world: World) -> None:
    """When the store tells that somebody wrote a fresher answer."""
    world.local.keys_changed([EntryName(CACHE, FIRST.layers["Exact"].keyspace, "tag", DIGEST).key])
    assert len(world.local) == 0
    assert world.local.size_bytes == 0
    assert not await world.local_hit()


async def test_a_changed_record_leaves_its_tag_unknown(world: World) -> None:
    """A switch that the store tells of is seen before the second is over."""
    await world.store.publish_record(SECOND)
    name = EntryName(CACHE, FIRST.layers["Exact"].keyspace, "tag", DIGEST)
    world.local.keys_changed([name.record_key])
    assert isinstance(await world.ask(), Miss)


async def test_lost_changes_drop_everything(world: World) -> None:
    """Nobody knows what happened meanwhile."""
    world.local.keys_lost()
    assert not await world.local_hit()


async def test_an_own_write_replaces_the_copy(world: World) -> None:
    """A client that asked for a fresh answer gets no older one afterwards."""
    found = await world.ask()
    assert isinstance(found, Hit)
    world.now += 0.1
    await world.layer.write(found.place, "application/json", b"fresh")
    again = await world.ask()
    assert isinstance(again, Hit)
    assert again.entry.body == b"fresh"


async def test_a_change_during_a_look_up_keeps_its_result_out(world: World) -> None:
    """The message may be there before the answer that it makes outdated."""
    world.local.keys_lost()
    world.now += 0.1
    find = CountingStore.find

    async def changed_meanwhile(name: EntryName, counters: Sequence[str] = ()) -> Found:
        found = await find(world.store, name, counters)
        world.local.keys_changed([name.key])
        return found

    world.store.find = changed_meanwhile  # type: ignore[method-assign]
    assert isinstance(await world.ask(), Hit)
    assert len(world.local) == 0


async def test_copies_end_by_themselves(world: World) -> None:
    """After L0's own time, and with the entry at the latest."""
    for _ in range(35):
        await world.read_marks()
        world.now += 0.9
        if not await world.local_hit():
            break
    assert 29.5 < world.now - 100 < 31.5
    while world.now < 160:
        await world.read_marks()
        world.now += 0.9
        found = await world.ask()
    assert isinstance(found, Miss)


async def test_a_dead_store_serves_from_copies_for_a_second(world: World) -> None:
    """And from then on says so, as without copies."""
    world.store.is_down = True
    assert await world.local_hit()
    world.now += VALID_SECONDS
    assert await world.ask() is BypassReason.STORE


async def test_a_store_that_came_back_empty_revives_no_copy(world: World) -> None:
    """Though it counts its changes from the beginning and may come to the same number."""
    await world.store.aclose()
    world.now += 5
    await world.store.publish_record(FIRST)
    await world.read_marks()
    assert isinstance(await world.ask(), Miss)


def test_an_old_read_never_prolongs() -> None:
    """Reads may end in another order than they began."""
    now = 100.0
    marks = KnownMarks(lambda: now)
    marks.saw("00", Marks(1, 1), 100.0)
    epoch = marks.epoch("00")
    marks.saw("00", Marks(1, 1), 99.5)
    now = 100.9
    assert marks.epoch("00") == epoch
    now = 101.0
    assert marks.epoch("00") is None
    marks.saw("00", Marks(1, 1), 101.0)
    assert marks.epoch("00") not in (epoch, None)
    marks.saw("00", None, 101.0)
    assert marks.epoch("00") is None


@dataclass
class Shelf:
    """An L0 alone."""

    now: float = 100.0

    def __post_init__(self) -> None:
        """Make it, with all tags read."""
        marks = KnownMarks(lambda: self.now)
        marks.saw_all({EntryName(CACHE, KEYSPACE, "t", DIGEST).tag: Marks(1, 1)}, self.now)
        self.cache = LocalCache(LocalSettings(3, 30, max_bytes=40_000), marks, lambda: self.now)

    def question(self, number: int) -> Question:
        """Return one of many questions."""
        return (KEYSPACE, "t", f"{number:02x}{DIGEST[2:]}", ())

    def keep(self, number: int, size_bytes: int = 10, digest: str = DIGEST) -> bool:
        """Keep an answer; tells whether it was."""
        name = EntryName(CACHE, KEYSPACE, "t", digest)
        entry = Entry("x", bytes(size_bytes), WALL, 60)
        self.now += 0.001
        self.cache.keep(self.question(number), name, entry, Marks(1, 1), self.now, 60)
        return self.cache.find(self.question(number)) is not None


KEYSPACE = FIRST.layers["Exact"].keyspace


def test_copies_are_bounded_by_number() -> None:
    """The one that was used longest ago goes first."""
    shelf = Shelf()
    assert all(shelf.keep(number) for number in range(3))
    assert shelf.cache.find(shelf.question(0))
    assert shelf.keep(3)
    kept = [number for number in range(4) if shelf.cache.find(shelf.question(number))]
    assert kept == [0, 2, 3]


def test_copies_are_bounded_by_size() -> None:
    """All together, and none may take the place of many."""
    shelf = Shelf()
    assert not shelf.keep(0, 5000 - OVERHEAD_BYTES + 1)
    assert shelf.keep(0, 5000 - OVERHEAD_BYTES)
    assert shelf.cache.size_bytes == 5000
    assert shelf.keep(0, 10)
    assert shelf.cache.size_bytes == OVERHEAD_BYTES + 10
    wide = LocalCache(LocalSettings(1000, 30, max_bytes=40_000), shelf.cache.marks, lambda: shelf.now)
    shelf.cache = wide
    for number in range(100):
        assert shelf.keep(number, 3000)
        assert wide.size_bytes <= 40_000
    assert len(wide) == 40_000 // (3000 + OVERHEAD_BYTES)


def test_what_is_remembered_of_changes_is_bounded() -> None:
    """A look-up that began before the oldest change that is remembered is kept by nobody."""
    shelf = Shelf()
    started = shelf.now
    shelf.now += 0.1
    shelf.cache.keys_changed([f"{{cw1:{CACHE}:00}}:x:{number}" for number in range(MOST_CHANGES + 1)])
    name, entry = EntryName(CACHE, KEYSPACE, "t", DIGEST), Entry("x", b"", WALL, 60)
    shelf.cache.keep(shelf.question(0), name, entry, Marks(1, 1), started, 60)
    assert len(shelf.cache) == 0
    assert shelf.keep(0)


class ReadStore(MemoryCacheStore):
    """A store that counts how often its marks are read, and can be told to fail."""

    reads = 0
    is_down = False

    async def read_marks(self, cache_id: str) -> dict[str, Marks]:
        """Count, then read."""
        self.reads += 1
        if self.is_down:
            raise StoreUnavailable("away")
        return await MemoryCacheStore.read_marks(self, cache_id)


async def test_the_upkeep_reads_marks_while_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read again and again while copies are asked for, through failures, and else not at all."""
    monkeypatch.setattr(local_upkeep, "READ_SECONDS", 0.001)
    store = ReadStore(time.monotonic)
    await store.publish_record(FIRST)
    local = LocalCache(LocalSettings(10, 30), KnownMarks(time.monotonic), time.monotonic)
    upkeep = LocalUpkeep(store, CACHE, local, time.monotonic)
    upkeep.start()

    async def read_more_often_than(times: int) -> None:
        async def is_read() -> bool:
            local.wanted()
            return store.reads > times

        await until(is_read)

    await asyncio.sleep(0.05)
    assert store.reads == 0
    await read_more_often_than(3)
    store.is_down = True
    await read_more_often_than(6)
    store.is_down = False
    await read_more_often_than(store.reads + 1)
    assert local.marks.epoch("00") is not None
    await asyncio.sleep(0.05)  # one read may have been under way
    reads = store.reads
    await asyncio.sleep(0.05)
    assert store.reads == reads
    await store.publish_record(SECOND)
    assert local.marks.epoch("00") is None
    await upkeep.aclose()
