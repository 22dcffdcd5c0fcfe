"""L0: copies of entries in this process, in front of the exact layer's store.

Whether a copy still counts is `known_marks`' business alone; this bounds how many there are and how long they
are kept, and drops those of which the store tells that they changed. Called by the exact layer; fed with
marks and with changes by `local_upkeep`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from cachewright.keys.digest import EntryName
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.entry import Entry
from cachewright.layers.known_marks import KnownMarks
from cachewright.stores.protocols import Marks

MAX_BYTES: Final = 32 * 1024 * 1024
"""Of all copies of one process, whose memory is for requests first."""

OVERHEAD_BYTES: Final = 1024
"""What a copy takes beyond its body: names, objects, places in tables."""

LARGEST_SHARE: Final = 8
"""A copy larger than this part of the whole would push out too many others."""

MOST_CHANGES: Final = 4096
"""Changed keys that are remembered for look-ups which began before they changed."""

Question: TypeAlias = tuple[Keyspace, str, str, tuple[str, ...]]
"""Keyspace, tenant tag, digest with all generations 0, and the counters it depends on.

Two questions may share an entry and yet depend on other counters, so each has a copy of its own."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """What L0 needs of the policy."""

    max_entries: int
    ttl_seconds: float
    max_bytes: int = MAX_BYTES


@dataclass(frozen=True, slots=True)
class Copy:
    """An entry as a look-up found it."""

    entry: Entry
    name: EntryName
    marks: Marks
    epoch: int
    ends_at: float
    """Monotonic seconds."""
    key: str
    """The entry's, in the store."""
    size_bytes: int
    generations: tuple[int, ...] = ()
    """What the counters were that the name depends on."""


class LocalCache:
    """L0 of one cache over one store; a KeyListener of that store."""

    def __init__(self, settings: LocalSettings, marks: KnownMarks, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic seconds; `wanted` is called whenever the marks are needed."""
        self._settings = settings
        self._clock = clock
        self.marks = marks
        self.wanted: Callable[[], None] = _nobody
        self._copies: OrderedDict[Question, Copy] = OrderedDict()
        self._questions: dict[str, set[Question]] = {}
        """By the key of their entry."""
        self._bytes = 0
        self._changed: OrderedDict[str, float] = OrderedDict()
        """Keys that changed of late, and when that was heard."""
        self._all_changed_at = float("-inf")

    def __len__(self) -> int:
        """Count the copies."""
        return len(self._copies)

    @property
    def size_bytes(self) -> int:
        """What the copies take, roughly."""
        return self._bytes

    def find(self, question: Question) -> Copy | None:
        """Return the copy that answers a question, if it may still be served."""
        copy = self._copies.get(question)
        if copy is None:
            return None
        self.wanted()
        epoch = self.marks.epoch(copy.name.tag)
        if epoch is None:  # not to be relied upon now; the next look-up in the store tells
            return None
        if epoch != copy.epoch or self._clock() >= copy.ends_at:
            self._drop(question)
            return None
        self._copies.move_to_end(question)
        return copy

    def keep(
        self,
        question: Question,
        name: EntryName,
        entry: Entry,
        marks: Marks,
        started: float,
        ttl_seconds: float,
        generations: tuple[int, ...] = (),
    ) -> None:
        """Keep what a look-up that began at `started` found under `marks`, for `ttl_seconds` at most."""
        epoch, key = self.marks.epoch(name.tag), name.key
        size_bytes = OVERHEAD_BYTES + len(entry.body) + len(entry.usage)
        if (
            epoch is None
            or started <= max(self._all_changed_at, self._changed.get(key, started - 1))
            or size_bytes * LARGEST_SHARE > self._settings.max_bytes
        ):
            return
        self._drop(question)
        ends_at = self._clock() + min(ttl_seconds, self._settings.ttl_seconds)
        self._copies[question] = Copy(entry, name, marks, epoch, ends_at, key, size_bytes, generations)
        self._questions.setdefault(key, set()).add(question)
        self._bytes += size_bytes
        while len(self._copies) > self._settings.max_entries or self._bytes > self._settings.max_bytes:
            self._drop(next(iter(self._copies)))
        self.wanted()

    def keys_changed(self, keys: Sequence[str]) -> None:
        """Drop the copies of changed entries; where a record's copy changed, rely on none under its tag."""
        for key in keys:
            place, _, rest = key.partition("}:")
            if rest == "record":
                self.marks.forget(place.rpartition(":")[2])
                continue
            for question in list(self._questions.get(key, ())):
                self._drop(question)
            self._changed[key] = self._clock()
            self._changed.move_to_end(key)
        while len(self._changed) > MOST_CHANGES:
            self._all_changed_at = self._changed.popitem(last=False)[1]

    def keys_lost(self) -> None:
        """Drop everything."""
        self._copies.clear()
        self._questions.clear()
        self._changed.clear()
        self._bytes = 0
        self._all_changed_at = self._clock()
        self.marks.forget()

    def _drop(self, question: Question) -> None:
        copy = self._copies.pop(question, None)
        if copy is None:
            return
        self._bytes -= copy.size_bytes
        sharing = self._questions[copy.key]
        sharing.discard(question)
        if not sharing:
            del self._questions[copy.key]


def _nobody() -> None:
    """Stand in for an upkeep that has not begun."""
