"""Assembly: from mounted documents to everything a request is served with, reusing what has not changed.

Connections to a store or an upstream that is no longer named stay open a while for the requests that began
with them. Called by the process at start and when a mounted file has changed.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import structlog

from cachewright.embedders.opening import open_embedder
from cachewright.embedders.protocol import Embedder
from cachewright.errors import InvalidDocument, StoreError
from cachewright.gateway.credentials import Credentials, CredentialSettings
from cachewright.gateway.embedding_assembly import EmbeddingAssembly, Hot
from cachewright.gateway.embedding_serving import EmbeddingServing
from cachewright.gateway.janitor import JanitorLog
from cachewright.gateway.janitor_embeddings import JanitorEmbeddings
from cachewright.gateway.janitor_vectors import JanitorVectors
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.gateway.mounts import Configuration
from cachewright.gateway.probing import Parts
from cachewright.gateway.salting import Salting
from cachewright.gateway.semantic_assembly import SemanticAssembly
from cachewright.gateway.semantics import Semantics
from cachewright.gateway.serving import Serving
from cachewright.gateway.throttle import Throttle
from cachewright.gateway.upstream import Upstream
from cachewright.keys.generations import template_mark
from cachewright.layers.breaker import Breaker
from cachewright.layers.exact import ExactLayer, ExactSettings
from cachewright.layers.janitor import Janitor, JanitorSettings
from cachewright.layers.known_marks import KnownMarks
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.local import LocalCache, LocalSettings
from cachewright.layers.local_upkeep import LocalUpkeep
from cachewright.policy.document import ExactPolicy, GatewayPolicy, SweepPolicy
from cachewright.stores.opening import open_store
from cachewright.stores.protocols import CacheStore

RETIRE_SECONDS: Final = 600.0
"""How long the connections of a configuration that was replaced stay open; longer answers are cut off."""

WARM_CONNECTIONS: Final = 16
"""Opened before requests need them: a handshake may well take longer than a look-up's budget."""

