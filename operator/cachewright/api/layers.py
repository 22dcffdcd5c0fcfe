"""`spec.layers`: what is cached, and for how long."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.durations import Duration
from cachewright.api.embedding import EmbeddingLayer
from cachewright.api.prefix import PrefixLayer
from cachewright.api.rotation import Epoch
from cachewright.api.semantic import SemanticLayer


class LocalCopies(ApiModel):
    """Copies of answers in the memory of each gateway, so that a repeated hit needs no store.

    A copy is served only while the store was asked for changes less than a second ago.
    """

    max_entries: Annotated[int, Field(ge=0, le=1_000_000)] = 10_000
    """How many answers each gateway keeps, in 32 MiB at most; 0 keeps none."""
    ttl: Duration = "30s"
    """How long a copy is served, within the answer's own ttl."""


class ExactLayer(ApiModel):
    """Answers to requests that are the same in everything that matters."""

    ttl: Duration = "30m"
    """How long an answer is served; it never slides."""
    local: LocalCopies = Field(default_factory=LocalCopies)
    """Copies in the gateways' memory."""
    epoch: Epoch = 0
    """Raise it to revoke every entry of this layer at once, as `spec.epoch` does for all."""


class LayersSpec(ApiModel):
    """The cache layers; at least one."""

    rules = (
        Rule(
            cel="has(self.exact) || has(self.embedding)",
            message="layers needs at least one layer; add exact: {}",
        ),
        Rule(
            cel="!has(self.semantic) || has(self.exact)",
            message="layers.semantic needs layers.exact, which is asked first; add exact: {}",
            field=".semantic",
        ),
        Rule(
            cel=(
                "!has(self.prefix) || self.prefix.flush == 'Never'"
                " || self.prefix.tenantSalt || has(self.exact)"
            ),
            message="layers.prefix.flush needs tenantSalt or layers.exact, whose keyspace tells of a switch",
            field=".prefix.flush",
        ),
    )

    exact: ExactLayer | None = None
    """Exact answers."""
    semantic: SemanticLayer | None = None
    """Answers to similar questions, where the exact layer has none; needs `embedder`. Routes that are named
    use it only where their `layers` say so."""
    embedding: EmbeddingLayer | None = None
    """Vectors that clients ask for at `/v1/embeddings`; needs `spec.embedder`."""
    prefix: PrefixLayer | None = None
    """The prefix cache inside the engine."""
