"""What every store promises, on every implementation."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from cachewright.keys.credentials import MarkerName
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, Record
from cachewright.keys.scheme import TAGS
from cachewright.stores.probes import ProbeReport, ProbeState
from cachewright.stores.protocols import Found, Marks, WriteOutcome
from tests.stores.conftest import Subject
from tests.support.waiting import until


async def published(subject: Subject, revision: int = 1) -> Marks:
    """Publish a record and return the marks that a look-up sees then."""
    await subject.store.publish_record(subject.record(revision))
    marks = (await subject.store.find(subject.name())).marks
    assert marks is not None
    return marks


async def test_an_empty_store_holds_nothing(subject: Subject) -> None:
    """Neither a record nor an entry, and no error."""
    assert await subject.store.read_record(subject.cache_id) is None
    assert await subject.store.find(subject.name()) == Found(None, None)
    await subject.store.ping()


async def test_a_published_record_is_read_back(subject: Subject) -> None:
    """Whole, and its revision is what every look-up sees."""
    record = subject.record(3)
    assert await subject.store.publish_record(record) == 3
    assert await subject.store.read_record(subject.cache_id) == record
    for digest in ("00" * 32, "3f" * 32, "ff" * 32):
        marks = (await subject.store.find(subject.name(digest))).marks
        assert marks is not None
        assert marks.revision == 3


async def test_only_a_greater_revision_replaces(subject: Subject) -> None:
    """Publishing less or the same changes nothing and tells what is held."""
    marks = await published(subject, 5)
    assert await subject.store.publish_record(subject.record(4)) == 5
    assert await subject.store.publish_record(subject.record(5, "f" * 16)) == 5
    assert await subject.store.read_record(subject.cache_id) == subject.record(5)
    assert (await subject.store.find(subject.name())).marks == marks


async def test_a_switch_raises_the_changes(subject: Subject) -> None:
    """Each new revision is also one more change, by a step that nobody can tell before."""
    seen = [await published(subject, revision) for revision in range(1, 9)]
    assert [marks.revision for marks in seen] == list(range(1, 9))
    steps = [after.changes - before.changes for before, after in pairwise(seen)]
    assert min(steps) > 0
    assert len(set(steps)) > 1


async def test_an_entry_is_found_as_written(subject: Subject) -> None:
    """Every byte of it, under its own name only."""
    marks = await published(subject)
    value = bytes(range(256))
    assert await subject.store.write(subject.name(), value, 60, marks)
    assert await subject.store.find(subject.name()) == Found(marks, value)
    assert (await subject.store.find(subject.name("ac" * 32))).value is None


async def test_the_newest_write_wins(subject: Subject) -> None:
    """A refreshed answer replaces the old one."""
    marks = await published(subject)
    for value in (b"old", b"new"):
        assert await subject.store.write(subject.name(), value, 60, marks)
    assert (await subject.store.find(subject.name())).value == b"new"


async def test_a_write_from_before_a_switch_is_dropped(subject: Subject) -> None:
    """An answer computed before the record changed cannot come back after it."""
    marks = await published(subject, 1)
    await published(subject, 2)
    assert not await subject.store.write(subject.name(), b"late", 60, marks)
    assert (await subject.store.find(subject.name())).value is None


@pytest.mark.parametrize("other", [(1, 0), (0, 1), (0, -1), (-1, 0)])
async def test_a_write_needs_the_very_marks(subject: Subject, other: tuple[int, int]) -> None:
    """Another revision or another number of changes is refused."""
    marks = await published(subject, 1)
    seen = Marks(marks.revision + other[0], marks.changes + other[1])
    assert not await subject.store.write(subject.name(), b"x", 60, seen)
    assert (await subject.store.find(subject.name())).value is None


async def test_a_write_into_an_emptied_store_is_dropped(subject: Subject) -> None:
    """Without a record nothing is written, so no entry outlives what named its keyspace."""
    assert not await subject.store.write(subject.name(), b"x", 60, Marks(1, 1))
    assert await subject.store.find(subject.name()) == Found(None, None)


async def test_only_keyspaces_of_the_record_are_written_to(subject: Subject) -> None:
    """Whatever a gateway believes: a keyspace that the store's copy does not name takes nothing."""
    marks = await published(subject)
    name = subject.name()
    for keyspace in (Keyspace("f" * 16, 1), replace(name.keyspace, incarnation=11)):
        other = replace(name, keyspace=keyspace)
        assert await subject.store.write(other, b"x", 60, marks) is WriteOutcome.READONLY
        assert (await subject.store.find(other)).value is None
    assert await subject.store.write(name, b"x", 60, marks) is WriteOutcome.WRITTEN


