"""Keeping: from the upstream's answer to an entry of the semantic layer, and from its hits to exact entries.

An entry is put into the vector store first and gets its ticket in Redis afterwards, by the script that also
checks that nothing has changed since the request began; without a ticket it is never served. Called by the
gateway's writes, off every request's path.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cachewright.embedders.protocol import Embedding
from cachewright.errors import StoreError
from cachewright.keys.digest import EntryName
from cachewright.keys.entry_link import pack_link, unpack_links
from cachewright.layers.admission import Admission
from cachewright.layers.entry import Entry, encode_entry
from cachewright.layers.exact import LAYER as EXACT
from cachewright.layers.exact import ExactLayer, Hit, Miss
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.semantic import SemanticLayer
from cachewright.layers.similar import LAYER, Draft, SemanticSettings
from cachewright.layers.ticket import NONCE_BYTES, encode_ticket, links_of, most_bytes_of, nonce_of
from cachewright.policy.answers import KeptAnswer
from cachewright.policy.reasons import RefusalReason, SemanticReason, SemanticRefusal
from cachewright.stores.protocols import CacheStore, WriteOutcome
from cachewright.stores.vectors import EntryId, VectorEntry, VectorSpace, VectorStore

_REFUSALS: Final = {
    SemanticReason.EMBEDDER: SemanticRefusal.EMBEDDER,
    SemanticReason.EMBEDDER_MISMATCH: SemanticRefusal.EMBEDDER_MISMATCH,
    SemanticReason.VECTOR_STORE: SemanticRefusal.VECTOR_STORE,
}


class Keeping:
    """Writes of the semantic layer of one cache."""

    def __init__(
        self,
        layer: SemanticLayer,
        known: KnownRecord,
        store: CacheStore,
        vectors: VectorStore,
        admission: Admission,
        settings: SemanticSettings,
        key: bytes,
        wall_clock: Callable[[], float],
    ) -> None:
        """`key` is the cache's digest key; `wall_clock` gives seconds since the epoch."""
        self._layer = layer
        self._known = known
        self._store = store
        self._vectors = vectors
        self._admission = admission
        self._settings = settings
        self._key = key
        self._wall_clock = wall_clock

    async def keep(
        self, draft: Draft, kept: KeptAnswer, upstream_seconds: float, longest_seconds: float | None
    ) -> SemanticRefusal | None:
        """Keep an answer; returns why not, or None once it can be found.

        `longest_seconds` shortens its life, and never lengthens it.
        """
        embedding = await self._layer.embed(draft)
        if isinstance(embedding, SemanticReason):
            return _REFUSALS[embedding]
        if not embedding.is_embeddable:
            return SemanticRefusal.NOT_EMBEDDABLE
        space = await self._layer.open(draft.ticket.keyspace)
        if isinstance(space, SemanticReason):
            return _REFUSALS[space]
        refused = await self._layer.ask_vectors(self._admission.refuse(space, draft.partition, draft.text))
        if refused is not None:
            return _REFUSALS[refused] if isinstance(refused, SemanticReason) else refused
        ttl_seconds = min(self._settings.ttl_seconds, longest_seconds or self._settings.ttl_seconds)
        entry = Entry(
            kept.content_type, kept.body, self._wall_clock(), ttl_seconds, kept.usage, upstream_seconds
        )
        return await self._put(space, draft, embedding, entry)

    async def back_fill(self, exact: ExactLayer, place: Miss, hit: Hit) -> RefusalReason | None:
        """Keep a hit's answer as the exact answer to the question that found it; returns why not.

        It is noted in the ticket first, so that whoever removes that entry knows what to remove beside it.
        """
        found = hit.place.name
        try:
            value = (await self._store.find(found)).value
            is_noted = value is not None and await self._store.extend(
                found, nonce_of(value), pack_link(place.name), most_bytes_of(value)
            )
        except StoreError:
            return RefusalReason.STORE
        return await exact.back_fill(place, hit, pack_link(found)) if is_noted else RefusalReason.CHANGED

    async def related(self, name: EntryName) -> tuple[EntryName, ...]:
        """List what has to go with an entry of the exact layer or of this one; raises StoreError.

        The entry of the same question in the other layer, and the exact entries that were copied from it.
        """
        record = self._known.best
        layers = record.layers if record else {}
        semantic, exact = layers.get(LAYER), layers.get(EXACT)
        if semantic is None or exact is None:
            return ()
        ticket = replace(name, keyspace=semantic.keyspace, chosen_tag=name.tag)
        twin = replace(name, keyspace=exact.keyspace, chosen_tag=name.tag)
        value = (await self._store.find(ticket)).value or b""
        copies = unpack_links(links_of(value), name.cache_id, name.tenant_tag)
        others = {other.key: other for other in (ticket, twin, *copies)}  # a copy may be noted twice
        return tuple(other for key, other in others.items() if key != name.key)

    async def _put(
        self, space: VectorSpace, draft: Draft, embedding: Embedding, entry: Entry
    ) -> SemanticRefusal | None:
        nonce, id_ = secrets.token_bytes(NONCE_BYTES), EntryId(draft.ticket.tenant_tag, draft.ticket.digest)
        put = await self._layer.ask_vectors(
            self._vectors.put(
                space,
                VectorEntry(
                    id=id_,
                    vector=embedding.vector,
                    partition=draft.partition.digest,
                    question=draft.text,
                    nonce=nonce,
                    body=encode_entry(entry, draft.ticket, self._key),
                    metadata=draft.ticket.tag,
                    stored_at=entry.stored_at,
                    expires_at=entry.stored_at + entry.ttl_seconds,
                ),
            )
        )
        if put is not None:
            return _REFUSALS[put]
        refused = await self._confirm(draft, nonce, entry.ttl_seconds)
        if refused is not None:
            await self._layer.ask_vectors(self._vectors.remove(space, [id_]))
        else:
            self._admission.added(draft.ticket.tenant_tag)
        return refused

    async def _confirm(self, draft: Draft, nonce: bytes, ttl_seconds: float) -> SemanticRefusal | None:
        """Write the ticket, and the mark that the partition is not empty."""
        try:
            outcome = await self._store.write(
                draft.ticket, encode_ticket(nonce, draft.dependence), ttl_seconds, draft.seen
            )
            if outcome is WriteOutcome.READONLY:
                return SemanticRefusal.READONLY
            if not outcome:
                return SemanticRefusal.CHANGED
            seen = draft.partition_seen or (await self._store.find(draft.partition)).marks
            # It outlives every entry of the partition, whatever those lives were shortened to.
            if seen is not None and seen.revision == draft.seen.revision:
                await self._store.write(draft.partition, b"1", self._settings.ttl_seconds, seen)
        except StoreError:
            return SemanticRefusal.STORE
        return None
