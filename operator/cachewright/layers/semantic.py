"""The semantic layer: from a question that the exact layer missed to the answer of a similar one.

Fuzzy in the question alone: all else is an exact partition, which the vector store filters by. What it finds
is only a candidate. The guard must have nothing against the pair, and the candidate's *ticket* must be in
Redis, under the same revision and generations and with the same nonce; so a switch, a retraction, a purge or
an emptied Redis ends entries here as surely as in the exact layer, whatever the vector store still holds.

Trouble never raises: it is a reason. Called by the gateway's flow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from cachewright.embedders.protocol import Embedder, Embedding
from cachewright.errors import (
    EmbedderError,
    EmbedderMismatch,
    EmbedderUnavailable,
    SpaceNotFound,
    StoreError,
    StoreUnavailable,
)
from cachewright.keys.digest import DIGEST_BYTES, EntryName
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import TAGS
from cachewright.layers.background import retrieved
from cachewright.layers.breaker import Breaker
from cachewright.layers.budget import ends_within
from cachewright.layers.entry import Entry, decode_entry
from cachewright.layers.exact import Hit, Miss
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.similar import LAYER, Asked, Draft, NoMatch, Sample, SemanticSettings
from cachewright.layers.ticket import nonce_of
from cachewright.layers.vector_space import OpenSpace
from cachewright.policy.guard import GuardReason, refusals
from cachewright.policy.guard_language import language_of
from cachewright.policy.reasons import SemanticReason
from cachewright.stores.protocols import CacheStore, Marks
from cachewright.stores.vectors import Hit as Candidate
from cachewright.stores.vectors import VectorSpace, VectorStore

T = TypeVar("T")
Looked = Hit | NoMatch


class SemanticLayer:
    """Look-ups of the semantic layer of one cache."""

    def __init__(
        self,
        store: CacheStore,
        vectors: VectorStore,
        embedder: Embedder,
        space: OpenSpace,
        known: KnownRecord,
        breakers: tuple[Breaker, Breaker],
        settings: SemanticSettings,
        key: bytes,
        wall_clock: Callable[[], float],
    ) -> None:
        """`breakers` are the vector store's and the embedder's; `key` is the cache's digest key."""
        self._store = store
        self._vectors = vectors
        self._embedder = embedder
        self._space = space
        self._known = known
        self._vectors_breaker, self._embedder_breaker = breakers
        self._settings = settings
        self._key = key
        self._wall_clock = wall_clock
        self._under_way: dict[tuple[str, float, Marks], tuple[Draft, asyncio.Task[Looked]]] = {}
        """By ticket, threshold and what was seen: whoever asks the same meanwhile shares a look-up."""

    async def look_up(self, asked: Asked, budget_seconds: float) -> Looked:
        """Look for the answer of a similar question, within the budget whatever embedder and store do."""
        draft = self._draft(asked)
        if isinstance(draft, SemanticReason):
            return NoMatch(draft)
        if reason := self._why_left_alone():
            return NoMatch(reason, draft)
        purpose = (draft.ticket.key, asked.threshold, draft.seen)
        if purpose not in self._under_way:
            search = asyncio.ensure_future(self._search(draft, asked))
            self._under_way[purpose] = (draft, search)
            search.add_done_callback(lambda _: self._under_way.pop(purpose, None))
        draft, search = self._under_way[purpose]
        # Not cancelled when the budget ends: the embedding is needed anyway, to keep the answer.
        if await ends_within(search, budget_seconds):
            return search.result()
        late = draft.embedding is not None and not draft.embedding.done()
        (self._embedder_breaker if late else self._vectors_breaker).trip()
        return NoMatch(SemanticReason.BUDGET, draft)

    def draft(self, asked: Asked) -> Draft | None:
        """Prepare to keep an answer without having looked for one; None where it cannot be kept."""
        draft = self._draft(asked)
        return None if isinstance(draft, SemanticReason) else draft

    def _draft(self, asked: Asked) -> Draft | SemanticReason:
        record = self._known.best
        layer = record.layers.get(LAYER) if record else None
        # Under another revision the exact layer may have looked for something else.
        if layer is None or layer.binding != self._settings.binding or record is None:
            return SemanticReason.NO_KEYSPACE
        place = asked.place
        if record.revision != place.seen.revision:
            return SemanticReason.NO_KEYSPACE
        text = asked.question.text
        if not self._settings.other_languages and language_of(text) is None:
            return SemanticReason.LANGUAGE
        digest = asked.dependence.partition_at(place.generations, asked.question.rest, asked.question.where)
        ticket = replace(place.name, keyspace=layer.keyspace, chosen_tag=place.name.tag)
        partition = EntryName(self._settings.cache_id, layer.keyspace, place.name.tenant_tag, digest)
        return Draft(ticket, place.seen, partition, None, text, place.dependence)

    def _why_left_alone(self) -> SemanticReason | None:
        if self._space.is_mismatched:
            return SemanticReason.EMBEDDER_MISMATCH
        if self._embedder_breaker.is_open:
            return SemanticReason.EMBEDDER
        return SemanticReason.VECTOR_STORE if self._vectors_breaker.is_open else None

    async def _search(self, draft: Draft, asked: Asked) -> Looked:
        is_empty = await self._is_empty(draft)
        if is_empty:
            return NoMatch(SemanticReason.EMPTY if is_empty is True else is_empty, draft)
        embedding = await self.embed(draft)
        if isinstance(embedding, SemanticReason):
            return NoMatch(embedding, draft)
        if not embedding.is_embeddable:
            return NoMatch(SemanticReason.NOT_EMBEDDABLE)
        space = await self.open(draft.ticket.keyspace)
        if isinstance(space, SemanticReason):
            return NoMatch(space, draft)
        found = await self.ask_vectors(
            self._vectors.search(
                space,
                embedding.vector,
                draft.ticket.tenant_tag,
                draft.partition.digest,
                self._wall_clock(),
            )
        )
        if isinstance(found, SemanticReason):
            return NoMatch(found, draft)
        return await self._choose(found, space, draft, asked)

    async def _choose(
        self, candidates: Sequence[Candidate], space: VectorSpace, draft: Draft, asked: Asked
    ) -> Looked:
        """Take the most similar candidate that the guard lets pass and that still counts."""
        refused: list[GuardReason] = []
        samples: list[Sample] = []
        best = candidates[0].score if candidates else None
        reason = SemanticReason.BELOW
        for candidate in candidates:
            if not candidate.score >= asked.threshold:
                break
            against = refusals(
                draft.text,
                candidate.question,
                self._settings.guard,
                other_languages=self._settings.other_languages,
            )
            refused += [name for name in against if name not in refused]
            if against:
                samples.append(Sample(draft.text, candidate.question, candidate.score, against))
                reason = SemanticReason.GUARD if reason is SemanticReason.BELOW else reason
                continue
            hit = await self._redeem(candidate, space, asked)
            if isinstance(hit, SemanticReason):
                return NoMatch(hit, draft, tuple(refused))
            if hit is not None and self._settings.serves:
                return hit
            reason = SemanticReason.GONE
            if hit is not None:
                samples.append(Sample(draft.text, candidate.question, candidate.score))
                reason = SemanticReason.SHADOW
                break
        kept = () if self._settings.serves else tuple(samples)
        return NoMatch(reason, draft, tuple(refused), kept, best)

    async def _redeem(
        self, candidate: Candidate, space: VectorSpace, asked: Asked
    ) -> Hit | SemanticReason | None:
        """Make a hit of a candidate whose ticket is in Redis; None where it does not count any more."""
        place, id_ = asked.place, candidate.id
        is_ours = id_.tenant_tag == place.name.tenant_tag and len(id_.digest) == 2 * DIGEST_BYTES
        if not is_ours or candidate.metadata not in TAGS:
            return None
        ticket = EntryName(
            self._settings.cache_id, space.keyspace, id_.tenant_tag, id_.digest, candidate.metadata
        )
        body = await self.ask_vectors(self._vectors.read_body(space, id_, candidate.nonce))
        if isinstance(body, SemanticReason) or body is None:
            return body
        try:
            # Last of all, so that what it says holds until the answer goes out.
            found = await self._store.find(ticket, asked.dependence.counters)
        except StoreError:
            return SemanticReason.STORE
        is_valid = (
            found.marks is not None
            and found.marks.revision == place.seen.revision
            and found.generations == place.generations
            and found.value is not None
            and nonce_of(found.value) == candidate.nonce
        )
        entry = decode_entry(body, ticket, self._key) if is_valid else None
        if entry is None or found.marks is None:
            return None
        return self._weigh(entry, Miss(ticket, found.marks, place.generations), candidate.score)

    def _weigh(self, entry: Entry, place: Miss, similarity: float) -> Hit | None:
        age_seconds = max(0.0, self._wall_clock() - entry.stored_at)
        remaining_seconds = min(entry.ttl_seconds, self._settings.ttl_seconds) - age_seconds
        if remaining_seconds <= 0:
            return None
        return Hit(entry, age_seconds + entry.older_seconds, remaining_seconds, place, similarity=similarity)

    async def _is_empty(self, draft: Draft) -> bool | SemanticReason:
        """Tell whether nothing is stored in the partition, so that the question need not be embedded."""
        try:
            found = await self._store.find(draft.partition)
        except StoreError:
            return SemanticReason.STORE
        if found.marks is not None and found.marks.revision == draft.seen.revision:
            draft.partition_seen = found.marks
        return found.value is None

    async def embed(self, draft: Draft) -> Embedding | SemanticReason:
        """Embed a draft's question, once for all who want it."""
        if draft.embedding is None:
            draft.embedding = asyncio.ensure_future(self._embed(draft.text))
            draft.embedding.add_done_callback(retrieved)
        try:
            return await asyncio.shield(draft.embedding)
        except EmbedderMismatch:
            return SemanticReason.EMBEDDER_MISMATCH
        except EmbedderUnavailable:
            self._embedder_breaker.trip()
            return SemanticReason.EMBEDDER
        except EmbedderError:
            return SemanticReason.EMBEDDER

    async def _embed(self, text: str) -> Embedding:
        (embedding,) = await self._embedder.embed([text])
        return embedding

    async def open(self, keyspace: Keyspace) -> VectorSpace | SemanticReason:
        """Return the keyspace's space, whose vectors the embedder still speaks."""
        try:
            return await self.ask_vectors(self._space.of(keyspace))
        except EmbedderMismatch:
            return SemanticReason.EMBEDDER_MISMATCH
        except EmbedderUnavailable:
            self._embedder_breaker.trip()
            return SemanticReason.EMBEDDER
        except EmbedderError:
            return SemanticReason.EMBEDDER

    async def ask_vectors(self, call: Awaitable[T]) -> T | SemanticReason:
        """Carry out a call to the vector store, or say that it failed."""
        try:
            return await call
        except StoreUnavailable:
            self._vectors_breaker.trip()
        except SpaceNotFound:
            self._space.forget()
        except StoreError:
            pass
        return SemanticReason.VECTOR_STORE
