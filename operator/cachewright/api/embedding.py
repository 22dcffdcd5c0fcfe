"""`layers.embedding`: vectors that clients ask for at `/v1/embeddings`, computed once."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cachewright.api.base import ApiModel
from cachewright.api.durations import Duration
from cachewright.api.rotation import Epoch


class EmbeddingLayer(ApiModel):
    """Vectors of `spec.embedder`, for clients that ask for them at `/v1/embeddings`.

    They depend on the embedder alone, so another version of the model keeps them all. Requests for
    `embedder.model` go to the embedder, those for any other model to the upstream, uncached.
    """

    hot_ttl: Duration = Field(default="24h", alias="hotTTL")
    """How long a vector stays in Redis; it never slides."""
    cold: Literal["Postgres"] | None = None
    """Where vectors stay without a TTL, beyond Redis. Postgres: in `stores.postgres`, in tables of their own,
    without any extension. A vector that is found there goes to Redis again."""
    share_across_tenants: bool = False
    """True: a text that one tenant had embedded is a hit for all. Tenants could then tell by the time of an
    answer whether a text was embedded before; a retraction by tenant leaves shared vectors."""
    epoch: Epoch = 0
    """Raise it to revoke every vector of this layer at once, as `spec.epoch` does for all."""
