"""The cold tier of the embedding layer: an EmbeddingStore, a budget and a breaker.

Whatever the store does, no request waits longer than the budget, and a tier in trouble is as if it were not
there. Tables are made in the background, and only for a keyspace that a look-up has just seen in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from cachewright.errors import SpaceNotFound, StoreError, StoreUnavailable
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.background import retrieved
from cachewright.layers.breaker import Breaker
from cachewright.layers.budget import ends_within
from cachewright.stores.embeddings import ColdEmbedding, ColdFound, EmbeddingSpace, EmbeddingStore

_log = structlog.get_logger(__name__)


class ColdTier:
    """One store, for one cache."""

    def __init__(
        self,
        store: EmbeddingStore,
        breaker: Breaker,
        budget_seconds: float,
        is_in_use: Callable[[Keyspace], bool],
    ) -> None:
        """`is_in_use` tells whether the record still lists a keyspace for the layer."""
        self._store = store
        self._breaker = breaker
        self._budget_seconds = budget_seconds
        self._is_in_use = is_in_use
        self._making: dict[EmbeddingSpace, asyncio.Task[None]] = {}
        self._late: set[asyncio.Task[Any]] = set()

    async def find(
        self, cache_id: str, keyspace: Keyspace, tenant_tag: str, digests: Sequence[str]
    ) -> ColdFound | None:
        """Look vectors up, within the budget; None where there is no answer."""
        space = EmbeddingSpace(cache_id, keyspace)
        if self._breaker.is_open or space in self._making:
            return None
        search = asyncio.ensure_future(self._store.find(space, tenant_tag, digests))
        self._late.add(search)
        search.add_done_callback(self._finished)
        try:
            if await ends_within(search, self._budget_seconds):
                return search.result()
        except SpaceNotFound:
            self._make(space)
            return None
        except StoreError as e:
            _log.warning("cold_embeddings_failed", error=str(e))
        search.cancel()
        self._breaker.trip()
        return None

    async def write(
        self, cache_id: str, keyspace: Keyspace, tenant_tag: str, generation: int, rows: list[ColdEmbedding]
    ) -> bool:
        """Store vectors that were looked up at `generation`; tells whether they were."""
        if self._breaker.is_open:
            return False
        try:
            return await self._store.write(EmbeddingSpace(cache_id, keyspace), tenant_tag, rows, generation)
        except StoreUnavailable:
            self._breaker.trip()
        except StoreError as e:  # the space is gone, or the disk is full: reading goes on
            _log.warning("cold_embeddings_not_stored", error=str(e))
        return False

    async def raise_generations(self, cache_id: str, counters: Sequence[str]) -> None:
        """Raise counters; raises StoreError."""
        await self._store.raise_generations(cache_id, counters)

    def _make(self, space: EmbeddingSpace) -> None:
        if space not in self._making:
            self._making[space] = asyncio.ensure_future(self._ensure(space))

    async def _ensure(self, space: EmbeddingSpace) -> None:
        try:
            if self._is_in_use(space.keyspace):
                await self._store.ensure(space)
        except StoreError as e:
            _log.warning("cold_embeddings_not_made", error=str(e))
            self._breaker.trip()
        finally:
            del self._making[space]

    def _finished(self, search: asyncio.Task[Any]) -> None:
        self._late.discard(search)
        retrieved(search)
