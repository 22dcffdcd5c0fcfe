"""Assembly of the semantic layer: vector store, embedder, space and bounds, reusing what has not changed.

Called by the assembly for each configuration that has the layer; owns what it has to close.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from cachewright.embedders.protocol import Embedder
from cachewright.errors import InvalidDocument
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.gateway.mounts import Configuration
from cachewright.gateway.samples import Samples
from cachewright.gateway.semantics import Semantics
from cachewright.gateway.throttle import Throttle
from cachewright.keys.embedding_identity import PROBE_TEXT
from cachewright.layers.admission import Admission, AdmissionSettings
from cachewright.layers.breaker import Breaker
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.semantic import SemanticLayer
from cachewright.layers.semantic_keeping import Keeping
from cachewright.layers.similar import SemanticSettings
from cachewright.layers.vector_space import OpenSpace, SpaceSettings
from cachewright.policy.document import GatewayPolicy, SemanticPolicy
from cachewright.stores.protocols import CacheStore
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import Hnsw, Quantization, VectorStore

MEMORY_URL: Final = "memory://"

Retire = Callable[[Callable[[], Awaitable[None]]], None]
"""Closes something once no request can use it any more."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Vectors:
    purpose: tuple[object, ...]
    """What it was opened for; anything else needs another one."""
    store: VectorStore
    breakers: tuple[Breaker, Breaker]
    """The store's and the embedder's."""
    space: OpenSpace


class SemanticAssembly:
    """Builds the semantic layer of each configuration."""

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
        self._vectors: _Vectors | None = None
        self._samples = Samples()

    def build(
        self,
        configuration: Configuration,
        store: CacheStore,
        embedder: Embedder,
        known: KnownRecord,
    ) -> Semantics | None:
        """Return the layer; None where the policy has none; raises InvalidDocument."""
        policy = configuration.policy
        semantic = policy.semantic
        if semantic is None:
            self._drop()
            return None
        vectors = self._open(configuration, policy, semantic, embedder)
        settings = SemanticSettings(
            cache_id=policy.cache_id,
            binding=semantic.binding,
            ttl_seconds=semantic.ttl_seconds,
            serves=semantic.mode == "Serve",
            guard=semantic.guard,
            other_languages=semantic.other_languages,
        )
        key = configuration.digest_key
        layer = SemanticLayer(
            store,
            vectors.store,
            embedder,
            vectors.space,
            known,
            vectors.breakers,
            settings,
            key,
            wall_clock=time.time,
        )
        bounds = AdmissionSettings(
            semantic.max_entries, semantic.max_entries_per_tenant, semantic.min_seen, semantic.ttl_seconds
        )
        admission = Admission(store, vectors.store, bounds, key, time.monotonic)
        keeping = Keeping(layer, known, store, vectors.store, admission, settings, key, time.time)
        return Semantics(semantic, layer, keeping, self._samples)

    @property
    def vectors(self) -> VectorStore | None:
        """The vector store in use; None where the layer is off."""
        return self._vectors.store if self._vectors else None

    @property
    def space(self) -> OpenSpace | None:
        """The space in use; None where the layer is off."""
        return self._vectors.space if self._vectors else None

    async def aclose(self) -> None:
        """Close all connections."""
        if self._vectors is not None:
            await _close(self._vectors)

    def _open(
        self,
        configuration: Configuration,
        policy: GatewayPolicy,
        semantic: SemanticPolicy,
        embedder: Embedder,
    ) -> _Vectors:
        space = SpaceSettings(
            policy.cache_id,
            Hnsw(semantic.hnsw_m, semantic.hnsw_ef_construct, semantic.hnsw_payload_m),
            Quantization(semantic.quantization),
        )
        target = _target(configuration, semantic)
        purpose = (*target, embedder, space, policy.total_budget_seconds)
        current = self._vectors
        if current is not None and current.purpose == purpose:
            return current
        url, api_key, ca_file = target
        store = open_vector_store(url, api_key=api_key, ca_file=ca_file)

        async def probe_store() -> None:
            await store.check()

        async def probe_embedder() -> None:
            await embedder.embed([PROBE_TEXT])

        seconds = policy.total_budget_seconds
        self._drop()
        self._vectors = _Vectors(
            purpose,
            store,
            (
                self._breaker("vectors", probe_store, seconds),
                self._breaker("embedder", probe_embedder, seconds),
            ),
            OpenSpace(store, embedder, space, self._mismatch_changed),
        )
        self._metrics.embedder_mismatch.set(0)
        self._vectors.space.start()
        return self._vectors

    def _drop(self) -> None:
        current, self._vectors = self._vectors, None
        if current is not None:
            self._retire(lambda: _close(current))

    def _breaker(self, name: str, probe: Callable[[], Awaitable[None]], seconds: float) -> Breaker:
        def changed(is_open: bool) -> None:
            self._metrics.breaker_open.labels(name).set(is_open)
            self._connections_changed()
            event = "store_left_alone" if is_open else "store_used_again"
            if (skipped := self._throttle.skipped(f"{event} {name}")) is not None:
                _log.warning(event, store=name, skipped=skipped)

        async def probed() -> None:
            await probe()

        self._metrics.breaker_open.labels(name).set(0)
        return Breaker(probed, seconds, changed)

    def _mismatch_changed(self, is_mismatched: bool) -> None:
        self._metrics.embedder_mismatch.set(is_mismatched)
        if is_mismatched:
            _log.error("embedder_mismatch")
        else:
            _log.info("embedder_agrees_again")


def _target(configuration: Configuration, semantic: SemanticPolicy) -> tuple[str, str | None, str | None]:
    """Return the store's URL, API key and file of certificate authorities."""
    vectors, qdrant = configuration.vectors, configuration.policy.qdrant
    match semantic.store:
        case "Memory":
            return MEMORY_URL, None, None
        case "Qdrant" if qdrant is not None:
            ca_file = vectors.qdrant_ca_file
            return qdrant.url, vectors.qdrant_key, str(ca_file) if ca_file else None
        case "Postgres" if vectors.postgres_dsn is not None:
            ca_file = vectors.postgres_ca_file
            return vectors.postgres_dsn, None, str(ca_file) if ca_file else None
    raise InvalidDocument(f"the policy's semantic layer needs the store {semantic.store}, and names none")


async def _close(vectors: _Vectors) -> None:
    for breaker in vectors.breakers:
        await breaker.aclose()
    await vectors.space.aclose()
    await vectors.store.aclose()
