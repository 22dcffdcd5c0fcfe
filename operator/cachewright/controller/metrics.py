"""Every metric of the operator's process; `process` builds it, `health` serves it."""

from __future__ import annotations

from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from cachewright.controller.queue import CacheKey, WorkQueue
from cachewright.controller.roster import Roster
from cachewright.reconcile.prefix.hits import EngineHits

PASS_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
"""From a pass that only reads to one that runs into its time limit."""
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class OperatorMetrics:
    """Counters that the process raises, and gauges that ask when they are read."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._engines: set[CacheKey] = set()
        """Objects that series stand for."""
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.reconciles = Counter(
            "cachewright_reconciles",
            "Passes by result: ok, retry (to be tried again), error (unforeseen), timeout.",
            ["result"],
            registry=self.registry,
        )
        self.reconcile_duration = Histogram(
            "cachewright_reconcile_duration_seconds",
            "How long passes took.",
            buckets=PASS_BUCKETS,
            registry=self.registry,
        )
        self.kube_requests = Counter(
            "cachewright_kube_requests",
            "Requests of passes, resync and election to the Kubernetes API, by verb, kind and status.",
            ["verb", "kind", "code"],
            registry=self.registry,
        )
        self.leader = Gauge(
            "cachewright_leader", "1 while this replica is the active one.", registry=self.registry
        )

        self.engine_lookups = Counter(
            "cachewright_engine_prefix_lookups",
            "What engines looked up in their prefix caches: tokens, or requests for Triton.",
            ["cache_namespace", "cache", "outcome"],
            registry=self.registry,
        )
        self.engine_hit_ratio = Gauge(
            "cachewright_engine_prefix_hit_ratio",
            "Share of it that was found within the last 15 minutes.",
            ["cache_namespace", "cache"],
            registry=self.registry,
        )
        self.engine_pods = Gauge(
            "cachewright_engine_pods_read",
            "Pods of the engine whose metrics tell of a prefix cache.",
            ["cache_namespace", "cache"],
            registry=self.registry,
        )

    def saw_engine(self, key: CacheKey, hits: EngineHits | None) -> None:
        """Note what an engine's pods told; None where there is nothing to tell any more."""
        if hits is None:
            self._forget_engine(key)
            return
        self._engines.add(key)
        self.engine_pods.labels(*key).set(hits.pods)
        if hits.rate is None:
            self.engine_hit_ratio.remove(*key)
        else:
            self.engine_hit_ratio.labels(*key).set(hits.rate)
        if hits.news is not None:
            self.engine_lookups.labels(*key, "hit").inc(hits.news.known)
            # Engines count the two apart, so that one may be ahead of the other when they are read.
            self.engine_lookups.labels(*key, "miss").inc(max(0.0, hits.news.asked - hits.news.known))

    def _forget_engine(self, key: CacheKey) -> None:
        if key not in self._engines:
            return
        self._engines.remove(key)
        self.engine_hit_ratio.remove(*key)
        self.engine_pods.remove(*key)
        for outcome in ("hit", "miss"):
            self.engine_lookups.remove(*key, outcome)

    def count_request(self, verb: str, kind: str, code: str) -> None:
        """Count one request to the Kubernetes API."""
        self.kube_requests.labels(verb, kind, code).inc()

    def follow(self, queue: WorkQueue, roster: Roster) -> None:
        """Add the gauges that show the queue and the objects."""
        depth = Gauge("cachewright_queue_depth", "Objects that wait for a worker.", registry=self.registry)
        depth.set_function(lambda: queue.depth)
        oldest = Gauge(
            "cachewright_queue_oldest_seconds",
            "How long the first object in line has waited.",
            registry=self.registry,
        )
        oldest.set_function(lambda: queue.oldest_age_seconds)
        caches = Gauge(
            "cachewright_caches",
            "InferenceCaches by whether they were ready when last seen.",
            ["ready"],
            registry=self.registry,
        )
        for label, ready in (("true", True), ("false", False), ("unknown", None)):
            caches.labels(label).set_function(lambda ready=ready: roster.count(ready))  # type: ignore[misc]

    def text(self) -> bytes:
        """Return all of them in Prometheus' text format."""
        return generate_latest(self.registry)
