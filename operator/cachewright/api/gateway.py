"""`spec.gateway`: the caching gateway's pods."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cachewright.api.workload import PodPlacement


class GatewaySpec(PodPlacement):
    """The caching gateway: it speaks the OpenAI API and scales by replicas."""

    replicas: Annotated[int, Field(ge=0, le=100)] = 2
    """Number of gateway pods; 0 stops the endpoint and keeps the store."""
