"""Assembly of the embedding layer: tiers, probe and source, reusing what has not changed.

Called by the assembly for each configuration that has the layer; owns what it has to close.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from cachewright.embedders.builtin import BuiltinEmbedder
from cachewright.embedders.opening import tls_context
from cachewright.embedders.protocol import Embedder
from cachewright.embedders.service import EmbeddingService
from cachewright.errors import InvalidDocument, InvalidInput
from cachewright.gateway.embedding_serving import EmbeddingServing
from cachewright.gateway.embedding_source import EmbeddingSource, InProcessSource, ServerSource
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.gateway.mounts import Configuration
from cachewright.gateway.throttle import Throttle
from cachewright.gateway.upstream import Upstream
from cachewright.keys.embedding import EMBEDDING
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.breaker import Breaker
from cachewright.layers.cold_embeddings import ColdTier
from cachewright.layers.embedding import EmbeddingLayer
from cachewright.layers.embedding_probe import EmbeddingProbe
from cachewright.layers.exact import ExactLayer, ExactSettings
from cachewright.layers.known_record import KnownRecord
from cachewright.policy.document import EmbedderPolicy, EmbeddingPolicy
from cachewright.stores.embedding_opening import open_embedding_store
from cachewright.stores.embeddings import EmbeddingStore
from cachewright.stores.protocols import CacheStore

LEAST_PROBE_SECONDS: Final = 0.1
"""A database counts as well when it answers within this or the budget, whatever is longer."""

COLD: Final = "cold_embeddings"
"""The cold tier's name in metrics and logs."""

