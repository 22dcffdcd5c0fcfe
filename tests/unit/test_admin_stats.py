"""Quantiles of the admin port's stats."""

from __future__ import annotations

import pytest

from cachewright.gateway.admin_stats import quantile

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
