"""Stats: from the metrics of this process to one document for people. Pure but for reading the registry.

Everything counts from the start of the process; a cache's pods add up. Called by the admin port.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from cachewright.keys.record import Record
from cachewright.policy.document import GatewayPolicy

_LAYERS: Final = ("local", "exact")
"""As metrics name them: copies in the gateway's own memory, and the store."""

_SEMANTIC: Final = "semantic"
_EMBEDDING: Final = "embedding"


def collect_stats(
    registry: CollectorRegistry, policy: GatewayPolicy, record: Record | None, ready: bool
) -> dict[str, Any]:
    """Return what the gateway did so far, and which keyspaces it uses."""
    counts = _Counts.of(sample for metric in registry.collect() for sample in metric.samples)
    return {
        "cache": policy.cache,
        "cacheID": policy.cache_id,
        "ready": ready,
        "requests": counts.by("cachewright_requests_total", "outcome"),
        "layers": [
            *(_layers(counts) if policy.exact else []),
            *([_semantic(counts)] if policy.semantic else []),
            *([_embedding(counts)] if policy.embedding else []),
        ],
        "lookup": counts.timing("cachewright_lookup_seconds"),
        "notCached": counts.by("cachewright_not_cached_total", "reason"),
        "notStored": counts.by("cachewright_not_stored_total", "reason"),
        "stored": int(counts.total("cachewright_stored_total")),
        "upstream": counts.timing("cachewright_upstream_seconds"),
        "saved": {
            "seconds": round(counts.total("cachewright_saved_seconds_total"), 3),
            "tokens": counts.by("cachewright_saved_tokens_total", "kind"),
        },
        "stores": [
            {"name": name, "breakerOpen": bool(is_open)}
            for name, is_open in counts.by("cachewright_breaker_open", "store").items()
        ],
        "writes": {
            "waiting": int(counts.total("cachewright_write_queue_depth")),
            "dropped": int(counts.total("cachewright_writes_dropped_total")),
        },
        "record": _record(record, policy),
    }


