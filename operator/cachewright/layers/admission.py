"""Admission: which answers the semantic layer keeps, and which it lets go to stay within its bounds.

Counts are approximate: they are read from the store now and then, and kept up by what this process stores
meanwhile. Above a bound the oldest entries go; where that does not keep up, nothing new is taken in at 105 %.
Asked by the semantic layer before it stores, off every request's path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from cachewright.keys.digest import EntryName
from cachewright.keys.fields import encode_fields
from cachewright.policy.reasons import SemanticRefusal
from cachewright.stores.protocols import TicketStore
from cachewright.stores.vectors import VectorSpace, VectorStore

RECOUNT_SECONDS: Final = 30.0
"""How long a count from the store is relied upon."""

RECOUNT_SHARE: Final = 100
"""A count is also taken anew once this process has added a hundredth of the bound."""

BUCKET_SHARE: Final = 100
"""Entries that go at once when there are too many: a hundredth of the bound."""

OVERFLOW: Final = 1.05
"""Part of the bound beyond which nothing new is taken in."""

MOST_TENANTS: Final = 10_000
"""Tenants whose counts are kept; one that was forgotten is counted again."""


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """The bounds."""

    max_entries: int
    max_entries_per_tenant: int | None = None
    """None: a tenant may fill all of it."""
    min_seen: int = 1
    """How often the upstream must have answered a question, counting this time, before its answer is kept."""
    ttl_seconds: float = 86_400.0
    """Within which time."""


@dataclass(slots=True)
class _Count:
    entries: int
    counted_at: float
    added: int = 0

    @property
    def total(self) -> int:
        return self.entries + self.added


class Admission:
    """The bounds of one semantic keyspace."""

    def __init__(
        self,
        tickets: TicketStore,
        vectors: VectorStore,
        settings: AdmissionSettings,
        key: bytes,
        clock: Callable[[], float],
    ) -> None:
        """`key` is the cache's digest key; `clock` gives monotonic seconds."""
        self._tickets = tickets
        self._vectors = vectors
        self._settings = settings
        self._key = key
        self._clock = clock
        self._counts: dict[str | None, _Count] = {}
        """By tenant tag, and under None of all tenants."""
        self._space: VectorSpace | None = None

    async def refuse(self, space: VectorSpace, partition: EntryName, text: str) -> SemanticRefusal | None:
        """Say why an answer to this question is not kept, or make room for it; raises StoreError."""
        if self._settings.min_seen > 1:
            seen = await self._tickets.count_up(self._question(partition, text), self._settings.ttl_seconds)
            if seen < self._settings.min_seen:
                return SemanticRefusal.SELDOM
        if self._space != space:
            self._space, self._counts = space, {}
        per_tenant = self._settings.max_entries_per_tenant
        if not await self._has_room(space, None, self._settings.max_entries):
            return SemanticRefusal.FULL
        if per_tenant is not None and not await self._has_room(space, partition.tenant_tag, per_tenant):
            return SemanticRefusal.FULL
        return None

    def added(self, tenant_tag: str) -> None:
        """Count an entry that was stored."""
        for whose in (None, tenant_tag):
            if whose in self._counts:
                self._counts[whose].added += 1

    async def _has_room(self, space: VectorSpace, tenant_tag: str | None, bound: int) -> bool:
        count = await self._count(space, tenant_tag, bound)
        if count.total >= bound:
            bucket = max(1, bound // BUCKET_SHARE, count.total + 1 - bound)
            gone = await self._vectors.evict_oldest(space, bucket, tenant_tag)
            count.entries -= gone
        return count.total < bound * OVERFLOW

    async def _count(self, space: VectorSpace, tenant_tag: str | None, bound: int) -> _Count:
        count, now = self._counts.get(tenant_tag), self._clock()
        is_old = count is None or now - count.counted_at > RECOUNT_SECONDS
        if count is None or is_old or count.added * RECOUNT_SHARE > bound:
            self._counts.pop(tenant_tag, None)
            count = _Count(await self._vectors.count(space, tenant_tag), now)
            self._counts[tenant_tag] = count
            while len(self._counts) > MOST_TENANTS:
                del self._counts[next(iter(self._counts))]
        return count

    def _question(self, partition: EntryName, text: str) -> EntryName:
        """Name the count of a question, in whatever case and with whatever spaces it is written."""
        words = " ".join(text.casefold().split())
        fields = encode_fields(
            "cachewright/seen",
            [("partition", partition.digest.encode()), ("words", words.encode("utf-8", "surrogatepass"))],
        )
        return replace(partition, digest=hashlib.blake2b(fields, digest_size=32, key=self._key).hexdigest())
