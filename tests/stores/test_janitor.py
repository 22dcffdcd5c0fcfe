"""The janitor, on every store: what it empties, what it leaves alone, and what it says of it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
from redis.asyncio import Redis

from cachewright.errors import StoreError, StoreRefused, StoreUnavailable
from cachewright.keys.digest import EntryName
from cachewright.keys.generations import template_mark
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, PastKeyspace, Record
from cachewright.layers.entry import Entry, encode_dependence, encode_entry
from cachewright.layers.janitor import Drop, Janitor, JanitorSettings, Removal
from cachewright.layers.ticket import encode_ticket
from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.protocols import CacheStore
from cachewright.stores.reclaim import ReclaimReport, ReclaimState, SweepReport
from cachewright.stores.redis_entries import open_cache_store
from tests.stores.backdoors import MemoryBackdoor
from tests.stores.conftest import Subject
from tests.support.clocks import ManualClock
from tests.support.redis_servers import FLAVORS, Flavor, run_redis
from tests.support.waiting import until

HOUR = 3600.0
NOW = "2026-11-30T00:00:00Z"
WALL = 1_800_000_000.0


@dataclass
class Notes:
    """What a janitor told."""

    keys: dict[Removal, int] = field(default_factory=dict)
    reclaims: list[tuple[Keyspace, ReclaimReport]] = field(default_factory=list)
    sweeps: list[SweepReport] = field(default_factory=list)

    def removed(self, keys: int, why: Removal) -> None:
        """Add up."""
        self.keys[why] = self.keys.get(why, 0) + keys

    def reclaimed(self, past: PastKeyspace, report: ReclaimReport) -> None:
        """Keep."""
        self.reclaims.append((past.keyspace, report))

    def swept(self, report: SweepReport) -> None:
        """Keep."""
        self.sweeps.append(report)


@dataclass
class World:
    """A store, its record, and janitors over it in a time of their own."""

    store: CacheStore
    cache_id: str
    record: Record = field(init=False)
    clock: ManualClock = field(default_factory=ManualClock)
    notes: Notes = field(default_factory=Notes)

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.record = Record(self.cache_id, 0, 0)

    def janitor(
        self, drops: Mapping[str, Drop] | None = None, sleep: Callable[[float], Awaitable[None]] | None = None
    ) -> Janitor:
        """Make one more janitor."""
        settings = JanitorSettings(self.cache_id, 10_000, HOUR, drops or {})
        return Janitor(
            self.store, settings, self.notes, self.clock, lambda: WALL, sleep=sleep or self.clock.sleep
        )

    async def switch(self, keyspace_id: str, layer: str = "Exact") -> Keyspace:
        """Make a keyspace active, and publish."""
        self.record = self.record.with_layer(layer, keyspace_id * 16, "binding", NOW)
        await self.store.publish_record(self.record)
        return self.record.layers[layer].keyspace

    async def give_up(self, state: KeyspaceState, *keyspaces: Keyspace, layer: str = "Exact") -> None:
        """List keyspaces as past, in one state, and publish."""
        past = tuple(PastKeyspace(layer, one, "binding", state, NOW, NOW) for one in keyspaces)
        others = tuple(one for one in self.record.past if one.keyspace not in keyspaces)
        self.record = replace(self.record, revision=self.record.revision + 1, past=(*others, *past))
        await self.store.publish_record(self.record)

    async def forget(self, keyspace: Keyspace) -> None:
        """Take a past keyspace out of the record, and publish."""
        left = tuple(one for one in self.record.past if one.keyspace != keyspace)
        self.record = replace(self.record, revision=self.record.revision + 1, past=left)
        await self.store.publish_record(self.record)

    async def fill(self, keyspace: Keyspace, count: int) -> list[EntryName]:
        """Store entries in the active keyspace."""
        names = [EntryName(self.cache_id, keyspace, "tag", f"{n:064x}"[::-1]) for n in range(count)]

        async def write(name: EntryName) -> None:
            marks = (await self.store.find(name)).marks
            assert marks is not None
            assert await self.store.write(name, b"x" * 100, 600, marks)

        for start in range(0, count, 10):
            await asyncio.gather(*map(write, names[start : start + 10]))
        return names

    async def left_of(self, names: list[EntryName]) -> int:
        """Count the entries that are still there."""
        found = [await self.store.find(name) for name in names]
        return sum(1 for one in found if one.value is not None)

    async def report(self, keyspace: Keyspace) -> ReclaimReport | None:
        """Read the report on a keyspace, as the operator does."""
        return (await self.store.read_reclaims(self.cache_id, [keyspace])).get(keyspace)


@pytest.fixture
def world(subject: Subject) -> World:
    """On each kind of store."""
    return World(subject.store, subject.cache_id)


@pytest.fixture
def memory() -> World:
    """For what does not depend on the store."""
    return World(MemoryCacheStore(time.monotonic), "c" * 16)


async def test_only_what_is_being_deleted_is_emptied(world: World) -> None:
    """Active and retained keyspaces keep every entry; the report says how much went."""
    deleting = await world.switch("a")
    gone = await world.fill(deleting, 450)
    retained = await world.switch("b")
    kept = await world.fill(retained, 30)
    active = await world.switch("c")
    kept += await world.fill(active, 30)
    await world.give_up(KeyspaceState.RETAINED, retained)
    await world.give_up(KeyspaceState.DELETING, deleting)
    await world.janitor().work(world.record)
    assert await world.left_of(gone) == 0
    assert await world.left_of(kept) == 60
    assert await world.report(deleting) == ReclaimReport(ReclaimState.DONE, 450, "", WALL)
    assert await world.report(retained) is None
    assert world.notes.keys[Removal.KEYSPACE] == 450
    assert [keyspace for keyspace, _ in world.notes.reclaims] == [deleting]


@pytest.mark.parametrize("flavor", FLAVORS)
async def test_foreign_keys_survive(flavor: Flavor) -> None:
    """Keys that look like ours but for the cache, and keys of other applications, in the same database."""
    with run_redis(flavor) as server:
        world = World(open_cache_store(server.url("gateway")), server.cache_id)
        deleting = await world.switch("a")
        ours = await world.fill(deleting, 300)
        foreign = {name.key.replace(server.cache_id, "f" * 16): b"theirs" for name in ours[:50]}
        foreign |= {f"session:{number}": b"x" for number in range(50)}
        foreign |= {f"x{name.key}": b"x" for name in ours[:10]}
        async with Redis.from_url(server.url("root")) as root:
            await root.mset(foreign)
            await world.switch("b")
            await world.give_up(KeyspaceState.DELETING, deleting)
            await world.janitor().work(world.record)
            assert await world.left_of(ours) == 0
            assert await root.mget(list(foreign)) == list(foreign.values())
        await world.store.aclose()


async def test_a_done_keyspace_is_not_looked_for_again(memory: World) -> None:
    """The report is left until the record no longer names the keyspace, and then goes."""
    deleting = await memory.switch("a")
    await memory.switch("b")
    await memory.give_up(KeyspaceState.DELETING, deleting)
    janitor = memory.janitor()
    await janitor.work(memory.record)
    walked = memory.clock.slept
    await janitor.work(memory.record)
    assert memory.clock.slept == walked
    assert await memory.report(deleting) is not None
    await memory.forget(deleting)
    memory.clock.now += HOUR
    await memory.store.write_sweep(memory.cache_id, SweepReport({}), 0)
    await janitor.work(memory.record)
    assert await memory.report(deleting) is None


async def test_of_many_janitors_one_works(world: World) -> None:
    """The others leave without waiting, and none of them reports."""
    deleting = await world.switch("a")
    await world.fill(deleting, 300)
    await world.switch("b")
    await world.give_up(KeyspaceState.DELETING, deleting)
    await asyncio.gather(*(world.janitor(sleep=asyncio.sleep).work(world.record) for _ in range(5)))
    assert [report.removed for _, report in world.notes.reclaims] == [300]


async def test_the_next_janitor_goes_on_where_one_was_killed(world: World) -> None:
    """What was removed stays removed and is counted once."""
    deleting = await world.switch("a")
    gone = await world.fill(deleting, 900)
    await world.switch("b")
    await world.give_up(KeyspaceState.DELETING, deleting)
    steps = 0

    async def dies_after_a_while(seconds: float) -> None:
        nonlocal steps
        steps += 1
        await world.clock.sleep(seconds + 6)  # so that each step reports
        if steps == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await world.janitor(sleep=dies_after_a_while).work(world.record)
    report = await world.report(deleting)
    assert report is not None
    assert report.state is ReclaimState.RUNNING
    assert 0 < await world.left_of(gone) < 900
    await world.janitor().work(world.record)
    assert await world.left_of(gone) == 0
    done = await world.report(deleting)
    assert done is not None
    assert done.state is ReclaimState.DONE
    assert world.notes.keys[Removal.KEYSPACE] == 900


async def test_a_store_that_lags_is_given_the_record_first(world: World) -> None:
    """Nothing is emptied while a hash tag still lets writes into the keyspace."""
    deleting = await world.switch("a")
    late = (await world.fill(deleting, 1))[0]
    seen = (await world.store.find(late)).marks
    assert seen is not None
    revised = replace(
        world.record,
        revision=world.record.revision + 1,
        layers={},
        past=(PastKeyspace("Exact", deleting, "binding", KeyspaceState.DELETING, NOW, NOW),),
    )
    await world.janitor().work(revised)
    assert not await world.store.write(late, b"late", 60, seen)
    assert await world.left_of([late]) == 0


async def test_what_lies_elsewhere_goes_too(memory: World) -> None:
    """A layer's other store is told of the keyspace, after Redis was emptied and before it is done."""
    semantic = await memory.switch("a", "Semantic")
    await memory.fill(semantic, 10)
    await memory.switch("b", "Semantic")
    await memory.give_up(KeyspaceState.DELETING, semantic, layer="Semantic")
    dropped: list[tuple[Keyspace, ReclaimReport | None]] = []

    async def drop(keyspace: Keyspace) -> None:
        dropped.append((keyspace, await memory.report(keyspace)))

    await memory.janitor({"Semantic": drop}).work(memory.record)
    ((keyspace, before),) = dropped
    assert keyspace == semantic
    assert before is not None
    assert before.state is ReclaimState.RUNNING
    done = await memory.report(semantic)
    assert done is not None
    assert done.state is ReclaimState.DONE