def layer_stats(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    """Tell of each layer by samples of any number of gateways; `cachewright explain` adds them up so."""
    counts = _Counts.of(samples)
    rows = [*_layers(counts), _semantic(counts), _embedding(counts)]
    return [row for row in rows if row["name"] in _LAYERS or row["hits"] + row["misses"]]


def _layers(counts: _Counts) -> list[dict[str, Any]]:
    """Tell of each layer in the order of asking; what one has not, the next is asked for."""
    asked = sum(
        sum(counts.by("cachewright_requests_total", "outcome", layer=layer).values())
        for layer in (*_LAYERS, _SEMANTIC)  # what similar questions answered, these had not
    )
    layers = []
    for layer in _LAYERS:
        hits = int(counts.total("cachewright_requests_total", layer=layer, outcome="hit"))
        layers.append(
            {
                "name": layer,
                "hits": hits,
                "misses": asked - hits,
                "hitRate": round(hits / asked, 4) if asked else None,
                "ageAtHit": counts.timing("cachewright_hit_age_seconds", layer=layer),
                "savedSeconds": round(counts.total("cachewright_saved_seconds_total", layer=layer), 3),
            }
        )
        asked -= hits
    return layers


def _semantic(counts: _Counts) -> dict[str, Any]:
    """Tell of the similar questions that were looked for, and why there was none."""
    looked = counts.timing("cachewright_lookup_seconds", layer=_SEMANTIC)
    hits = int(counts.total("cachewright_requests_total", layer=_SEMANTIC, outcome="hit"))
    asked = max(looked["count"], hits)
    return {
        "name": _SEMANTIC,
        "hits": hits,
        "misses": asked - hits,
        "hitRate": round(hits / asked, 4) if asked else None,
        "ageAtHit": counts.timing("cachewright_hit_age_seconds", layer=_SEMANTIC),
        "savedSeconds": round(counts.total("cachewright_saved_seconds_total", layer=_SEMANTIC), 3),
        "lookup": looked,
        "missed": counts.by("cachewright_semantic_misses_total", "reason"),
        "guard": counts.by("cachewright_guard_refusals_total", "check"),
        "stored": int(counts.total("cachewright_semantic_stored_total")),
        "notStored": counts.by("cachewright_semantic_not_stored_total", "reason"),
    }


def _embedding(counts: _Counts) -> dict[str, Any]:
    """Tell of the texts that were to be embedded, and where their vectors came from."""
    tiers = counts.by("cachewright_embedding_inputs_total", "tier")
    asked = sum(tiers.values())
    hits = asked - tiers.get("computed", 0)
    return {
        "name": _EMBEDDING,
        "hits": hits,
        "misses": asked - hits,
        "hitRate": round(hits / asked, 4) if asked else None,
        "inputs": tiers,
        "requests": counts.by("cachewright_requests_total", "outcome", layer=_EMBEDDING),
    }


def _bindings(policy: GatewayPolicy) -> set[str]:
    layers = (policy.semantic, policy.embedding, policy.prefix)
    return {policy.binding, *(layer.binding for layer in layers if layer is not None)}


def _record(record: Record | None, policy: GatewayPolicy) -> dict[str, Any] | None:
    if record is None:
        return None
    return {
        "revision": record.revision,
        "keyspaces": [
            {
                "layer": name,
                "keyspace": str(layer.keyspace),
                "since": layer.since,
                "inUse": layer.binding in _bindings(policy),
            }
            for name, layer in sorted(record.layers.items())
        ],
    }


@dataclass(frozen=True, slots=True)
class _Counts:
    """All samples of a registry, by name."""

    samples: Mapping[str, list[Sample]]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> _Counts:
        named: dict[str, list[Sample]] = {}
        for sample in samples:
            named.setdefault(sample.name, []).append(sample)
        return cls(named)

    def matching(self, name: str, labels: Mapping[str, str]) -> list[Sample]:
        return [sample for sample in self.samples.get(name, []) if labels.items() <= sample.labels.items()]

    def total(self, name: str, **labels: str) -> float:
        return sum(sample.value for sample in self.matching(name, labels))

    def by(self, name: str, label: str, **labels: str) -> dict[str, int]:
        totals: dict[str, int] = {}
        for sample in self.matching(name, labels):
            key = sample.labels[label]
            totals[key] = totals.get(key, 0) + int(sample.value)
        return totals

    def timing(self, name: str, **labels: str) -> dict[str, Any]:
        """Number, mean and quantiles of a histogram, in seconds; quantiles as fine as its buckets."""
        count = self.total(f"{name}_count", **labels)
        bounds: dict[float, float] = {}
        for sample in self.matching(f"{name}_bucket", labels):
            bound = float(sample.labels["le"])
            bounds[bound] = bounds.get(bound, 0) + sample.value
        return {
            "count": int(count),
            "meanSeconds": round(self.total(f"{name}_sum", **labels) / count, 6) if count else None,
            "p50Seconds": quantile(sorted(bounds.items()), 0.5),
            "p99Seconds": quantile(sorted(bounds.items()), 0.99),
        }


def quantile(buckets: list[tuple[float, float]], part: float) -> float | None:
    """Estimate a quantile from cumulative buckets (upper bound, count), linearly within one.

    None without samples; the last finite bound where it lies beyond.
    """
    if not buckets or not buckets[-1][1]:
        return None
    wanted = part * buckets[-1][1]
    below_bound, below_count = 0.0, 0.0
    for bound, count in buckets:
        if count >= wanted and bound != float("inf"):
            share = (wanted - below_count) / (count - below_count) if count > below_count else 1.0
            return round(below_bound + share * (bound - below_bound), 6)
        if bound != float("inf"):
            below_bound, below_count = bound, count
    return below_bound
