"""`spec.layers`: what is cached, and for how long."""

from __future__ import annotations

from cachewright.api.base import ApiModel, Rule
from cachewright.api.durations import Duration


class ExactLayer(ApiModel):
    """Answers to requests that are the same in everything that matters."""

    ttl: Duration = "30m"
    """How long an answer is served; it never slides."""


class LayersSpec(ApiModel):
    """The cache layers; at least one."""

    rules = (Rule(cel="has(self.exact)", message="layers needs at least one layer; add exact: {}"),)

    exact: ExactLayer | None = None
    """Exact answers."""
