"""A store in process memory: for local mode without a server, and for tests of what stands on a store.

It keeps the same promises as Redis (the contract suite runs on both) and loses everything with the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from cachewright.errors import StoreRefused
from cachewright.keys.credentials import MarkerName
from cachewright.keys.digest import EntryName, record_key
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.permission import WritePermission
from cachewright.keys.record import Record
from cachewright.keys.scheme import TAGS
from cachewright.stores.memory_reclaim import MemoryReclaimStore
from cachewright.stores.probes import ProbeReport
from cachewright.stores.protocols import (
    Found,
    KeyListener,
    Marks,
    Raise,
    ServerFacts,
    WriteOutcome,
    beginning_of_changes,
    step_of_changes,
)
from cachewright.stores.reclaim import ReclaimReport, SweepReport

DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024


@dataclass(slots=True)
class _Copy:
    """One cache's copy of the record; a process needs no hash tags."""

    record: Record
    changes: int = field(default_factory=beginning_of_changes)


@dataclass(slots=True)
class MemoryCacheStore(MemoryReclaimStore):
    """CacheStore in process memory, bounded by a number of entries and by their size; the oldest go first."""

    clock: Callable[[], float]
    """Seconds, monotonic."""
    max_entries: int = 10_000
    max_bytes: int = DEFAULT_MAX_BYTES
    """Of the values alone; what holds them comes on top."""
    _entries: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    """Value and end of life by key, oldest first."""
    _size_bytes: int = 0
    _copies: dict[str, _Copy] = field(default_factory=dict)
    _locks: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Token and end of life by key."""
    _counts: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Count and end of life by key."""
    _generations: dict[str, dict[str, int]] = field(default_factory=dict)
    """By cache, then by counter."""
    _floors: dict[str, int] = field(default_factory=dict)
    """The highest value at which a counter was dropped, by cache."""
    _markers: dict[str, float] = field(default_factory=dict)
    """End of life by key."""
    _reclaims: dict[str, dict[Keyspace, ReclaimReport]] = field(default_factory=dict)
    """By the key of the cache's janitor."""
    _heartbeats: dict[str, float] = field(default_factory=dict)
    """End of life by cache."""
    _sweeps: dict[str, tuple[SweepReport, float]] = field(default_factory=dict)
    """The last report, and when the next sweep is due, by cache."""
    _probes: dict[str, dict[str, ProbeReport]] = field(default_factory=dict)
    """By cache, then by layer."""
    _probe_requests: dict[str, str] = field(default_factory=dict)
    """By cache."""
    _listeners: list[tuple[str, KeyListener]] = field(default_factory=list)

    async def read_record(self, cache_id: str) -> Record | None:
        """Read the copy; None where there is none."""
        copy = self._copies.get(cache_id)
        return copy.record if copy else None

    async def publish_record(self, record: Record) -> int:
        """Keep the record if its revision is greater."""
        copy = self._copies.get(record.cache_id)
        if copy is None:
            self._copies[record.cache_id] = _Copy(record)
        elif record.revision > copy.record.revision:
            copy.record = record
            copy.changes += step_of_changes()
        self._tell(record.cache_id, [record_key(record.cache_id, tag) for tag in TAGS])
        return self._copies[record.cache_id].record.revision

    async def beat(self, cache_id: str, revision: int, seconds: float) -> bool:
        """Allow writes to the keyspaces that need the heartbeat for so long."""
        copy = self._copies.get(cache_id)
        if copy is None or copy.record.revision != revision:
            return False
        if self.clock() >= self._heartbeats.get(cache_id, float("-inf")):
            copy.changes += step_of_changes()
            self._tell(cache_id, [record_key(cache_id, tag) for tag in TAGS])
        self._heartbeats[cache_id] = self.clock() + seconds
        return True

    async def read_probes(self, cache_id: str, layers: Collection[str]) -> dict[str, ProbeReport]:
        """Read the reports on these layers."""
        reports = self._probes.get(cache_id, {})
        return {layer: reports[layer] for layer in layers if layer in reports}

    async def read_probe_request(self, cache_id: str) -> str:
        """Read the request that stands."""
        return self._probe_requests.get(cache_id, "")

    async def request_probes(self, cache_id: str, request: str) -> None:
        """Leave a request."""
        self._probe_requests[cache_id] = request

    async def write_probe(self, cache_id: str, layer: str, report: ProbeReport) -> None:
        """Leave a report on a layer."""
        self._probes.setdefault(cache_id, {})[layer] = report

    async def read_server(self) -> ServerFacts | None:
        """Say nothing: there is no server."""
        return None

    async def find(self, name: EntryName, counters: Sequence[str] = ()) -> Found:
        """Read an entry together with the marks and generation counters of its cache."""
        value, expires_at = self._entries.get(name.key, (None, 0.0))
        if value is not None and self.clock() >= expires_at:
            self._forget(name.key)
            value = None
        raised = self._generations.get(name.cache_id, {})
        return Found(self._marks(name.cache_id), value, tuple(raised.get(counter, 0) for counter in counters))

    async def write(self, name: EntryName, value: bytes, ttl_seconds: float, seen: Marks) -> WriteOutcome:
        """Write an entry unless its marks changed since `seen` or its keyspace may not be written to."""
        copy = self._copies.get(name.cache_id)
        if copy is None or Marks(copy.record.revision, copy.changes) != seen:
            return WriteOutcome.CHANGED
        is_beating = self.clock() < self._heartbeats.get(name.cache_id, 0.0)
        if not WritePermission.of(copy.record).allows(name.keyspace, is_beating=is_beating):
            return WriteOutcome.READONLY
        if len(value) > self.max_bytes:
            raise StoreRefused("write: the entry is larger than the store")
        self._forget(name.key)
        self._entries[name.key] = (value, self.clock() + ttl_seconds)
        self._size_bytes += len(value)
        evicted = []
        while len(self._entries) > self.max_entries or self._size_bytes > self.max_bytes:
            evicted.append(next(iter(self._entries)))
            self._forget(evicted[-1])
        self._tell(name.cache_id, [name.key, *evicted])
        return WriteOutcome.WRITTEN

    async def raise_generations(self, cache_id: str, counters: Sequence[str]) -> dict[str, Raise]:
        """Raise counters by one, and the number of changes."""
        raised = self._generations.setdefault(cache_id, {})
        for counter in counters:
            raised[counter] = max(raised.get(counter, 0), self._floors.get(cache_id, 0)) + 1
        return dict.fromkeys(TAGS, self._count_change(cache_id))

    async def read_generations(self, cache_id: str, counters: Sequence[str]) -> tuple[int, ...]:
        """Read counters."""
        raised = self._generations.get(cache_id, {})
        return tuple(raised.get(counter, 0) for counter in counters)

    async def read_heads(self, names: Sequence[EntryName], most_bytes: int) -> list[bytes]:
        """Read the first bytes of entries."""
        values = [self._entries.get(name.key, (b"", 0.0)) for name in names]
        return [value[:most_bytes] if self.clock() < ends_at else b"" for value, ends_at in values]

    async def remove(self, name: EntryName) -> bool:
        """Remove an entry and raise the changes of its cache."""
        if copy := self._copies.get(name.cache_id):
            copy.changes += step_of_changes()
        expires_at = self._forget(name.key)
        self._tell(name.cache_id, [name.record_key, name.key])
        return self.clock() < expires_at

    async def read_marks(self, cache_id: str) -> dict[str, Marks]:
        """Read the marks, which are the same under all hash tags."""
        marks = self._marks(cache_id)
        return {} if marks is None else dict.fromkeys(TAGS, marks)

    async def follow_keys(self, cache_id: str, listener: KeyListener) -> None:
        """Tell the listener of changed keys of a cache, as they change, until cancelled."""
        self._listeners.append((cache_id, listener))
        try:
            listener.keys_lost()
            await asyncio.get_running_loop().create_future()
        finally:
            self._listeners.remove((cache_id, listener))

    async def set_marker(self, name: MarkerName, ttl_seconds: float) -> None:
        """Set a marker, or set its TTL anew."""
        self._markers[name.key] = self.clock() + ttl_seconds

    async def marker_seconds(self, name: MarkerName) -> float:
        """Return how long a marker stays."""
        left_seconds = self._markers.get(name.key, 0.0) - self.clock()
        if left_seconds <= 0:
            self._markers.pop(name.key, None)
        return max(0.0, left_seconds)

    async def remove_marker(self, name: MarkerName) -> None:
        """Remove a marker if it is there."""
        self._markers.pop(name.key, None)

    async def acquire_lock(self, name: EntryName, token: str, ttl_seconds: float) -> bool:
        """Take the lock unless somebody holds it."""
        if await self.lock_holder(name) is not None:
            return False
        self._locks[name.lock_key] = (token, self.clock() + ttl_seconds)
        return True

    async def release_lock(self, name: EntryName, token: str) -> bool:
        """Free the lock if it is held with this token."""
        if await self.lock_holder(name) != token:
            return False
        del self._locks[name.lock_key]
        return True

    async def lock_holder(self, name: EntryName) -> str | None:
        """Return the token that holds the lock."""
        token, expires_at = self._locks.get(name.lock_key, (None, 0.0))
        if token is not None and self.clock() >= expires_at:
            del self._locks[name.lock_key]
            return None
        return token

    async def extend(self, name: EntryName, prefix: bytes, addition: bytes, most_bytes: int) -> bool:
        """Append to an entry that begins with `prefix`."""
        value, expires_at = self._entries.get(name.key, (b"", 0.0))
        is_there = self.clock() < expires_at and value.startswith(prefix)
        if not is_there or len(value) + len(addition) > most_bytes:
            return False
        self._entries[name.key] = (value + addition, expires_at)
        self._size_bytes += len(addition)
        self._tell(name.cache_id, [name.key])
        return True

    async def count_up(self, name: EntryName, ttl_seconds: float) -> int:
        """Count one more."""
        count, expires_at = self._counts.pop(name.count_key, (0, 0.0))
        if self.clock() >= expires_at:
            count, expires_at = 0, self.clock() + ttl_seconds
        self._counts[name.count_key] = (count + 1, expires_at)
        while len(self._counts) > self.max_entries:
            del self._counts[next(iter(self._counts))]
        return count + 1

    async def ping(self) -> None:
        """Return at once."""

    async def aclose(self) -> None:
        """Forget everything."""
        self.forget_all()

    def forget_all(self) -> None:
        """Lose everything at once, as a server does that starts anew."""
        self._entries.clear()
        self._size_bytes = 0
        self._copies.clear()
        self._locks.clear()
        self._counts.clear()
        self._generations.clear()
        self._floors.clear()
        self._markers.clear()
        self._reclaims.clear()
        self._heartbeats.clear()
        self._sweeps.clear()
        self._probes.clear()
        self._probe_requests.clear()
        for _, listener in self._listeners:
            listener.keys_lost()

    def _forget(self, key: str) -> float:
        """Drop an entry if there is one, and return its end of life."""
        value, expires_at = self._entries.pop(key, (b"", 0.0))
        self._size_bytes -= len(value)
        return expires_at

    def _tell(self, cache_id: str, keys: Sequence[str]) -> None:
        for followed, listener in self._listeners:
            if followed == cache_id:
                listener.keys_changed(keys)

    def _count_change(self, cache_id: str) -> Raise:
        """Raise the changes, and tell of it."""
        copy, step = self._copies.get(cache_id), step_of_changes()
        before = copy.changes if copy is not None else 0
        if copy is not None:
            copy.changes += step
        self._tell(cache_id, [record_key(cache_id, tag) for tag in TAGS])
        return Raise(before, before + step)

    def _marks(self, cache_id: str) -> Marks | None:
        copy = self._copies.get(cache_id)
        return Marks(copy.record.revision, copy.changes) if copy else None
