"""`spec.routes`: which requests are cached, in which layers, under which rules."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cachewright.api.base import ApiModel
from cachewright.api.model import UpstreamPath

RouteLayer = Literal["Exact"]
"""Layers that a route can look into."""


class RouteMatch(ApiModel):
    """Which requests a route takes."""

    path: UpstreamPath = "/v1/chat/completions"
    """Exact path of the request at the gateway."""


class Route(ApiModel):
    """Rules for the requests that match; the first matching route wins."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """Name of the route in metrics and `Cache-Status`; unique."""
    match: RouteMatch = Field(default_factory=RouteMatch)
    """Which requests the route takes."""
    layers: Annotated[list[RouteLayer], Field(max_length=8)] = Field(
        default=["Exact"], json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Layers looked into; an empty list caches nothing."""
    sampling: Literal["Strict"] = "Strict"
    """Strict: only an explicit temperature 0 is cached; a request that leaves it out is sampled."""
    side_effects: bool = False
    """True for requests that make something happen; they are never cached."""
