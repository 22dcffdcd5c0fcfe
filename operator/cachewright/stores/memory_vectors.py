"""Vectors in process memory: for local mode without servers, and for tests of what stands on a vector store.

It keeps the same promises as Qdrant and PostgreSQL (the contract suite runs on all) and loses everything with
the process. Searches are exact, and walk through one partition alone. Opened by `vector_opening`, which
imports this module late: nothing else needs numpy.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from cachewright.errors import SpaceNotFound, StoreRefused
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.vectors import (
    SEARCH_LIMIT,
    Capabilities,
    EntryId,
    Hit,
    Marker,
    Vector,
    VectorEntry,
    VectorSpace,
    keyspace_in,
    require_vector,
    space_name,
)

DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024
"""As many as some 80,000 answers of 1.5 kB with vectors of 384 dimensions."""

_ENTRY_OVERHEAD_BYTES: Final = 1024
"""What Python's objects around an entry take, about."""

Matrix: TypeAlias = npt.NDArray[np.float32]


@dataclass(slots=True)
class _Partition:
    """Entries of one tenant and partition: row n of the matrix is the direction of entry n."""

    dimensions: int
    entries: list[VectorEntry] = field(default_factory=list)
    rows: dict[EntryId, int] = field(default_factory=dict)
    matrix: Matrix = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    ends: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """When each expires: as an array, since a look-up goes through all of them on the event loop."""

    def add(self, entry: VectorEntry) -> None:
        """Append an entry that is not there."""
        row = len(self.entries)
        if row >= len(self.matrix):
            grown: Matrix = np.empty((max(4, 2 * row), self.dimensions), dtype=np.float32)
            grown[:row] = self.matrix[:row] if row else 0
            self.matrix = grown
            self.ends = np.concatenate([self.ends[:row], np.empty(len(grown) - row)])
        self.matrix[row] = _direction(entry.vector)
        self.ends[row] = entry.expires_at
        self.entries.append(entry)
        self.rows[entry.id] = row

    def discard(self, entry_id: EntryId) -> None:
        """Remove an entry that is there; the last one takes its row."""
        row = self.rows.pop(entry_id)
        last = self.entries.pop()
        if row < len(self.entries):
            self.entries[row] = last
            self.rows[last.id] = row
            self.matrix[row] = self.matrix[len(self.entries)]
            self.ends[row] = last.expires_at

    def nearest(self, vector: Vector, now: float, limit: int) -> list[Hit]:
        """Return the nearest entries that have not expired."""
        count = len(self.entries)
        scores = self.matrix[:count] @ _direction(vector)
        alive = np.flatnonzero(self.ends[:count] > now)
        if len(alive) > limit:
            alive = alive[np.argpartition(scores[alive], -limit)[-limit:]]
        best = alive[np.argsort(-scores[alive], kind="stable")]
        return [_hit(self.entries[row], float(scores[row])) for row in best]


@dataclass(slots=True)
class _Space:
    marker: Marker
    entries: dict[EntryId, VectorEntry] = field(default_factory=dict)
    """In the order in which they were put."""
    partitions: dict[tuple[str, str], _Partition] = field(default_factory=dict)

    def add(self, entry: VectorEntry) -> None:
        self.entries[entry.id] = entry
        key = (entry.id.tenant_tag, entry.partition)
        partition = self.partitions.setdefault(key, _Partition(self.marker.dimensions))
        partition.add(entry)

    def discard(self, entry_id: EntryId) -> int:
        """Remove an entry if it is there, and return its size."""
        entry = self.entries.pop(entry_id, None)
        if entry is None:
            return 0
        key = (entry_id.tenant_tag, entry.partition)
        self.partitions[key].discard(entry_id)
        if not self.partitions[key].entries:
            del self.partitions[key]
        return _size_bytes(entry)


