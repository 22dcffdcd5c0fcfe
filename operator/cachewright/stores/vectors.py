"""What the semantic layer needs of a vector store, as a Protocol, and the values that go in and out.

A *space* holds the entries of one semantic keyspace: a collection, a table or a part of process memory, never
shared between two keyspaces, so that vectors of two embedders never meet. One contract suite runs on every
implementation. All methods raise StoreError's subclasses, and none waits longer than the implementation's
own time limit.

Tenant and partition are filters on the store's side of every search, and only whole matches count. Nothing
here reads a clock: what has expired is told by the `now` of the caller.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from cachewright.errors import StoreRefused
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import KEY_SCHEME

Vector: TypeAlias = "array[float]"
"""An embedding as float32 (`array("f")`), so that the gateway needs no numpy to pass one on."""

SEARCH_LIMIT: Final = 5
"""Nearest entries that a search returns, so that a guard may refuse the first."""

MIN_NORM: Final = 1e-6
"""Shortest vector that has a direction; embedders return lengths around one."""

_PLAIN_ID: Final = re.compile(r"[0-9a-f]{16}")


class Quantization(StrEnum):
    """How a store keeps the vectors that it walks through; the exact ones stay beside."""

    NONE = "None"
    SCALAR = "Scalar"
    """8 bits a dimension in Qdrant, 16 in PostgreSQL's index."""


@dataclass(frozen=True, slots=True)
class Hnsw:
    """The graph of nearest neighbours."""

    m: int = 16
    """Neighbours a vector is linked to."""
    ef_construct: int = 100
    """Candidates looked at for each link while inserting."""
    payload_m: int = 16
    """The same as `m`, for Qdrant's graph of each tenant, the only one it builds."""


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """A space as it is wanted: whose it is, and how it is made where it does not exist yet."""

    cache_id: str
    keyspace: Keyspace
    dimensions: int
    hnsw: Hnsw = field(default_factory=Hnsw)
    quantization: Quantization = Quantization.NONE

    @property
    def name(self) -> str:
        """Name of the collection or table."""
        return space_name(self.cache_id, self.keyspace)


@dataclass(frozen=True, slots=True)
class Marker:
    """What a space says of itself: whose it is, and what its first maker's embedder made of a probe text."""

    cache_id: str
    keyspace: Keyspace
    dimensions: int
    probe_text: str
    probe_vector: Vector
    """Compare it with what the embedder says now: two embedders' vectors must not be mixed."""


@dataclass(frozen=True, slots=True)
class EntryId:
    """Which entry: unique within a space."""

    tenant_tag: str
    digest: str
    """64 hex digits over everything that the answer depends on, the question included."""


