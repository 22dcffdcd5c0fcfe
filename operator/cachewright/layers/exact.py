"""The exact layer: from a tenant's digest to an answer stored before, and from an answer to an entry.

Keyspaces come from the record alone, and are used only when the record is bound to the policy this process
enacts. Trouble with the store never raises: it is a reason. Called by the gateway's flow.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cachewright.errors import StoreError, StoreUnavailable
from cachewright.keys.digest import EntryName
from cachewright.keys.generations import Dependence
from cachewright.keys.record import KeyspaceState, LayerRecord, Record
from cachewright.layers.background import retrieved
from cachewright.layers.breaker import Breaker
from cachewright.layers.budget import ends_within
from cachewright.layers.entry import Entry, decode_entry, encode_dependence, encode_entry
from cachewright.layers.known_generations import KnownGenerations
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.lease import Lease, Leases
from cachewright.layers.local import LocalCache, Question
from cachewright.layers.mending import Mending
from cachewright.policy.reasons import BypassReason, RefusalReason
from cachewright.stores.protocols import CacheStore, Marks, WriteOutcome

LAYER: Final = "Exact"
"""The layer's name in the record."""

MOST_ROUNDS: Final = 4
"""Look, learn of a newer record, of raised generations, or refill an emptied store, look again; more means
that the store plays tricks."""


_REFUSALS: Final = {
    WriteOutcome.WRITTEN: None,
    WriteOutcome.CHANGED: RefusalReason.CHANGED,
    WriteOutcome.READONLY: RefusalReason.READONLY,
}


@dataclass(frozen=True, slots=True)
class ExactSettings:
    """What the layer needs of the policy."""

    cache_id: str
    binding: str
    ttl_seconds: float
    budget_seconds: float
    """Longest that a look-up may keep a request waiting."""
    layer: str = LAYER
    """Name in the record of the layer whose entries these are; others keep theirs by the same rules."""


