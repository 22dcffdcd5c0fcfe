"""What layers and the operator need of a store, as Protocols.

One contract suite runs on every implementation. All methods raise StoreError's subclasses, and none waits
longer than the implementation's own command timeout.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from cachewright.keys.credentials import MarkerName
from cachewright.keys.digest import EntryName
from cachewright.keys.record import Record
from cachewright.stores.probes import ProbeReports, ProbeStore
from cachewright.stores.reclaim import ReclaimReports, ReclaimStore

_BEGINNING_BITS: Final = 48
"""Lua and JSON hold whole numbers up to 53 bits exactly."""

_STEP_BITS: Final = 20
"""Four thousand million changes fit beside a beginning."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What a look-up saw of the record's copy under the entry's hash tag."""

    revision: int
    changes: int
    """Raised by every switch and retraction, also by those that leave the revision as it is."""


@dataclass(frozen=True, slots=True)
class Raise:
    """The number of changes under one tag before and after it was raised, with nothing in between."""

    before: int
    after: int


def beginning_of_changes() -> int:
    """Choose where a store that holds no record begins to count changes.

    Never twice the same: a store that lost everything must not come to marks that somebody saw before, or a
    write that was under way then would be let in, past a retraction that nobody remembers.
    """
    return secrets.randbits(_BEGINNING_BITS)


def step_of_changes() -> int:
    """Choose by how much one change raises the number of changes.

    By chance, so that a store which failed over to an older copy of itself, and lost some changes, does not
    come to marks that somebody saw before it did: after as many other changes they would else be the same.
    """
    return 1 + secrets.randbits(_STEP_BITS)


class WriteOutcome(Enum):
    """What became of a write; true only where the entry was written."""

    WRITTEN = "written"
    CHANGED = "changed"
    """The marks are no longer those that were seen."""
    READONLY = "readonly"
    """The keyspace may not be written to now: its record says so, or the operator's heartbeat is missing."""

    def __bool__(self) -> bool:
        return self is WriteOutcome.WRITTEN


@dataclass(frozen=True, slots=True)
class Found:
    """What one look-up found, read at one moment."""

    marks: Marks | None
    """None where the store holds no copy of the record under that tag."""
    value: bytes | None
    generations: tuple[int, ...] = ()
    """Of the counters that were asked for, in their order; 0 where a counter was never raised."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself."""

    is_replica: bool = False
    """True where it takes no writes."""
    eviction_policy: str = ""
    """What goes when memory runs out, as the server names it; empty where it does not say."""
    used_bytes: int = 0
    max_bytes: int = 0
    """0: no limit."""
    evicted_keys: int = 0
    """Keys that went for want of memory since the server was started."""
    expired_keys: int = 0
    """Keys that had their time out, since the same moment."""
    disk_trouble: str = ""
    """Which of its own words says that it cannot write to its disk; empty where it can, or writes none."""

    @property
    def evicted_share(self) -> float:
        """Share of the keys that went by themselves which went too early."""
        gone = self.evicted_keys + self.expired_keys
        return self.evicted_keys / gone if gone else 0.0

    @property
    def may_evict_records(self) -> bool:
        """True where keys without a TTL may go: the record with its counters of retractions is such a key."""
        return self.eviction_policy.startswith("allkeys-")


class RecordStore(ReclaimReports, ProbeReports, Protocol):
    """The broadcast copy of the record: one copy under each of the 64 hash tags of a cache."""

    async def read_record(self, cache_id: str) -> Record | None:
        """Read the copy with the highest revision; None where the store holds none."""

    async def publish_record(self, record: Record) -> int:
        """Write the record under every tag where its revision is greater.

        Returns the revision that the store holds afterwards: greater than ours when somebody was ahead.
        """

    async def beat(self, cache_id: str, revision: int, seconds: float) -> bool:
        """Allow writes to the keyspaces that need the heartbeat for so long, by the store's own clock.

        Only under tags whose copy of the record holds this very revision; tells whether all do. Where it is
        false the copy is newer, or the store lost something: publish, and beat again. A beat after a pause
        counts as a change, so that no write from before it is let in.
        """

    async def read_server(self) -> ServerFacts | None:
        """Ask the server about itself; None where the account may not."""

    async def aclose(self) -> None:
        """Close all connections."""


class EntryStore(Protocol):
    """Entries of all keyspaces."""

    async def find(self, name: EntryName, counters: Sequence[str] = ()) -> Found:
        """Read an entry, the marks of its hash tag and generation counters there, in one round trip.

        `counters` are names that `keys.generations` gives.
        """

    async def write(self, name: EntryName, value: bytes, ttl_seconds: float, seen: Marks) -> WriteOutcome:
        """Write an entry unless the marks of its hash tag changed since `seen`.

        Nor where the record's copy does not give its keyspace free; see `keys.permission`.
        """

    async def remove(self, name: EntryName) -> bool:
        """Remove an entry and raise the changes under its hash tag; tells whether there was one.

        So no write that began before can bring it back.
        """

    async def ping(self) -> None:
        """Return once the store has answered."""


