"""`spec.rotation`: what becomes of the entries of a keyspace that is no longer in use."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.durations import Duration

Epoch = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""A number that only counts where it is higher than ever before."""


class RotationSpec(ApiModel):
    """How a layer moves from one keyspace to the next, and how long the way back is open."""

    fence: Literal["Workload", "None"] | None = None
    """Workload: answers are stored, and a new version is switched to, only by what the pods of
    `model.workloadRef` run. None: a change takes effect at once, and whatever the upstream answers is
    stored. Where it is left out: Workload if there is a `workloadRef`, else None."""
    deadline: Duration = "30m"
    """How long a new version waits for the workload before `RotationComplete` says `RolloutNotSeen`; it goes
    on waiting."""
    heartbeat_timeout: Annotated[
        Duration,
        Rule(
            cel="duration(self) >= duration('10s') && duration(self) <= duration('24h')",
            message="heartbeatTimeout must be from 10s to 24h",
        ),
    ] = "10m"
    """How long gateways go on storing while the operator, which watches the workload's pods, is not heard
    of."""
    retain: Duration = "24h"
    """How long a keyspace that went out of use is kept. Set the version back within that time, and its
    answers are served again with what remains of their ttl; so the way back helps for the shorter of `retain`
    and the layer's ttl. A changed `retain` counts for keyspaces that go out of use from then on."""
    max_retained: Annotated[int, Field(ge=0, le=32)] = 3
    """How many keyspaces of one layer are kept; the oldest of more is deleted at once."""