async def test_a_keyspace_of_salts_is_done_without_a_walk(memory: World) -> None:
    """What it names lies in the engines: nothing is looked for under it, and the record may forget it."""
    salts = await memory.switch("a", "Prefix")
    await memory.fill(salts, 3)
    await memory.switch("b", "Prefix")
    await memory.give_up(KeyspaceState.DELETING, salts, layer="Prefix")
    await memory.janitor().work(memory.record)
    done = await memory.report(salts)
    assert done is not None
    assert done.state is ReclaimState.DONE
    assert Removal.KEYSPACE not in memory.notes.keys


async def test_a_failure_is_reported_and_tried_again(memory: World) -> None:
    """Until then it stands, others are reclaimed meanwhile, and the next try comes after a pause."""
    semantic, exact = await memory.switch("a", "Semantic"), await memory.switch("b")
    for letter, layer in (("c", "Semantic"), ("d", "Exact")):
        await memory.switch(letter, layer)
    await memory.give_up(KeyspaceState.DELETING, semantic, layer="Semantic")
    await memory.give_up(KeyspaceState.DELETING, exact)
    tries = 0

    async def fails_twice(_: Keyspace) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise StoreRefused("the collection has no marker of this cache")

    janitor = memory.janitor({"Semantic": fails_twice})
    await janitor.work(memory.record)
    report = await memory.report(semantic)
    assert report is not None
    assert (report.state, report.problem) == (
        ReclaimState.FAILED,
        "the collection has no marker of this cache",
    )
    other = await memory.report(exact)
    assert other is not None
    assert other.state is ReclaimState.DONE
    await janitor.work(memory.record)
    assert tries == 1
    for expected in (ReclaimState.FAILED, ReclaimState.DONE):
        memory.clock.now += 61
        await janitor.work(memory.record)
        report = await memory.report(semantic)
        assert report is not None
        assert report.state is expected
    assert report.problem == ""