LEAST_WARM_SECONDS: Final = 2.0
"""How long a process that starts waits for them at least; longer where the budget is."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Store:
    url: str
    budget_seconds: float
    store: CacheStore
    breaker: Breaker


@dataclass(frozen=True, slots=True)
class _Target:
    timeout_seconds: float
    ca: str | None
    upstream: Upstream


@dataclass(frozen=True, slots=True)
class _Local:
    purpose: tuple[object, ...]
    """What it was made for; anything else needs another one."""
    cache: LocalCache
    upkeep: LocalUpkeep


class Assembly:
    """Builds a Serving from each Configuration, and owns what has to be closed."""

    def __init__(
        self, metrics: GatewayMetrics, throttle: Throttle, connections_changed: Callable[[], None]
    ) -> None:
        """`connections_changed` is called when a store or an embedder is left alone, or used again."""
        self._metrics = metrics
        self._throttle = throttle
        self._connections_changed = connections_changed
        self._store: _Store | None = None
        self._local: _Local | None = None
        self._target: _Target | None = None
        self._embedder: tuple[object, Embedder] | None = None
        """What it was made of, and the embedder itself."""
        self._credentials: tuple[object, Credentials] | None = None
        """What they are for, and the credentials themselves, so that a reload forgets none."""
        self._embedding = EmbeddingAssembly(metrics, throttle, self._retire, connections_changed)
        self._semantic = SemanticAssembly(metrics, throttle, self._retire, connections_changed)
        self._known: dict[str, KnownRecord] = {}
        self._stand_in = secrets.token_hex(16)
        """Takes a keyspace's place in salts while none is known."""
        self._background: set[asyncio.Task[None]] = set()

    def known_record(self, cache_id: str) -> KnownRecord:
        """Return the best record of a cache; the same object whenever asked, so that nothing is unlearned."""
        return self._known.setdefault(cache_id, KnownRecord(cache_id))

    def build(self, configuration: Configuration) -> Serving:
        """Return what requests are served with from now on; raises InvalidDocument and changes nothing."""
        target = self._make_target(configuration)
        policy = configuration.policy
        exact = self._make_exact(configuration, policy) if policy.exact else None
        embedder = self._make_embedder(configuration)
        embeddings = self._make_embeddings(configuration, embedder)
        semantics = self._make_semantics(configuration, embedder)
        if self._target is not None and self._target is not target:
            self._retire(self._target.upstream.aclose)
        self._target = target
        return Serving(
            policy=policy,
            digest_key=configuration.digest_key,
            api_keys=configuration.api_keys,
            upstream_key=configuration.upstream_key,
            upstream=target.upstream,
            exact=exact,
            store=self._store.store if self._store is not None else None,
            credentials=self._make_credentials(configuration) if exact else None,
            embedder=self._embedder[1] if self._embedder else None,
            janitor=self._make_janitor(configuration) if exact or embeddings else None,
            embeddings=embeddings,
            semantics=semantics,
            salting=self._make_salting(configuration),
        )

    def parts(self, serving: Serving) -> Parts:
        """Return what the layers of the configuration in use consist of, for whoever tries them."""
        return Parts(serving, self._semantic.vectors, self._semantic.space, self._embedding.cold)

    async def warm(self) -> None:
        """Open connections and bring the record before requests need them.

        A store that is away is no obstacle; one that came back empty is whole again before it is asked.
        """
        if self._store is None:
            return
        store = self._store.store
        try:
            async with asyncio.timeout(max(LEAST_WARM_SECONDS, self._store.budget_seconds)):
                await asyncio.gather(*(store.ping() for _ in range(WARM_CONNECTIONS)))
                for known in self._known.values():
                    if known.best is not None:
                        await store.publish_record(known.best)
        except (TimeoutError, StoreError):
            self._store.breaker.trip()

    async def store_answers(self) -> None:
        """Return once the store may be asked."""
        if self._store is not None:
            await self._store.breaker.closed()

    async def aclose(self) -> None:
        """Close all connections."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._target is not None:
            await self._target.upstream.aclose()
        if self._local is not None:
            await self._local.upkeep.aclose()
        if self._credentials is not None:
            await self._credentials[1].aclose()
        await self._embedding.aclose()
        await self._semantic.aclose()
        if self._embedder is not None:
            await self._embedder[1].aclose()
        if self._store is not None:
            await self._store.breaker.aclose()
            await self._store.store.aclose()

    def _make_target(self, configuration: Configuration) -> _Target:
        timeout_seconds, ca = configuration.policy.upstream.timeout_seconds, configuration.upstream_ca
        current = self._target
        if current is not None and (current.timeout_seconds, current.ca) == (timeout_seconds, ca):
            return current
        return _Target(timeout_seconds, ca, Upstream(timeout_seconds, _tls_context(ca) if ca else None))

    def _make_embedder(self, configuration: Configuration) -> Embedder | None:
        policy, vectors = configuration.policy.embedder, configuration.vectors
        purpose = (policy, vectors.embedder_key, vectors.embedder_ca)
        current = self._embedder
        if current is not None and current[0] == purpose:
            return current[1]
        made = open_embedder(policy, vectors.embedder_key, vectors.embedder_ca) if policy else None
        self._embedder = (purpose, made) if made else None
        if current is not None:
            self._retire(current[1].aclose)
        return made

    def _make_embeddings(
        self, configuration: Configuration, embedder: Embedder | None
    ) -> EmbeddingServing | None:
        policy = configuration.policy
        if embedder is None or policy.embedding is None:
            self._embedding.close_former()
            return None
        store = self._store
        if store is None or policy.exact is None:
            store = self._make_store(configuration.store_url, policy.total_budget_seconds)
        hot = Hot(store.store, store.breaker, self.known_record(policy.cache_id))
        return self._embedding.build(configuration, hot, embedder)

    def _make_semantics(self, configuration: Configuration, embedder: Embedder | None) -> Semantics | None:
        if self._store is None or embedder is None:
            return None
        known = self.known_record(configuration.policy.cache_id)
        return self._semantic.build(configuration, self._store.store, embedder, known)

    def _make_exact(self, configuration: Configuration, policy: GatewayPolicy) -> ExactLayer | None:
        if policy.exact is None:
            return None
        budget_seconds = min(policy.exact.budget_seconds, policy.total_budget_seconds)
        settings = ExactSettings(policy.cache_id, policy.binding, policy.exact.ttl_seconds, budget_seconds)
        store = self._make_store(configuration.store_url, budget_seconds)
        local = self._make_local(store.store, configuration.digest_key, policy.cache_id, policy.exact)
        return ExactLayer(
            store.store,
            self.known_record(policy.cache_id),
            store.breaker,
            settings,
            configuration.digest_key,
            wall_clock=time.time,
            local=local,
            clock=time.monotonic,
        )

    def _make_local(
        self, store: CacheStore, digest_key: bytes, cache_id: str, exact: ExactPolicy
    ) -> LocalCache | None:
        purpose = (store, digest_key, cache_id, exact.local_max_entries, exact.local_ttl_seconds)
        current = self._local
        if current is not None and current.purpose == purpose:
            return current.cache
        if current is not None:
            self._in_background(current.upkeep.aclose())
            self._local = None
        if exact.local_max_entries == 0:
            return None
        settings = LocalSettings(exact.local_max_entries, exact.local_ttl_seconds)
        cache = LocalCache(settings, KnownMarks(time.monotonic), time.monotonic)
        upkeep = LocalUpkeep(store, cache_id, cache, time.monotonic)
        self._local = _Local(purpose, cache, upkeep)
        upkeep.start()
        return cache

    def _make_salting(self, configuration: Configuration) -> Salting | None:
        policy = configuration.policy
        if policy.prefix is None:
            return None
        known = self.known_record(policy.cache_id)
        count = self._metrics.count_salt
        return Salting(policy.prefix, configuration.digest_key, known, self._stand_in, count)

    def _make_janitor(self, configuration: Configuration) -> Janitor | None:
        if self._store is None:
            return None
        policy = configuration.policy
        sweep = policy.sweep or SweepPolicy()
        vectors = JanitorVectors(configuration, self._semantic.vectors, time.time)
        cold = JanitorEmbeddings(configuration, self._embedding.cold)
        settings = JanitorSettings(
            policy.cache_id,
            sweep.keys_per_second,
            sweep.interval_seconds,
            drops={**vectors.drops(), **cold.drops()},
            sweeps=(*vectors.sweeps(), *cold.sweeps()),
            templates=frozenset(
                template_mark(configuration.digest_key, route.prompt_template)
                for route in policy.routes
                if route.prompt_template
            ),
        )
        log = JanitorLog(self._metrics)
        return Janitor(self._store.store, settings, log, time.monotonic, time.time)

    def _make_credentials(self, configuration: Configuration) -> Credentials | None:
        policy, store = configuration.policy, self._store
        ttl_seconds = policy.tenancy.client_credential_ttl_seconds
        if ttl_seconds is None or store is None:
            return None
        settings = CredentialSettings(policy.cache_id, policy.binding, ttl_seconds, store.budget_seconds)
        purpose = (settings, store, configuration.digest_key)
        current = self._credentials
        if current is not None and current[0] == purpose:
            return current[1]
        made = Credentials(store.store, store.breaker, settings, configuration.digest_key, time.monotonic)
        self._credentials = (purpose, made)
        if current is not None:
            self._retire(current[1].aclose)
        return made

    def _make_store(self, url: str, budget_seconds: float) -> _Store:
        current = self._store
        if current is not None and (current.url, current.budget_seconds) == (url, budget_seconds):
            return current
        store = open_store(url, budget_seconds)  # else a longer budget would count for nothing
        breaker = Breaker(store.ping, budget_seconds, self._breaker_changed)
        self._store = _Store(url, budget_seconds, store, breaker)
        self._metrics.breaker_open.labels("redis").set(0)
        if current is not None:
            self._retire(current.breaker.aclose, current.store.aclose)
        return self._store

    def _breaker_changed(self, is_open: bool) -> None:
        self._metrics.breaker_open.labels("redis").set(is_open)
        self._connections_changed()
        event = "store_left_alone" if is_open else "store_used_again"
        if (skipped := self._throttle.skipped(event)) is not None:
            _log.warning(event, store="redis", skipped=skipped)
        if not is_open:
            self._in_background(self.warm())  # all but the probe's connection may have died

    def _retire(self, *closers: Callable[[], Awaitable[None]]) -> None:
        async def close_later() -> None:
            try:
                await asyncio.sleep(RETIRE_SECONDS)
            finally:
                for close in closers:
                    await close()

        self._in_background(close_later())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _tls_context(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, ValueError) as e:
        raise InvalidDocument(f"the upstream's certificate authorities are not PEM: {e}") from e
