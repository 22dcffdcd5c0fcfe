"""`spec.limits`: what the cache may cost a request, in time and memory."""

from __future__ import annotations

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.durations import Duration
from cachewright.api.quantities import Quantity


class Budget(ApiModel):
    """Time that looking into the cache may add to a request; past it the upstream answers."""

    rules = (
        Rule(
            cel="duration(self.exact) <= duration(self.total)",
            message="limits.budget.exact must not be longer than limits.budget.total",
            field=".exact",
        ),
    )

    exact: Duration = "5ms"
    """For the exact look-up."""
    total: Duration = "50ms"
    """For all look-ups of one request together."""


class Limits(ApiModel):
    """Bounds on what the cache may cost a request."""

    rules = (
        Rule(
            cel="quantity(self.maxCacheableBody).compareTo(quantity(self.maxBody)) <= 0",
            message="limits.maxCacheableBody must not be larger than limits.maxBody",
            field=".maxCacheableBody",
        ),
        Rule(
            cel="duration(self.coalesceTimeout) <= duration('1m')",
            message="limits.coalesceTimeout must not be longer than 1m",
            field=".coalesceTimeout",
        ),
    )

    budget: Budget = Field(default_factory=Budget)
    """Time that the cache may add."""
    coalesce_timeout: Duration = "2s"
    """How long a miss waits at most for another replica that asks the upstream the same, before it asks too.

    A request for a stream waits for the exact look-up's budget only."""
    max_cacheable_body: Quantity = "1Mi"
    """Larger requests and answers are passed through uncached."""
    max_body: Quantity = "64Mi"
    """Larger requests are refused with 413."""