async def test_a_keyspace_that_is_readonly_is_read_and_not_written(subject: Subject) -> None:
    """Until a later record makes it active again; a write from between is dropped for good."""
    active = subject.record(1)
    marks = await published(subject, 1)
    assert await subject.store.write(subject.name(), b"x", 60, marks)
    layers = {"Exact": replace(active.layers["Exact"], state=KeyspaceState.READONLY)}
    await subject.store.publish_record(replace(active, revision=2, layers=layers))
    found = await subject.store.find(subject.name())
    assert found.value == b"x"
    assert found.marks is not None
    assert await subject.store.write(subject.name(), b"y", 60, marks) is WriteOutcome.CHANGED
    assert await subject.store.write(subject.name(), b"y", 60, found.marks) is WriteOutcome.READONLY
    await subject.store.publish_record(replace(active, revision=3))
    after = (await subject.store.find(subject.name())).marks
    assert after is not None
    assert await subject.store.write(subject.name(), b"y", 60, found.marks) is WriteOutcome.CHANGED
    assert await subject.store.write(subject.name(), b"y", 60, after) is WriteOutcome.WRITTEN


async def seen_marks(subject: Subject) -> Marks:
    """Return the marks that a look-up sees now."""
    marks = (await subject.store.find(subject.name())).marks
    assert marks is not None
    return marks


def fenced(subject: Subject, revision: int) -> Record:
    """Return a record whose keyspace is bound to a workload, and another layer's that is not."""
    record = replace(subject.record(revision), fenced=True)
    layer = replace(record.layers["Exact"], model_version="v1", workload="w1")
    free = replace(layer, keyspace=Keyspace("e" * 16, 77), model_version="", workload="")
    return replace(record, layers={"Exact": layer, "Embedding": free})


async def test_a_fenced_keyspace_is_written_to_while_the_heart_beats(subject: Subject) -> None:
    """Not before, and not after; what does not depend on the model needs no heart."""
    await subject.store.publish_record(fenced(subject, 1))
    marks = (await subject.store.find(subject.name())).marks
    assert marks is not None
    free = replace(subject.name(), keyspace=Keyspace("e" * 16, 77))
    assert await subject.store.write(subject.name(), b"x", 60, marks) is WriteOutcome.READONLY
    assert await subject.store.write(free, b"x", 60, marks)
    assert await subject.store.beat(subject.cache_id, 1, 60)
    marks = await seen_marks(subject)
    assert await subject.store.write(subject.name(), b"x", 60, marks)
    assert await subject.store.beat(subject.cache_id, 1, 0.05)  # a later one counts, also where it is shorter
    assert await seen_marks(subject) == marks

    async def is_refused() -> bool:
        return await subject.store.write(subject.name(), b"x", 60, marks) is WriteOutcome.READONLY

    await until(is_refused)
    assert await subject.store.write(free, b"x", 60, marks)
    assert (await subject.store.find(subject.name())).value == b"x"


