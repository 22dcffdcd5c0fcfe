"""The admin port's stats: quantiles, and the rows of layers."""

from __future__ import annotations

from typing import Any

import pytest

from cachewright.gateway.admin_stats import layer_stats, quantile
from cachewright.gateway.metrics import GatewayMetrics

INF = float("inf")


@pytest.mark.parametrize(
    ("buckets", "part", "expected"),
    [
        ([], 0.5, None),
        ([(1.0, 0), (INF, 0)], 0.5, None),
        ([(1.0, 10), (INF, 10)], 0.5, 0.5),
        ([(1.0, 5), (2.0, 10), (INF, 10)], 0.5, 1.0),
        ([(1.0, 0), (2.0, 10), (INF, 10)], 0.5, 1.5),
        ([(1.0, 5), (2.0, 10), (INF, 10)], 0.99, 1.98),
        ([(1.0, 1), (INF, 10)], 0.99, 1.0),
        ([(INF, 10)], 0.5, 0.0),
    ],
)
def test_quantiles_lie_within_their_bucket(
    buckets: list[tuple[float, float]], part: float, expected: float | None
) -> None:
    """Linearly between its bounds; what lies beyond all finite bounds is told as the last of them."""
    assert quantile(buckets, part) == expected


def rows(metrics: GatewayMetrics) -> dict[str, dict[str, Any]]:
    """Return the row of each layer."""
    samples = [sample for metric in metrics.registry.collect() for sample in metric.samples]
    return {row["name"]: row for row in layer_stats(samples)}


def test_each_layer_has_a_row_of_its_own() -> None:
    """What similar questions answered, the exact layer had not; vectors count by text."""
    metrics = GatewayMetrics()
    assert list(rows(metrics)) == ["local", "exact"]
    for layer, outcome, times in (("local", "hit", 5), ("exact", "hit", 3), ("semantic", "hit", 2)):
        metrics.requests.labels(layer, outcome, "r").inc(times)
    metrics.requests.labels("exact", "miss", "r").inc(4)
    metrics.requests.labels("embedding", "hit", "r").inc()
    for outcome, times in (("hit", 2), ("miss", 3)):
        for _ in range(times):
            metrics.lookup_seconds.labels("semantic", outcome).observe(0.01)
    metrics.semantic_misses.labels("guard").inc()
    metrics.guard_refusals.labels("numbers").inc()
    for tier, times in (("hot", 4), ("cold", 2), ("computed", 2)):
        metrics.embedding_inputs.labels(tier).inc(times)
    told = rows(metrics)
    assert {name: (row["hits"], row["misses"], row["hitRate"]) for name, row in told.items()} == {
        "local": (5, 9, 0.3571),
        "exact": (3, 6, 0.3333),
        "semantic": (2, 3, 0.4),
        "embedding": (6, 2, 0.75),
    }
    assert (told["semantic"]["missed"], told["semantic"]["guard"]) == ({"guard": 1}, {"numbers": 1})
    assert told["semantic"]["lookup"]["count"] == 5
    assert told["embedding"]["inputs"] == {"hot": 4, "cold": 2, "computed": 2}