class GenerationStore(Protocol):
    """Generation counters: a copy of each under each of the 64 hash tags of a cache, beside the record's."""

    async def raise_generations(self, cache_id: str, counters: Sequence[str]) -> dict[str, Raise]:
        """Raise counters by one, and the number of changes, under every tag.

        A counter that was dropped begins above every value that a dropped one had. No look-up that begins
        afterwards finds what was stored under the counters before, and no answer to a request that began
        before is stored. After an error it may be done in part; do it again.
        """

    async def read_generations(self, cache_id: str, counters: Sequence[str]) -> tuple[int, ...]:
        """Read counters under all tags; of each the lowest, which no look-up is behind."""

    async def list_generations(self, cache_id: str) -> dict[str, int]:
        """Read all raised counters but those of layers, with their values."""

    async def drop_generations(
        self, cache_id: str, counters: Mapping[str, int], seen: Mapping[str, Marks]
    ) -> int:
        """Drop counters that have these values, so that they count as never raised; tells how many, roughly.

        To be called only where a whole walk that began under these marks, by tag, found no entry that was
        stored at another value of theirs. Where the number of changes is another by now, nothing is dropped;
        else it is raised, so that nothing that began before is stored. What is left, for whatever reason, is
        for another time.
        """


class HeadStore(Protocol):
    """What entries begin with, for those who count many of them."""

    async def read_heads(self, names: Sequence[EntryName], most_bytes: int) -> list[bytes]:
        """Read the first bytes of entries, in one round trip; empty where there is no such entry."""


class MarkerStore(Protocol):
    """Markers: that they are there is all they say."""

    async def set_marker(self, name: MarkerName, ttl_seconds: float) -> None:
        """Set a marker, or set its TTL anew."""

    async def marker_seconds(self, name: MarkerName) -> float:
        """Return how long a marker stays; 0 where there is none."""

    async def remove_marker(self, name: MarkerName) -> None:
        """Remove a marker if it is there."""


class LockStore(Protocol):
    """Locks on making an entry, so that one of many gateways asks the upstream for it.

    They save work and guard nothing: one that is lost, to a restart or to eviction, costs a second call.
    """

    async def acquire_lock(self, name: EntryName, token: str, ttl_seconds: float) -> bool:
        """Take the lock, until its TTL ends, unless somebody holds it; tells whether it was taken."""

    async def release_lock(self, name: EntryName, token: str) -> bool:
        """Free the lock if it is held with this token; tells whether it was."""

    async def lock_holder(self, name: EntryName) -> str | None:
        """Return the token that holds the lock; None while it is free."""


class TicketStore(Protocol):
    """Entries that grow, and counts: what the semantic layer keeps beside its vectors."""

    async def extend(self, name: EntryName, prefix: bytes, addition: bytes, most_bytes: int) -> bool:
        """Append to an entry that begins with `prefix`, leaving its TTL as it is; tells whether it was done.

        It is not where there is no such entry, or where it would come to hold more than `most_bytes`.
        """

    async def count_up(self, name: EntryName, ttl_seconds: float) -> int:
        """Count one more for an entry that may not exist, and return the count.

        It begins anew `ttl_seconds` after the first.
        """


class KeyListener(Protocol):
    """Who keeps copies of entries and wants to hear when they are outdated."""

    def keys_changed(self, keys: Sequence[str]) -> None:
        """Hear that these keys were written, removed, evicted or have ended."""

    def keys_lost(self) -> None:
        """Hear that any key may have changed: changes were not followed for a while."""


class TrackingStore(Protocol):
    """How copies outside the store are kept honest."""

    async def read_marks(self, cache_id: str) -> dict[str, Marks]:
        """Read the marks under all hash tags; those without a copy of the record are left out."""

    async def follow_keys(self, cache_id: str, listener: KeyListener) -> None:
        """Tell the listener of changed keys of a cache until cancelled, through failures and restarts.

        Soon, mostly and often twice, but never reliably: what must not be missed is in the marks.
        """


class CacheStore(
    EntryStore,
    GenerationStore,
    HeadStore,
    LockStore,
    MarkerStore,
    ProbeStore,
    RecordStore,
    ReclaimStore,
    TicketStore,
    TrackingStore,
    Protocol,
):
    """A store that holds all of it, under the same hash tags."""