async def test_a_write_from_before_a_pause_of_the_heart_is_dropped(subject: Subject) -> None:
    """The pods may have been others meanwhile, and nobody looked."""
    await subject.store.publish_record(fenced(subject, 1))
    assert await subject.store.beat(subject.cache_id, 1, 0.05)
    marks = await seen_marks(subject)

    async def is_over() -> bool:
        return await subject.store.write(subject.name(), b"x", 60, marks) is WriteOutcome.READONLY

    await until(is_over)
    assert await subject.store.beat(subject.cache_id, 1, 60)
    assert await subject.store.write(subject.name(), b"late", 60, marks) is WriteOutcome.CHANGED
    assert await subject.store.write(subject.name(), b"x", 60, await seen_marks(subject))


async def test_the_heart_beats_for_the_revision_that_is_held(subject: Subject) -> None:
    """Neither an empty store nor one that holds another record takes a heartbeat."""
    assert not await subject.store.beat(subject.cache_id, 1, 60)
    await subject.store.publish_record(fenced(subject, 2))
    for revision in (1, 3):
        assert not await subject.store.beat(subject.cache_id, revision, 60)
    marks = (await subject.store.find(subject.name())).marks
    assert marks is not None
    assert await subject.store.write(subject.name(), b"x", 60, marks) is WriteOutcome.READONLY
    assert await subject.store.beat(subject.cache_id, 2, 60)


async def test_a_removed_entry_is_gone(subject: Subject) -> None:
    """It is told whether there was one; others stay."""
    marks = await published(subject)
    other = subject.name("ac" * 32)
    for name in (subject.name(), other):
        assert await subject.store.write(name, b"x", 60, marks)
    assert await subject.store.remove(subject.name())
    assert (await subject.store.find(subject.name())).value is None
    assert (await subject.store.find(other)).value == b"x"
    assert not await subject.store.remove(subject.name())


async def test_a_write_from_before_a_removal_is_dropped(subject: Subject) -> None:
    """An answer that was on its way when its entry was removed cannot bring it back."""
    marks = await published(subject)
    await subject.store.remove(subject.name())
    assert not await subject.store.write(subject.name(), b"late", 60, marks)
    after = (await subject.store.find(subject.name())).marks
    assert after is not None
    assert after.revision == marks.revision
    assert after.changes > marks.changes
    assert await subject.store.write(subject.name(), b"fresh", 60, after)


async def test_an_entry_ends_with_its_ttl(subject: Subject) -> None:
    """It is gone when its time is over, however often it was read."""
    marks = await published(subject)
    assert await subject.store.write(subject.name(), b"x", 0.1, marks)

    async def is_gone() -> bool:
        return (await subject.store.find(subject.name())).value is None

    await until(is_gone)


async def test_calls_do_not_mix_up_their_answers(subject: Subject) -> None:
    """Many calls at once each get their own answer."""
    marks = await published(subject)
    digests = [f"{number:064x}" for number in range(300)]
    await asyncio.gather(
        *(subject.store.write(subject.name(digest), digest.encode(), 60, marks) for digest in digests)
    )
    found = await asyncio.gather(*(subject.store.find(subject.name(digest)) for digest in digests))
    assert [entry.value for entry in found] == [digest.encode() for digest in digests]


COUNTERS = ("t:acme", "d:manual")


async def generations(subject: Subject, digest: str = "ab" * 32) -> tuple[int, ...]:
    """Return what a look-up of an entry reads of the counters."""
    return (await subject.store.find(subject.name(digest), COUNTERS)).generations


async def test_a_counter_that_was_never_raised_is_zero(subject: Subject) -> None:
    """In an empty store too; without counters none are read."""
    assert await generations(subject) == (0, 0)
    assert (await subject.store.find(subject.name())).generations == ()


async def test_a_raised_counter_is_seen_under_every_tag(subject: Subject) -> None:
    """By one each time, wherever an entry lies, and no other counter is touched."""
    await published(subject)
    for _ in range(2):
        await subject.store.raise_generations(subject.cache_id, ["d:manual", "d:other"])
    for tag in range(64):
        assert await generations(subject, f"{tag:02x}" * 32) == (0, 2)


