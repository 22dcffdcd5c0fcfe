"""All metrics of the gateway process, declared here and nowhere else.

Labels are bounded: names of layers, routes of the object, outcomes and reasons; never a tenant, model or key.
"""

from __future__ import annotations

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from cachewright.layers.exact import Hit
from cachewright.policy.usage import tokens_of

Outcome = Literal["hit", "miss", "collapsed", "bypass", "refused", "upstream_error"]

_LOOKUP_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5)
_HIT_BUCKETS = (0.0003, 0.0005, 0.0007, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05)
_REQUEST_BUCKETS = (
    *_HIT_BUCKETS,
    0.1,
    0.15,
    0.2,
    0.3,
    0.5,
    0.7,
    1.0,
    1.5,
    2.0,
    3.0,
    5.0,
    10.0,
    20.0,
    30.0,
    60.0,
)
"""Fine enough to tell half of a time from its double."""
_UPSTREAM_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

_SIMILARITY_BUCKETS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98, 0.99, 1.0)

_AGE_BUCKETS = (1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 21600.0, 86400.0, 604800.0)


class GatewayMetrics:
    """The metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "cachewright_requests",
            "Requests by the layer looked into, what came of it, and the route.",
            ("layer", "outcome", "route"),
            registry=self.registry,
        )
        self.not_cached = Counter(
            "cachewright_not_cached",
            "Requests that were not looked up, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.not_stored = Counter(
            "cachewright_not_stored",
            "Answers to misses that were not stored, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.stored = Counter("cachewright_stored", "Answers stored.", registry=self.registry)
        self.semantic_misses = Counter(
            "cachewright_semantic_misses",
            "Requests on routes with the semantic layer that it did not answer, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.guard_refusals = Counter(
            "cachewright_guard_refusals",
            "Look-ups in which the guard refused a similar question, by what it found.",
            ("check",),
            registry=self.registry,
        )
        self.similarity = Histogram(
            "cachewright_similarity",
            "Similarity of the best question that a semantic look-up found.",
            ("outcome",),
            buckets=_SIMILARITY_BUCKETS,
            registry=self.registry,
        )
        self.semantic_stored = Counter(
            "cachewright_semantic_stored", "Answers kept in the semantic layer.", registry=self.registry
        )
        self.semantic_not_stored = Counter(
            "cachewright_semantic_not_stored",
            "Answers that were stored and not kept in the semantic layer, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.semantic_write_queue = Gauge(
            "cachewright_semantic_write_queue_depth",
            "Answers waiting to be kept in the semantic layer.",
            registry=self.registry,
        )
        self.embedder_mismatch = Gauge(
            "cachewright_embedder_mismatch",
            "1 while the embedder does not give the vectors that the keyspace was made with.",
            registry=self.registry,
        )
        self.lookup_seconds = Histogram(
            "cachewright_lookup_seconds",
            "Time a look-up kept a request waiting.",
            ("layer", "outcome"),
            buckets=_LOOKUP_BUCKETS,
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "cachewright_request_seconds",
            "Time from the head of a request to the head of its answer.",
            ("outcome",),
            buckets=_REQUEST_BUCKETS,
            registry=self.registry,
        )
        self.upstream_seconds = Histogram(
            "cachewright_upstream_seconds",
            "Time until the head of the upstream's answer.",
            ("outcome",),
            buckets=_UPSTREAM_BUCKETS,
            registry=self.registry,
        )
        self.hit_age_seconds = Histogram(
            "cachewright_hit_age_seconds",
            "Age of answers when they were served from the cache.",
            ("layer",),
            buckets=_AGE_BUCKETS,
            registry=self.registry,
        )
        self.saved_seconds = Counter(
            "cachewright_saved_seconds",
            "Time that the upstream took for answers that hits then gave without it.",
            ("layer",),
            registry=self.registry,
        )
        self.saved_tokens = Counter(
            "cachewright_saved_tokens",
            "Tokens that the upstream counted for answers that hits then gave without it.",
            ("layer", "kind"),
            registry=self.registry,
        )
        self.breaker_open = Gauge(
            "cachewright_breaker_open", "1 while a store is left alone.", ("store",), registry=self.registry
        )
        self.embedding_inputs = Counter(
            "cachewright_embedding_inputs",
            "Distinct inputs of requests for embeddings, by where their vectors came from.",
            ("tier",),
            registry=self.registry,
        )
        self.write_queue = Gauge("cachewright_write_queue_depth", "Writes waiting.", registry=self.registry)
        self.writes_dropped = Counter(
            "cachewright_writes_dropped",
            "Writes dropped because too many were waiting.",
            registry=self.registry,
        )
        self.entries = Gauge(
            "cachewright_entries",
            "Entries in the store when it was last swept; the same on every pod.",
            ("layer", "state"),
            registry=self.registry,
        )
        self.removed = Counter(
            "cachewright_removed",
            "Keys that this pod removed because nobody could reach them any more, by what found them.",
            ("by",),
            registry=self.registry,
        )
        self.reclaimed = Counter(
            "cachewright_reclaimed_keyspaces",
            "Keyspaces that this pod emptied, or tried to.",
            ("outcome",),
            registry=self.registry,
        )
        self.salts = Counter(
            "cachewright_prefix_salts",
            "Requests sent on with a salt for the engine's prefix cache, by who shares it.",
            ("scope",),
            registry=self.registry,
        )
        self.record_revision = Gauge(
            "cachewright_record_revision", "Highest revision of the record seen.", registry=self.registry
        )
        self.configuration_errors = Counter(
            "cachewright_configuration_errors",
            "Mounted documents that could not be read and left the last good ones in use.",
            registry=self.registry,
        )

    def count_saved(self, layer: str, hit: Hit) -> None:
        """Count what one hit saved, and how old it was."""
        self.hit_age_seconds.labels(layer).observe(hit.age_seconds)
        self.saved_seconds.labels(layer).inc(hit.entry.upstream_seconds)
        tokens = tokens_of(hit.entry.answer)
        self.saved_tokens.labels(layer, "prompt").inc(tokens.prompt)
        self.saved_tokens.labels(layer, "completion").inc(tokens.completion)

    def count_salt(self, scope: str) -> None:
        """Count a request that carries a salt."""
        self.salts.labels(scope).inc()

    def observe_upstream(self, status: int, seconds: float) -> None:
        """Count an answer of the upstream's, by class of status."""
        self.upstream_seconds.labels(f"{status // 100}xx").observe(seconds)