@dataclass(frozen=True, slots=True)
class VectorEntry:
    """One answer as it is stored."""

    id: EntryId
    vector: Vector
    partition: str
    """Digest over everything but the question: entries of other partitions are never found."""
    question: str
    nonce: bytes
    """Repeated in the entry's ticket, which tells whether it still counts."""
    body: bytes
    metadata: str
    """Whatever the layer wants back with each hit; opaque to the store."""
    stored_at: float
    """Unix seconds, kept to the millisecond."""
    expires_at: float
    """Unix seconds, kept to the millisecond."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry near what was searched for, without its body."""

    id: EntryId
    score: float
    """Cosine similarity, from -1 to 1, computed on exact vectors in float32."""
    question: str
    nonce: bytes
    metadata: str
    stored_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a server says it is."""

    product: str
    version: str


class VectorStore(Protocol):
    """Spaces of all keyspaces of all caches on one server."""

    async def check(self) -> Capabilities:
        """Ask the server what it can do; raises StoreUnfit that says what is missing."""

    async def ensure(self, space: VectorSpace, probe_text: str, probe_vector: Vector) -> Marker:
        """Make the space unless it exists, and return its marker, which is the first maker's.

        Raises StoreRefused where something of that name is not this cache's, or has other dimensions.
        """

    async def read_marker(self, space: VectorSpace) -> Marker:
        """Read the marker; raises SpaceNotFound where there is no such space."""

    async def put(self, space: VectorSpace, entry: VectorEntry) -> None:
        """Store an entry in the place of one with the same id; it can be found once this returns."""

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        tenant_tag: str,
        partition: str,
        now: float,
        limit: int = SEARCH_LIMIT,
    ) -> Sequence[Hit]:
        """Find the nearest entries of a tenant's partition that expire after `now`, the best first."""

    async def read_body(self, space: VectorSpace, entry: EntryId, nonce: bytes) -> bytes | None:
        """Read an entry's body; None where it is gone or was replaced by one with another nonce."""

    async def remove(self, space: VectorSpace, entries: Sequence[EntryId]) -> None:
        """Remove entries, those that are there."""

    async def count(
        self, space: VectorSpace, tenant_tag: str | None = None, partition: str | None = None
    ) -> int:
        """Count entries, expired ones included; approximate where neither tenant nor partition is given."""

    async def evict_oldest(self, space: VectorSpace, number: int, tenant_tag: str | None = None) -> int:
        """Remove about `number` of those stored first and return how many; of all tenants, or of one."""

    async def delete_expired(self, space: VectorSpace, now: float, limit: int) -> int:
        """Remove up to `limit` entries that have expired and return how many, so 0 means none is left."""

    async def list_spaces(self, cache_id: str) -> Sequence[Keyspace]:
        """List the keyspaces that have a space with this cache's marker."""

    async def drop(self, cache_id: str, keyspace: Keyspace) -> bool:
        """Remove a space with all in it; tells whether there was one.

        Raises StoreRefused where it does not carry this cache's marker, and StoreUnavailable where it is in
        use for too long: try again later.
        """

    async def aclose(self) -> None:
        """Close all connections."""


def space_name(cache_id: str, keyspace: Keyspace) -> str:
    """Name a space; at most 56 characters of a-z, 0-9 and underscore, whatever the cache's id looks like."""
    return f"{space_prefix(cache_id)}{keyspace.id}_{keyspace.incarnation}"


def space_prefix(cache_id: str) -> str:
    """Return what the names of all spaces of one cache begin with."""
    plain = _PLAIN_ID.fullmatch(cache_id)
    short = cache_id if plain else hashlib.sha256(cache_id.encode()).hexdigest()[:16]
    return f"{KEY_SCHEME}_{short}_"


def keyspace_in(name: str, cache_id: str) -> Keyspace | None:
    """Return the keyspace that a space's name tells; None where it is not one of this cache's names."""
    prefix = space_prefix(cache_id)
    found = re.fullmatch(rf"{prefix}([0-9a-f]{{16}})_([1-9][0-9]{{0,17}})", name)
    return Keyspace(found[1], int(found[2])) if found else None


def vector_of(values: Iterable[float]) -> Vector:
    """Make a vector of numbers."""
    return array("f", values)


def require_vector(space: VectorSpace, vector: Vector) -> None:
    """Raise StoreRefused unless the vector has the space's length, finite numbers and a direction."""
    if len(vector) != space.dimensions:
        raise StoreRefused(
            f"the vector has {len(vector)} dimensions and the space {space.name} has {space.dimensions}"
        )
    squared = sum(map(float.__mul__, vector, vector))
    if not math.isfinite(squared):
        raise StoreRefused("the vector has a number that is not finite")
    if squared < MIN_NORM * MIN_NORM:
        raise StoreRefused("the vector has no direction: all its numbers are about zero")


def require_ours(space: VectorSpace, marker: Marker | None) -> Marker:
    """Return the marker that was found; raises StoreRefused unless it is this space's and has its length."""
    if marker is None or (marker.cache_id, marker.keyspace) != (space.cache_id, space.keyspace):
        raise StoreRefused(f"{space.name} is not this cache's")
    if marker.dimensions != space.dimensions:
        raise StoreRefused(
            f"{space.name} has {marker.dimensions} dimensions, and the embedder {space.dimensions}"
        )
    return marker