async def test_a_write_from_before_a_raise_is_dropped(subject: Subject) -> None:
    """An answer computed before a retraction cannot come back after it; entries stay as they are."""
    marks = await published(subject)
    assert await subject.store.write(subject.name(), b"old", 60, marks)
    raised = await subject.store.raise_generations(subject.cache_id, COUNTERS)
    assert raised.keys() == set(TAGS)
    assert raised[subject.name().tag].before == marks.changes
    assert not await subject.store.write(subject.name(), b"late", 60, marks)
    found = await subject.store.find(subject.name())
    assert found.value == b"old"
    assert found.marks is not None
    assert found.marks.revision == marks.revision
    assert found.marks.changes == raised[subject.name().tag].after > marks.changes


async def test_a_dropped_counter_counts_as_never_raised(subject: Subject) -> None:
    """Under every tag, as a change of its own; raised again, it begins above all that were dropped."""
    store, cache_id = subject.store, subject.cache_id
    await published(subject)
    for counters in (COUNTERS, COUNTERS, ["d:manual", "d:kept", "l:Exact"]):
        await store.raise_generations(cache_id, counters)
    assert await store.list_generations(cache_id) == {"t:acme": 2, "d:manual": 3, "d:kept": 1}
    seen = await store.read_marks(cache_id)
    marks = (await store.find(subject.name())).marks
    assert marks is not None
    assert await store.drop_generations(cache_id, {"t:acme": 2, "d:manual": 3, "d:kept": 2}, seen) == 2
    assert await store.list_generations(cache_id) == {"d:kept": 1}
    for tag in range(64):
        assert await generations(subject, f"{tag:02x}" * 32) == (0, 0)
    assert not await store.write(subject.name(), b"late", 60, marks)
    for expected in (4, 5):
        await store.raise_generations(cache_id, ["t:acme", "d:kept"])
        assert await store.list_generations(cache_id) == {"d:kept": expected, "t:acme": expected}


async def test_no_counter_is_dropped_behind_a_change(subject: Subject) -> None:
    """What was raised or removed since may stand against an entry that a walk did not see."""
    store, cache_id = subject.store, subject.cache_id
    await published(subject)
    await store.raise_generations(cache_id, COUNTERS)
    seen = await store.read_marks(cache_id)
    await store.raise_generations(cache_id, ())
    assert await store.drop_generations(cache_id, {"t:acme": 1}, seen) == 0
    assert await store.drop_generations(cache_id, {"t:acme": 1}, {}) == 0
    assert await generations(subject) == (1, 1)


async def test_counters_outlive_a_switch(subject: Subject) -> None:
    """A new record lowers none, and a store that was raised before its first record keeps them."""
    await subject.store.raise_generations(subject.cache_id, COUNTERS)
    await published(subject, 1)
    await published(subject, 2)
    assert await generations(subject) == (1, 1)


async def test_counters_are_read_as_low_as_anywhere(subject: Subject) -> None:
    """0 where they were never raised, also in an empty store."""
    assert await subject.store.read_generations(subject.cache_id, COUNTERS) == (0, 0)
    await subject.store.raise_generations(subject.cache_id, ["d:manual"])
    await subject.store.raise_generations(subject.cache_id, COUNTERS)
    assert await subject.store.read_generations(subject.cache_id, COUNTERS) == (1, 2)


async def test_heads_are_what_entries_begin_with(subject: Subject) -> None:
    """In the order of the names; nothing where there is no entry."""
    marks = await published(subject)
    names = [subject.name(digest * 32) for digest in ("ab", "ac", "ad")]
    assert await subject.store.write(names[0], bytes(range(100)), 60, marks)
    assert await subject.store.write(names[2], b"short", 60, marks)
    assert await subject.store.read_heads(names, 10) == [bytes(range(10)), b"", b"short"]
    assert await subject.store.read_heads([], 10) == []