async def test_without_its_store_a_keyspace_is_not_done(memory: World) -> None:
    """Vectors may still lie somewhere; whoever took the store out of the object is told."""
    semantic = await memory.switch("a", "Semantic")
    await memory.switch("b", "Semantic")
    await memory.give_up(KeyspaceState.DELETING, semantic, layer="Semantic")
    await memory.janitor().work(memory.record)
    report = await memory.report(semantic)
    assert report is not None
    assert report.state is ReclaimState.FAILED
    assert "is not configured" in report.problem


async def test_a_sweep_counts_and_removes_strays(world: World) -> None:
    """Entries of a keyspace that the record no longer names go; a younger one than it knows stays."""
    stray = await world.switch("a")
    gone = await world.fill(stray, 120)
    active = await world.switch("b")
    kept = await world.fill(active, 70)
    await world.janitor().work(world.record)
    assert await world.left_of(gone) == 0
    (report,) = world.notes.sweeps
    assert (report.entries, report.removed, report.ended_at) == ({active: 70}, 120, WALL)
    assert await world.store.read_sweep(world.cache_id) == report
    old_record = world.record
    young = await world.switch("c")
    kept += await world.fill(young, 30)
    await world.store.write_sweep(world.cache_id, report, 0.001)
    await asyncio.sleep(0.01)
    await world.janitor().work(old_record)
    assert len(world.notes.sweeps) == 2
    assert await world.left_of(kept) == 100