Retire = Callable[..., None]
"""Closes something once no request can use it any more."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Hot:
    """What the layer shares with the exact layer."""

    store: CacheStore
    breaker: Breaker
    known: KnownRecord


@dataclass(frozen=True, slots=True)
class _Cold:
    store: EmbeddingStore
    breaker: Breaker
    tier: ColdTier

    async def aclose(self) -> None:
        await self.breaker.aclose()
        await self.store.aclose()


@dataclass(frozen=True, slots=True)
class _Built:
    purpose: tuple[object, ...]
    """What it was built for; anything else needs another one."""
    serving: EmbeddingServing
    probe: EmbeddingProbe
    closers: tuple[Callable[[], Awaitable[None]], ...]


class EmbeddingAssembly:
    """Builds the embedding layer of each configuration."""

    def __init__(
        self,
        metrics: GatewayMetrics,
        throttle: Throttle,
        retire: Retire,
        connections_changed: Callable[[], None],
    ) -> None:
        self._metrics = metrics
        self._throttle = throttle
        self._retire = retire
        self._connections_changed = connections_changed
        self._built: _Built | None = None
        self.cold: EmbeddingStore | None = None
        """The cold tier's store, for what tidies it."""

    def build(self, configuration: Configuration, hot: Hot, embedder: Embedder) -> EmbeddingServing | None:
        """Return what requests are served with; None where the policy has no such layer.

        Raises InvalidDocument, and changes nothing then.
        """
        policy = configuration.policy
        embedding, described = policy.embedding, policy.embedder
        if embedding is None or described is None:
            self.close_former()
            return None
        purpose: tuple[object, ...] = (
            *(embedding, described, policy.cache_id, configuration.digest_key, embedder, hot.store),
            *(configuration.vectors, policy.upstream.url, policy.total_budget_seconds),
        )
        if self._built is None or self._built.purpose != purpose:
            self._replace(self._make(purpose, configuration, hot, embedder, embedding, described))
        return self._built.serving if self._built else None

    def close_former(self) -> None:
        """Close what an earlier configuration had, since this one has no such layer."""
        self._replace(None)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._built is not None:
            for close in self._built.closers:
                await close()

    def _make(
        self,
        purpose: tuple[object, ...],
        configuration: Configuration,
        hot: Hot,
        embedder: Embedder,
        embedding: EmbeddingPolicy,
        described: EmbedderPolicy,
    ) -> _Built:
        cache_id, key = configuration.policy.cache_id, configuration.digest_key
        budget_seconds = configuration.policy.total_budget_seconds
        settings = ExactSettings(
            cache_id, embedding.binding, embedding.hot_ttl_seconds, budget_seconds, layer=EMBEDDING
        )
        cold = self._open_cold(configuration, hot.known, budget_seconds) if embedding.cold else None
        source, close_source = _open_source(configuration, described, embedder)
        layer = EmbeddingLayer(
            ExactLayer(hot.store, hot.known, hot.breaker, settings, key, wall_clock=time.time),
            cold.tier if cold else None,
            key,
            cache_id,
        )
        probe = EmbeddingProbe(embedder, layer, key, self._mismatched)
        import numpy as np  # noqa: F401 - here, so that the first answer does not wait for it

        probe.start()
        self.cold = cold.store if cold else None
        serving = EmbeddingServing(
            layer=layer,
            source=source,
            model=described.identity.model,
            dimensions=described.identity.dimensions,
            shared=embedding.shared,
            is_trusted=lambda: probe.is_trusted,
        )
        closers = (probe.aclose, *close_source, *([cold.aclose] if cold else []))
        return _Built(purpose, serving, probe, closers)

    def _open_cold(self, configuration: Configuration, known: KnownRecord, budget_seconds: float) -> _Cold:
        vectors, cache_id = configuration.vectors, configuration.policy.cache_id
        ca_file = vectors.postgres_ca_file
        try:
            store = open_embedding_store(vectors.postgres_dsn or "", str(ca_file) if ca_file else None)
        except InvalidInput as e:
            raise InvalidDocument(f"postgres/dsn: {e}") from e

        async def ping() -> None:
            await store.list_spaces(cache_id)

        def is_in_use(keyspace: Keyspace) -> bool:
            layer = known.best.layers.get(EMBEDDING) if known.best else None
            return layer is not None and layer.keyspace == keyspace

        breaker = Breaker(ping, max(budget_seconds, LEAST_PROBE_SECONDS), self._breaker_changed)
        self._metrics.breaker_open.labels(COLD).set(0)
        return _Cold(store, breaker, ColdTier(store, breaker, budget_seconds, is_in_use))

    def _replace(self, built: _Built | None) -> None:
        if self._built is not None:
            self._built.probe.stop()
            self._metrics.embedder_mismatch.set(0)
            self._retire(*self._built.closers)
        if built is None:
            self.cold = None
        self._built = built

    def _breaker_changed(self, is_open: bool) -> None:
        self._metrics.breaker_open.labels(COLD).set(is_open)
        self._connections_changed()
        event = "store_left_alone" if is_open else "store_used_again"
        if (skipped := self._throttle.skipped(f"{event}_{COLD}")) is not None:
            _log.warning(event, store=COLD, skipped=skipped)

    def _mismatched(self, is_mismatched: bool) -> None:
        self._metrics.embedder_mismatch.set(is_mismatched)
        if is_mismatched:
            _log.error("embedder_mismatch", layer=EMBEDDING)
        else:
            _log.warning("embedder_matches_again", layer=EMBEDDING)


def _open_source(
    configuration: Configuration, described: EmbedderPolicy, embedder: Embedder
) -> tuple[EmbeddingSource, tuple[Callable[[], Awaitable[None]], ...]]:
    if isinstance(embedder, BuiltinEmbedder) or described.url is None:
        if not isinstance(embedder, BuiltinEmbedder):
            raise InvalidDocument("the built-in embedder was not opened")
        return InProcessSource(EmbeddingService(embedder)), ()
    vectors = configuration.vectors
    tls = tls_context(vectors.embedder_ca) if vectors.embedder_ca else None
    upstream = Upstream(described.timeout_seconds, tls)
    return ServerSource(upstream, described.url, vectors.embedder_key), (upstream.aclose,)