MARKER = MarkerName("", "7c" * 32)


async def test_a_marker_stays_until_its_ttl_ends(subject: Subject) -> None:
    """Setting it anew prolongs it; nobody else's is touched."""
    name = replace(MARKER, cache_id=subject.cache_id)
    other = replace(name, digest="7d" * 32)
    assert await subject.store.marker_seconds(name) == 0
    await subject.store.set_marker(name, 0.05)
    await subject.store.set_marker(name, 60)
    assert 59 < await subject.store.marker_seconds(name) <= 60
    assert await subject.store.marker_seconds(other) == 0
    await subject.store.set_marker(other, 0.05)

    async def is_gone() -> bool:
        return await subject.store.marker_seconds(other) == 0

    await until(is_gone)


async def test_a_removed_marker_is_gone(subject: Subject) -> None:
    """At once; removing it again is no error."""
    name = replace(MARKER, cache_id=subject.cache_id)
    await subject.store.set_marker(name, 60)
    for _ in range(2):
        await subject.store.remove_marker(name)
        assert await subject.store.marker_seconds(name) == 0


async def test_an_entry_grows_while_it_begins_as_told(subject: Subject) -> None:
    """Up to a length, and only the one that is meant: another of the same name has another beginning."""
    marks, name = await published(subject), subject.name()
    assert not await subject.store.extend(name, b"", b"x", 100)
    assert await subject.store.write(name, b"\x00one", 60, marks)
    assert await subject.store.extend(name, b"\x00one", b"\xff\r\n", 7)
    assert not await subject.store.extend(name, b"\x00one", b"x", 7)
    assert not await subject.store.extend(name, b"two", b"x", 100)
    assert (await subject.store.find(name)).value == b"\x00one\xff\r\n"


async def test_growing_prolongs_no_life(subject: Subject) -> None:
    """An entry ends when it was to end."""
    marks, name = await published(subject), subject.name()
    assert await subject.store.write(name, b"x", 0.2, marks)
    await subject.store.extend(name, b"x", b"y", 100)

    async def is_gone() -> bool:
        return (await subject.store.find(name)).value is None

    await until(is_gone)
    assert not await subject.store.extend(name, b"x", b"y", 100)


async def test_a_count_begins_anew_after_its_ttl(subject: Subject) -> None:
    """Each name has its own, and the entry of that name is not touched."""
    name, other = subject.name(), subject.name("ac" * 32)
    assert [await subject.store.count_up(name, 60) for _ in "123"] == [1, 2, 3]
    assert await subject.store.count_up(other, 0.1) == 1

    async def begins_anew() -> bool:
        return await subject.store.count_up(other, 0.1) == 1

    await until(begins_anew)
    assert (await subject.store.find(name)).value is None


async def test_a_report_on_a_layer_stands_until_the_next(subject: Subject) -> None:
    """Each layer has its own; what was never reported on is left out."""
    assert await subject.store.read_probes(subject.cache_id, ["Probed", "Exact"]) == {}
    for state in (ProbeState.STORE, ProbeState.WELL):
        report = ProbeReport(state, "a problem", "a gateway", 1.5, "asked")
        await subject.store.write_probe(subject.cache_id, "Probed", report)
        assert await subject.store.read_probes(subject.cache_id, ["Probed", "Exact"]) == {"Probed": report}


async def test_gateways_are_asked_by_a_request_that_stands(subject: Subject) -> None:
    """The last one counts, and reports stand beside it."""
    assert await subject.store.read_probe_request(subject.cache_id) == ""
    for request in ("one", "another"):
        await subject.store.request_probes(subject.cache_id, request)
        assert await subject.store.read_probe_request(subject.cache_id) == request
    assert await subject.store.read_probes(subject.cache_id, ["Exact"]) == {}
