"""`spec.sweep`: how entries that nobody can reach any more are removed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.durations import Duration


class SweepSpec(ApiModel):
    """Removal of what nobody can reach any more; it is done by one of the gateways at a time."""

    rules = (
        Rule(
            cel="duration(self.interval) >= duration('1m') && duration(self.interval) <= duration('168h')",
            message="sweep.interval must be between 1m and 168h",
            field=".interval",
        ),
    )

    interval: Duration = "1h"
    """Time from the end of one sweep over the store's keys to the next.

    Keyspaces that are given up are emptied at once, without waiting for it."""
    reclaim_rate: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    """Keys per second that a sweep or the emptying of a keyspace looks at, those of others in the same
    store included.

    More ends sooner and leaves a store less time for requests."""