async def test_sweeps_keep_their_interval(memory: World) -> None:
    """The next one begins an interval after the last one ended, whoever made it."""
    store = MemoryCacheStore(memory.clock)
    memory.store = store
    await memory.switch("a")
    for sweeps in (1, 1, 1):
        await memory.janitor().work(memory.record)
        assert len(memory.notes.sweeps) == sweeps
        memory.clock.now += HOUR / 4
    memory.clock.now += HOUR / 4
    await memory.janitor().work(memory.record)
    assert len(memory.notes.sweeps) == 2


class Dying(MemoryCacheStore):
    """A store that fails while it is being emptied."""

    async def unlink(self, *_: object) -> int:
        """Fail."""
        raise StoreUnavailable("gone")


async def test_a_store_that_dies_leaves_a_report(memory: World) -> None:
    """The failure is no crash, and tells nothing of keys."""
    memory.store = Dying(memory.clock)
    deleting = await memory.switch("a")
    await memory.fill(deleting, 10)
    await memory.switch("b")
    await memory.give_up(KeyspaceState.DELETING, deleting)
    await memory.janitor().work(memory.record)
    assert memory.notes.reclaims == [(deleting, ReclaimReport(ReclaimState.FAILED, 0, "gone", WALL))]


@pytest.mark.parametrize("flavor", FLAVORS)
async def test_a_store_that_is_away_raises(flavor: Flavor) -> None:
    """Whoever drives the janitor hears of it and comes back later."""
    with run_redis(flavor) as server:
        world = World(open_cache_store(server.url("gateway")), server.cache_id)
        deleting = await world.switch("a")
        await world.give_up(KeyspaceState.DELETING, deleting)
        server.kill()
        with pytest.raises(StoreError):
            await world.janitor().work(world.record)
        await world.store.aclose()


class CountingHeads(MemoryCacheStore):
    """A store that counts how many entries were looked into."""

    heads: ClassVar[list[int]] = []

    async def read_heads(self, names: Sequence[EntryName], most_bytes: int) -> list[bytes]:
        """Count, and read."""
        self.heads.append(len(names))
        return await MemoryCacheStore.read_heads(self, names, most_bytes)


def answer(name: EntryName, depends_on: dict[str, int]) -> bytes:
    """Encode an entry that depends on counters."""
    dependence = encode_dependence(list(depends_on), list(depends_on.values()))
    return encode_entry(Entry("application/json", b"{}", WALL, 600, dependence=dependence), name, b"k" * 32)


async def stored(world: World, keyspace: Keyspace, depends_on: dict[str, int], count: int) -> list[EntryName]:
    """Store answers that depend on counters at these values."""
    names = []
    for number in range(count):
        text = f"{sorted(depends_on.items())} {number}"
        name = EntryName(world.cache_id, keyspace, "tag", hashlib.sha256(text.encode()).hexdigest())
        marks = (await world.store.find(name)).marks
        assert marks is not None
        assert await world.store.write(name, answer(name, depends_on), 600, marks)
        names.append(name)
    return names