@dataclass(frozen=True, slots=True)
class Miss:
    """No answer, and where and under which marks one may be stored."""

    name: EntryName
    seen: Marks
    generations: tuple[int, ...] = ()
    """What the counters were that the name depends on."""
    counters: tuple[str, ...] = ()
    """Those counters."""
    template: str = ""
    """Mark of the prompt template that the answer is made with; see `keys.generations`."""
    is_writable: bool = True
    """False while the keyspace is read-only: asking the store would be in vain."""

    @property
    def dependence(self) -> bytes:
        """What the answer that is stored here depends on, for its entry."""
        return encode_dependence(self.counters, self.generations, self.template)


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer that may be replayed."""

    entry: Entry
    age_seconds: float
    ttl_seconds: float
    """What remains."""
    place: Miss
    """Where a fresher answer may be stored."""
    is_local: bool = False
    """True where this process had a copy and did not ask the store."""
    similarity: float | None = None
    """Set where it was stored for another question: the cosine between the two."""


class ExactLayer:
    """The exact layer of one cache over one store."""

    def __init__(
        self,
        store: CacheStore,
        known: KnownRecord,
        breaker: Breaker,
        settings: ExactSettings,
        key: bytes,
        wall_clock: Callable[[], float],
        local: LocalCache | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`key` is the cache's digest key; `wall_clock` gives seconds since the epoch.

        `clock` gives monotonic seconds, the same that `local` goes by.
        """
        self._store = store
        self._known = known
        self._breaker = breaker
        self._settings = settings
        self._key = key
        self._wall_clock = wall_clock
        self._local = local
        self._clock = clock
        self._generations = KnownGenerations()
        self._mending = Mending(store, settings.cache_id, settings.layer, known)
        self._leases = Leases(store, breaker, settings.budget_seconds)
        self._late: set[asyncio.Task[Hit | Miss | BypassReason]] = set()

    @property
    def cache_id(self) -> str:
        """The cache whose entries these are."""
        return self._settings.cache_id

    async def look_up(
        self, tenant_tag: str, digest: str, dependence: Dependence | None = None
    ) -> Hit | Miss | BypassReason:
        """Look for an answer, within the budget whatever the store does.

        `digest` is the question's with all generations 0; the place that is found or missed has another one
        where a counter of its `dependence` was raised.
        """
        if (hit := self._find_copy(tenant_tag, digest, dependence)) is not None:
            return hit
        if self._breaker.is_open:
            return BypassReason.STORE
        # The search is not cancelled when the budget ends: a connection being opened is worth having, and
        # the store bounds each call by itself.
        search = asyncio.ensure_future(self._search(tenant_tag, digest, dependence))
        self._late.add(search)
        search.add_done_callback(self._finished)
        try:
            if await ends_within(search, self._settings.budget_seconds):
                return search.result()
        except StoreError:
            pass
        self._breaker.trip()
        return BypassReason.STORE

    async def write(
        self,
        miss: Miss,
        content_type: str,
        body: bytes,
        usage: bytes = b"",
        upstream_seconds: float = 0.0,
        longest_seconds: float | None = None,
    ) -> RefusalReason | None:
        """Store the answer to a miss, its parts as in Entry; returns why not, or None once it is stored.

        `longest_seconds` shortens its life, and never lengthens it.
        """
        if self._breaker.is_open:
            return RefusalReason.STORE
        ttl_seconds = self._settings.ttl_seconds
        if longest_seconds is not None:
            ttl_seconds = min(ttl_seconds, longest_seconds)
        stored_at = self._wall_clock()
        return await self._store_entry(
            Entry(content_type, body, stored_at, ttl_seconds, usage, upstream_seconds), miss
        )

    async def back_fill(self, miss: Miss, hit: Hit, source: bytes) -> RefusalReason | None:
        """Store what another layer's hit gave for this question, for no longer than it lives there.

        `source` is the link to that layer's entry. Returns why not, or None once it is stored.
        """
        if self._breaker.is_open:
            return RefusalReason.STORE
        copy = replace(
            hit.entry,
            stored_at=self._wall_clock(),
            ttl_seconds=min(self._settings.ttl_seconds, hit.ttl_seconds),
            older_seconds=hit.age_seconds,
            source=source,
        )
        return await self._store_entry(copy, miss)

    async def _store_entry(self, entry: Entry, miss: Miss) -> RefusalReason | None:
        if not miss.is_writable:
            return RefusalReason.READONLY
        entry = replace(entry, dependence=miss.dependence)
        value = encode_entry(entry, miss.name, self._key)
        try:
            written = await self._store.write(miss.name, value, entry.ttl_seconds, miss.seen)
        except StoreUnavailable:
            self._breaker.trip()
            return RefusalReason.STORE
        except StoreError:  # out of memory, for one: reading goes on
            return RefusalReason.STORE
        self._forget_copy(miss.name)  # a fresher answer may have replaced what it was made from
        return _REFUSALS[written]

    def lease(self, place: Miss) -> Lease:
        """Return the claim to ask the upstream for what was missed, to be taken and released."""
        return self._leases.lease(place.name)

    async def peek(self, place: Miss) -> Hit | None:
        """Look again where an answer was missed, under the same marks; raises StoreError."""
        found = await self._store.find(place.name)
        judged = self._judge(found.value, place) if found.marks == place.seen else place
        return judged if isinstance(judged, Hit) else None

    async def inspect(self, name: EntryName) -> Entry | None:
        """Read one entry for people, without a budget; raises StoreError."""
        value = (await self._store.find(name)).value
        return None if value is None else decode_entry(value, name, self._key)

    async def remove(self, name: EntryName) -> bool:
        """Remove one entry so that no write that began before brings it back; raises StoreError."""
        self._forget_copy(name)
        try:
            return await self._store.remove(name)
        finally:
            self._forget_copy(name)  # of a look-up that was under way

    async def retract(self, counters: Sequence[str]) -> None:
        """Raise generation counters, so that what depends on them is out of reach; raises StoreError."""
        await self._mending.retract(counters)

    async def catch_up(self) -> None:
        """Learn what the store holds now, and mend it; called each second. Raises StoreError."""
        if not self._breaker.is_open:
            await self._mending.look()

    async def _search(
        self, tenant_tag: str, digest: str, dependence: Dependence | None
    ) -> Hit | Miss | BypassReason:
        counters = dependence.counters if dependence else ()
        for _ in range(MOST_ROUNDS):
            record = self._known.best
            if record is None:
                return BypassReason.NO_RECORD
            layer = self._usable(record)
            if layer is None:
                return BypassReason.POLICY_OUTDATED
            generations = self._generations.of(counters)
            name = EntryName(self._settings.cache_id, layer.keyspace, tenant_tag, digest)
            if dependence is not None and any(generations):
                name = replace(name, digest=dependence.digest_at(generations), chosen_tag=name.tag)
            started = self._clock()
            read = self._mending.begin()
            found = await self._store.find(name, counters)
            self._generations.learn(counters, found.generations)
            self._note_marks(name.tag, found.marks, started)
            marks = await self._mending.judge(record, name.tag, found.marks, read)
            if marks is None:
                continue
            if marks.revision > record.revision:
                newer = await self._store.read_record(self._settings.cache_id)
                if newer is None or newer.revision <= record.revision:
                    return BypassReason.NO_RECORD
                self._known.offer(newer)
            elif found.generations == generations:
                template = dependence.template if dependence else ""
                is_writable = layer.state is KeyspaceState.ACTIVE
                place = Miss(name, marks, generations, counters, template, is_writable)
                judged = self._judge(found.value, place)
                if isinstance(judged, Hit):
                    self._keep_copy((layer.keyspace, tenant_tag, digest, counters), judged, started)
                return judged
        return BypassReason.STORE

    def _find_copy(self, tenant_tag: str, digest: str, dependence: Dependence | None) -> Hit | None:
        """Look into this process' own copies, under the same record as in the store."""
        layer = self._usable(self._known.best) if self._local is not None else None
        if self._local is None or layer is None:
            return None
        counters = dependence.counters if dependence else ()
        copy = self._local.find((layer.keyspace, tenant_tag, digest, counters))
        if copy is None:
            return None
        template = dependence.template if dependence else ""
        is_writable = layer.state is KeyspaceState.ACTIVE
        place = Miss(copy.name, copy.marks, copy.generations, counters, template, is_writable)
        judged = self._weigh(copy.entry, place, is_local=True)
        return judged if isinstance(judged, Hit) else None

    def _note_marks(self, tag: str, marks: Marks | None, started: float) -> None:
        if self._local is not None:
            self._local.marks.saw(tag, marks, started)

    def _keep_copy(self, question: Question, hit: Hit, started: float) -> None:
        if self._local is not None:
            place = hit.place
            self._local.keep(
                question, place.name, hit.entry, place.seen, started, hit.ttl_seconds, place.generations
            )

    def _forget_copy(self, name: EntryName) -> None:
        if self._local is not None:
            self._local.keys_changed([name.key])

    def _usable(self, record: Record | None) -> LayerRecord | None:
        layer = record.layers.get(self._settings.layer) if record else None
        return layer if layer and layer.binding == self._settings.binding else None

    def _judge(self, value: bytes | None, place: Miss) -> Hit | Miss:
        entry = decode_entry(value, place.name, self._key) if value is not None else None
        return place if entry is None else self._weigh(entry, place)

    def _weigh(self, entry: Entry, place: Miss, *, is_local: bool = False) -> Hit | Miss:
        # The store's own expiry comes first; this holds when its clock or the declared TTL has changed.
        age_seconds = max(0.0, self._wall_clock() - entry.stored_at)
        remaining_seconds = min(entry.ttl_seconds, self._settings.ttl_seconds) - age_seconds
        if remaining_seconds <= 0:
            return place
        return Hit(entry, age_seconds + entry.older_seconds, remaining_seconds, place, is_local)

    def _finished(self, search: asyncio.Task[Hit | Miss | BypassReason]) -> None:
        self._late.discard(search)
        retrieved(search)
