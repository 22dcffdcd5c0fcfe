"""`spec.rotation`: what becomes of the entries of a keyspace that is no longer in use."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cachewright.api.base import ApiModel
from cachewright.api.durations import Duration

Epoch = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""A number that only counts where it is higher than ever before."""


class RotationSpec(ApiModel):
    """How a layer moves from one keyspace to the next, and how long the way back is open."""

    retain: Duration = "24h"
    """How long a keyspace that went out of use is kept. Set the version back within that time, and its
    answers are served again with what remains of their ttl; so the way back helps for the shorter of `retain`
    and the layer's ttl. A changed `retain` counts for keyspaces that go out of use from then on."""
    max_retained: Annotated[int, Field(ge=0, le=32)] = 3
    """How many keyspaces of one layer are kept; the oldest of more is deleted at once."""