async def test_a_sweep_removes_what_was_retracted(world: World) -> None:
    """From active and retained keyspaces; what depends on nothing that was raised, or came later, stays."""
    old = await world.switch("a")
    documents = {f"d:{number:024d}": 0 for number in range(30)}
    gone = await stored(world, old, {"t:acme": 0, "d:manual": 0}, 20)
    kept = await stored(world, old, {"t:acme": 0, "d:other": 0}, 20)
    active = await world.switch("b")
    await world.give_up(KeyspaceState.RETAINED, old)
    gone += await stored(world, active, {"t:beta": 0, **documents, "d:manual": 0}, 3)
    kept += await stored(world, active, {"t:beta": 0, **documents}, 3)
    await world.store.raise_generations(world.cache_id, ["d:manual"])
    kept += await stored(world, active, {"t:acme": 0, "d:manual": 1}, 5)
    await world.janitor().work(world.record)
    assert await world.left_of(gone) == 0
    assert await world.left_of(kept) == len(kept)
    (report,) = world.notes.sweeps
    assert (report.removed, report.entries) == (23, {old: 20, active: 8})


async def test_entries_are_looked_into_only_after_a_change(memory: World) -> None:
    """A sweep that finds the marks as the last one left them has nothing to look for in them."""
    CountingHeads.heads.clear()
    memory.store = CountingHeads(memory.clock)
    active = await memory.switch("a")
    await stored(memory, active, {"t:acme": 0}, 7)
    for raised, looked_into in ((False, [7]), (False, [7]), (True, [7, 7])):
        if raised:
            await memory.store.raise_generations(memory.cache_id, ["d:manual"])
        memory.clock.now += 2 * HOUR
        await memory.janitor().work(memory.record)
        assert CountingHeads.heads == looked_into


async def sweep_again(world: World, **settings: Any) -> SweepReport:
    """Sweep after the pause that the last sweep asked for; returns what it found."""
    await world.store.write_sweep(world.cache_id, await last_sweep(world), 0.001)

    async def is_due() -> bool:
        return await world.store.sweep_is_due(world.cache_id)

    await until(is_due)
    made = replace(JanitorSettings(world.cache_id, 1_000_000, HOUR), **settings)
    await Janitor(world.store, made, world.notes, world.clock, lambda: WALL, sleep=world.clock.sleep).work(
        world.record
    )
    return await last_sweep(world)


async def last_sweep(world: World) -> SweepReport:
    """Read the report on the last sweep; one that found nothing where there was none."""
    return await world.store.read_sweep(world.cache_id) or SweepReport({})


async def test_counters_that_nothing_depends_on_are_dropped(world: World) -> None:
    """By the first sweep that finds nothing against it; those in use stay, and nothing retracted returns."""
    active = await world.switch("a")
    for _ in range(2):
        await world.store.raise_generations(world.cache_id, ["d:used", "t:idle", "l:Exact"])
    old = await stored(world, active, {"d:used": 1, "t:idle": 1}, 3)
    await stored(world, active, {"d:used": 2}, 3)
    assert (await sweep_again(world)).removed == 3
    assert await world.store.list_generations(world.cache_id) == {"d:used": 2, "t:idle": 2}
    await sweep_again(world)
    assert await world.store.list_generations(world.cache_id) == {"d:used": 2}
    assert await world.left_of(old) == 0
    await world.store.raise_generations(world.cache_id, ["t:idle"])
    assert (await world.store.list_generations(world.cache_id))["t:idle"] == 3
    for _ in range(2):
        await sweep_again(world)
    assert await world.store.list_generations(world.cache_id) == {"d:used": 2}


