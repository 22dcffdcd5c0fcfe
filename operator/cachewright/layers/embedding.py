"""The embedding layer: from the inputs of a request to vectors that were computed before, and back.

The hot tier is Redis, kept by the exact layer's rules: keyspace from the record, marks, generations, sealed
entries. The cold tier is asked for what the hot one lacks, and what it gives goes to the hot one again. Each
vector is float32, little-endian. Called by the gateway; trouble with a store is a reason and never raises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from cachewright.keys.digest import exact_digest
from cachewright.keys.embedding import EMBEDDING, embedding_question
from cachewright.keys.generations import Dependence
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.cold_embeddings import ColdTier
from cachewright.layers.exact import ExactLayer, Hit, Miss
from cachewright.policy.embeddings import Input
from cachewright.policy.reasons import BypassReason, RefusalReason
from cachewright.stores.embeddings import ColdEmbedding

CONTENT_TYPE: Final = "application/vnd.cachewright.float32"
"""Of the entries in the hot tier."""

TOGETHER: Final = 32
"""Inputs that are looked up at a time, each group within the budget: a long batch must not take itself for a
slow store."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the vector of an input is kept, or may be."""

    miss: Miss
    digest: str
    """With all generations 0: its name in the cold tier."""
    generation: int | None = None
    """Of the cold tier when it was asked; None where it was not, or gave no answer."""


@dataclass(frozen=True, slots=True)
class Held:
    """A vector that was computed before."""

    vector: bytes
    n_tokens: int
    """0 where it is not known."""
    place: Place
    tier: Literal["hot", "cold"]
    age_seconds: float = 0.0
    """0 where the cold tier had it: it knows no age."""
    ttl_seconds: float | None = None
    """What remains in the hot tier."""
    computed_seconds: float = 0.0
    """What the embedder took for it."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A vector that the embedder has just given."""

    place: Place
    vector: bytes
    n_tokens: int
    seconds: float = 0.0


Looked = Held | Place | BypassReason


class EmbeddingLayer:
    """The embedding layer of one cache."""

    def __init__(self, hot: ExactLayer, cold: ColdTier | None, key: bytes, cache_id: str) -> None:
        """`hot` must be made for the layer Embedding; `key` is the cache's digest key."""
        self.hot = hot
        """The hot tier."""
        self._cold = cold
        self._key = key
        self._cache_id = cache_id

    async def look_up(
        self, tenant_tag: str, inputs: Sequence[Input], settings: Mapping[str, Any]
    ) -> list[Looked]:
        """Look for the vectors of several inputs; one result for each, in their order.

        `settings` are as for `embedding_question`. Raises AmbiguousJson where an input has no canonical form.
        """
        asked = [self._dependence(tenant_tag, given, settings) for given in inputs]
        looked: list[Looked] = []
        for start in range(0, len(asked), TOGETHER):
            group = asked[start : start + TOGETHER]
            looked += await asyncio.gather(*(self._look_into_hot(tenant_tag, *each) for each in group))
        return await self._look_into_cold(tenant_tag, looked)

    async def write(
        self, computed: Sequence[Computed], longest_seconds: float | None = None
    ) -> RefusalReason | None:
        """Store vectors in both tiers; returns why the hot one did not take one of them.

        `longest_seconds` shortens their life in the hot tier; what has to be forgotten by then is not kept in
        the cold one at all.
        """
        if self._cold is not None and longest_seconds is None:
            await self._write_cold(self._cold, computed)
        refused = None
        for start in range(0, len(computed), TOGETHER):
            group = computed[start : start + TOGETHER]
            outcomes = await asyncio.gather(*(self._write_hot(each, longest_seconds) for each in group))
            refused = refused or next((why for why in outcomes if why is not None), None)
        return refused

    async def warm(self, found: Sequence[Held]) -> RefusalReason | None:
        """Bring what the cold tier had to the hot one."""
        for held in found:
            refused = await self._write_hot(Computed(held.place, held.vector, held.n_tokens), None)
            if refused is not None:
                return refused
        return None

    async def raise_cold(self, counters: Sequence[str]) -> None:
        """Put vectors of the cold tier out of reach; raises StoreError, and is to be done again then."""
        if self._cold is not None:
            await self._cold.raise_generations(self._cache_id, counters)

    async def catch_up(self) -> None:
        """Ask the store for a newer record where ours cannot be used; raises StoreError."""
        await self.hot.catch_up()

    def _dependence(
        self, tenant_tag: str, given: Input, settings: Mapping[str, Any]
    ) -> tuple[str, Dependence]:
        question = embedding_question(given, settings)
        dependence = Dependence.of(self._key, tenant_tag, question, layers=(EMBEDDING,))
        return exact_digest(self._key, tenant_tag, question), dependence

    async def _look_into_hot(self, tenant_tag: str, digest: str, dependence: Dependence) -> Looked:
        found = await self.hot.look_up(tenant_tag, digest, dependence)
        if isinstance(found, Miss):
            return Place(found, digest)
        if isinstance(found, Hit):
            entry = found.entry
            usage = entry.usage
            return Held(
                entry.body,
                int(usage) if usage.isdigit() else 0,
                Place(found.place, digest),
                "hot",
                found.age_seconds,
                found.ttl_seconds,
                entry.upstream_seconds,
            )
        return found

    async def _look_into_cold(self, tenant_tag: str, looked: list[Looked]) -> list[Looked]:
        places = [place for place in looked if isinstance(place, Place)]
        keyspaces = {place.miss.name.keyspace for place in places}
        if self._cold is None or len(keyspaces) != 1:  # a switch in the middle: the next request is cached
            return looked
        digests = [place.digest for place in places]
        found = await self._cold.find(self._cache_id, keyspaces.pop(), tenant_tag, digests)
        if found is None:
            return looked

        def completed(each: Looked) -> Looked:
            if not isinstance(each, Place):
                return each
            place = Place(each.miss, each.digest, found.generation)
            held = found.embeddings.get(each.digest)
            return Held(held.vector, held.n_tokens, place, "cold") if held else place

        return [completed(each) for each in looked]

    async def _write_cold(self, cold: ColdTier, computed: Sequence[Computed]) -> None:
        together: dict[tuple[Keyspace, str, int], list[ColdEmbedding]] = {}
        for each in computed:
            name, generation = each.place.miss.name, each.place.generation
            if generation is not None:
                rows = together.setdefault((name.keyspace, name.tenant_tag, generation), [])
                rows.append(ColdEmbedding(each.place.digest, each.vector, each.n_tokens))
        for (keyspace, tenant_tag, generation), rows in together.items():
            await cold.write(self._cache_id, keyspace, tenant_tag, generation, rows)

    async def _write_hot(self, computed: Computed, longest_seconds: float | None) -> RefusalReason | None:
        return await self.hot.write(
            computed.place.miss,
            CONTENT_TYPE,
            computed.vector,
            str(computed.n_tokens).encode(),
            computed.seconds,
            longest_seconds,
        )