@dataclass(slots=True)
class MemoryVectorStore:
    """VectorStore in process memory, bounded by its entries' size; those that were put first go first."""

    max_bytes: int = DEFAULT_MAX_BYTES
    _spaces: dict[str, _Space] = field(default_factory=dict)
    _used_bytes: int = 0

    async def check(self) -> Capabilities:
        """Say what it is."""
        return Capabilities("memory", np.__version__)

    async def ensure(self, space: VectorSpace, probe_text: str, probe_vector: Vector) -> Marker:
        """Make the space unless it exists, and return its marker."""
        require_vector(space, probe_vector)
        marker = Marker(space.cache_id, space.keyspace, space.dimensions, probe_text, probe_vector)
        self._spaces.setdefault(space.name, _Space(marker))
        return self._space(space).marker

    async def read_marker(self, space: VectorSpace) -> Marker:
        """Read the marker."""
        return self._space(space).marker

    async def put(self, space: VectorSpace, entry: VectorEntry) -> None:
        """Store an entry in the place of one with the same id."""
        require_vector(space, entry.vector)
        held = self._space(space)
        self._used_bytes -= held.discard(entry.id)
        held.add(entry)
        self._used_bytes += _size_bytes(entry)
        for crowded in self._spaces.values():
            while self._used_bytes > self.max_bytes and crowded.entries:
                self._used_bytes -= crowded.discard(next(iter(crowded.entries)))

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        tenant_tag: str,
        partition: str,
        now: float,
        limit: int = SEARCH_LIMIT,
    ) -> Sequence[Hit]:
        """Find the nearest entries of a tenant's partition that expire after `now`."""
        require_vector(space, vector)
        found = self._space(space).partitions.get((tenant_tag, partition))
        return found.nearest(vector, now, limit) if found else ()

    async def read_body(self, space: VectorSpace, entry: EntryId, nonce: bytes) -> bytes | None:
        """Read an entry's body."""
        found = self._held(space).entries.get(entry)
        return found.body if found and found.nonce == nonce else None

    async def remove(self, space: VectorSpace, entries: Sequence[EntryId]) -> None:
        """Remove entries, those that are there."""
        self._discard(self._held(space), entries)

    async def count(
        self, space: VectorSpace, tenant_tag: str | None = None, partition: str | None = None
    ) -> int:
        """Count entries."""
        held = self._held(space)
        return sum(
            len(part.entries)
            for (tenant, name), part in held.partitions.items()
            if tenant_tag in {None, tenant} and partition in {None, name}
        )

    async def evict_oldest(self, space: VectorSpace, number: int, tenant_tag: str | None = None) -> int:
        """Remove those stored first."""
        held = self._held(space)
        candidates = (entry for entry in held.entries.values() if tenant_tag in {None, entry.id.tenant_tag})
        oldest = heapq.nsmallest(number, candidates, key=lambda entry: entry.stored_at)
        return self._discard(held, [entry.id for entry in oldest])

    async def delete_expired(self, space: VectorSpace, now: float, limit: int) -> int:
        """Remove entries that have expired."""
        held = self._held(space)
        expired = [entry.id for entry in held.entries.values() if entry.expires_at <= now]
        return self._discard(held, expired[:limit])

    async def list_spaces(self, cache_id: str) -> Sequence[Keyspace]:
        """List the keyspaces that have a space."""
        found = (keyspace_in(name, cache_id) for name in self._spaces)
        return sorted(keyspace for keyspace in found if keyspace is not None)

    async def drop(self, cache_id: str, keyspace: Keyspace) -> bool:
        """Remove a space with all in it."""
        name = space_name(cache_id, keyspace)
        held = self._spaces.get(name)
        if held is None:
            return False
        if held.marker.cache_id != cache_id:
            raise StoreRefused(f"drop: {name} is not this cache's")
        self._discard(held, list(held.entries))
        del self._spaces[name]
        return True

    async def aclose(self) -> None:
        """Forget everything."""
        self._spaces.clear()
        self._used_bytes = 0

    def _space(self, space: VectorSpace) -> _Space:
        """Find a space for vectors of its length."""
        held = self._held(space)
        if held.marker.dimensions != space.dimensions:
            raise StoreRefused(f"{space.name} has {held.marker.dimensions} dimensions")
        return held

    def _held(self, space: VectorSpace) -> _Space:
        """Find a space, whatever vectors it holds."""
        held = self._spaces.get(space.name)
        if held is None:
            raise SpaceNotFound(f"there is no space {space.name}")
        if held.marker.cache_id != space.cache_id:
            raise StoreRefused(f"{space.name} is another cache's")
        return held

    def _discard(self, held: _Space, entries: Iterable[EntryId]) -> int:
        before = len(held.entries)
        for entry_id in entries:
            self._used_bytes -= held.discard(entry_id)
        return before - len(held.entries)


def _direction(vector: Vector) -> Matrix:
    values = np.frombuffer(vector, dtype=np.float32)
    return values / np.float32(np.linalg.norm(values))


def _hit(entry: VectorEntry, score: float) -> Hit:
    return Hit(
        id=entry.id,
        score=score,
        question=entry.question,
        nonce=entry.nonce,
        metadata=entry.metadata,
        stored_at=entry.stored_at,
        expires_at=entry.expires_at,
    )


def _size_bytes(entry: VectorEntry) -> int:
    text = len(entry.question) + len(entry.metadata)
    return _ENTRY_OVERHEAD_BYTES + len(entry.body) + text + 2 * entry.vector.itemsize * len(entry.vector)