async def test_tickets_tell_what_they_depend_on(world: World) -> None:
    """Retracted ones are removed, and counters that others need are kept; a partition's mark is no ticket."""
    active = await world.switch("a", "Semantic")
    await world.store.raise_generations(world.cache_id, ["t:acme", "d:gone", "t:idle"])
    values = [
        b"1",
        encode_ticket(b"\x03" * 16, encode_dependence(["t:acme", "d:gone"], [1, 0])) + b"l" * 49,
        encode_ticket(b"\x03" * 16, encode_dependence([f"d:{n:0200d}" for n in range(4)], [0] * 4)),
        encode_ticket(b"\x03" * 16, encode_dependence(["t:acme"], [1])),
    ]
    names = [EntryName(world.cache_id, active, "tag", f"{n:064x}"[::-1]) for n in range(len(values))]
    for name, value in zip(names, values, strict=True):
        marks = (await world.store.find(name)).marks
        assert marks is not None
        assert await world.store.write(name, value, 600, marks)
    for _ in range(2):
        await sweep_again(world)
    assert [await world.left_of([name]) for name in names] == [1, 0, 1, 1]
    assert await world.store.list_generations(world.cache_id) == {"t:acme": 1}


async def test_a_sweep_that_cannot_read_everything_drops_nothing(memory: World) -> None:
    """A ticket of an unknown form, or an entry of a younger keyspace than the record's, may depend on it."""
    tickets = await memory.switch("a", "Semantic")
    await memory.store.raise_generations(memory.cache_id, ["t:idle"])
    strange = EntryName(memory.cache_id, tickets, "tag", "ab" * 32)
    marks = (await memory.store.find(strange)).marks
    assert marks is not None
    await memory.store.write(strange, b"n" * 16, 600, marks)
    before = memory.record
    for _ in range(2):
        await sweep_again(memory)
    assert await memory.store.list_generations(memory.cache_id) == {"t:idle": 1}
    assert await memory.store.remove(strange)
    await stored(memory, await memory.switch("b"), {"t:idle": 0}, 1)
    memory.record = before
    for _ in range(2):
        await sweep_again(memory)
    assert await memory.store.list_generations(memory.cache_id) == {"t:idle": 1}


class Lagging(MemoryCacheStore):
    """A store that fails over, in the middle of each walk, to what it held before anything was removed."""

    async def unlink(self, cache_id: str, keyspace: Keyspace | None, keys: Sequence[str]) -> int:
        """Remove, and forget that it was done."""
        backdoor = MemoryBackdoor(self)
        removed = await MemoryCacheStore.unlink(self, cache_id, keyspace, keys)
        backdoor.go_back()
        return removed


async def test_a_failover_behind_a_sweep_brings_nothing_back(memory: World) -> None:
    """What was removed lies there again, and its counter stands against it all the same."""
    memory.store = Lagging(time.monotonic)
    active = await memory.switch("a")
    old = await stored(memory, active, {"t:acme": 0}, 3)
    await memory.store.raise_generations(memory.cache_id, ["t:acme"])
    for _ in range(3):
        assert (await sweep_again(memory)).removed == 3
        assert await memory.left_of(old) == 3
        assert await memory.store.list_generations(memory.cache_id) == {"t:acme": 1}


async def test_old_templates_are_swept(memory: World) -> None:
    """From keyspaces in use, an interval after they were stored at the soonest; not from retained ones."""
    templates = {name: template_mark(b"k" * 32, name) for name in ("v1", "v2")}
    retained = await memory.switch("a")
    kept = await stored(memory, retained, {"t:acme": 0, templates["v1"]: 0}, 2)
    active = await memory.switch("b")
    await memory.give_up(KeyspaceState.RETAINED, retained)
    gone = await stored(memory, active, {"t:acme": 0, templates["v1"]: 0}, 3)
    kept += await stored(memory, active, {"t:acme": 0, templates["v2"]: 0}, 3)
    kept += await stored(memory, active, {"t:acme": 0}, 3)

    async def removed_by(interval_seconds: float, *names: str) -> int:
        marks = frozenset(templates[name] for name in names)
        report = await sweep_again(memory, templates=marks, sweep_interval_seconds=interval_seconds)
        return report.removed

    assert await removed_by(-1, "v1", "v2") == 0
    assert await removed_by(HOUR, "v2") == 0
    assert await removed_by(-1, "v2") == 3
    assert (await memory.left_of(gone), await memory.left_of(kept)) == (0, len(kept))
    assert (await sweep_again(memory)).removed == 0
