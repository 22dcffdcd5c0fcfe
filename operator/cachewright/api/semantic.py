"""`spec.layers.semantic`: answers to similar questions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cachewright.api.base import ABOVE_NOTHING, ApiModel, Rule
from cachewright.api.durations import Duration
from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.api.rotation import Epoch

Threshold = Annotated[
    float,
    Field(ge=0, le=1),
    ABOVE_NOTHING,
]
"""Least cosine between two questions that may share an answer."""

Profile = Literal["General", "Support", "Legal", "Medical", "Financial"]
"""What the questions are about."""


class HnswSpec(ApiModel):
    """The graph of nearest neighbours; a change counts from the next keyspace on."""

    m: Annotated[int, Field(ge=2, le=100)] = 16
    """Neighbours that a vector is linked to; more find more and take more memory."""
    ef_construct: Annotated[int, Field(ge=4, le=1000)] = 100
    """Candidates looked at for each link while a vector is stored."""
    payload_m: Annotated[int, Field(ge=2, le=100)] = 16
    """The same as `m`, in Qdrant's graph of each tenant, which is the only one that is built there."""


class Admission(ApiModel):
    """Which answers are kept."""

    min_seen: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often the model must have answered a question within `ttl`, in whatever case it was written, before
    its answer is kept for similar ones."""


class SemanticLayer(ApiModel):
    """Answers to similar questions: fuzzy in the question alone, exact in all else.

    The question is the user's last text, or what a route's `question` marks in it. Model, system prompt,
    history, tools, parameters, tenant, role and documents must be the same.
    """

    rules = (
        Rule(
            cel="!has(self.maxEntriesPerTenant) || self.maxEntriesPerTenant <= self.maxEntries",
            message="semantic.maxEntriesPerTenant must not be more than maxEntries",
            field=".maxEntriesPerTenant",
        ),
        Rule(
            cel="duration(self.ttl) <= duration('8760h')",
            message="semantic.ttl must not be longer than 8760h",
            field=".ttl",
        ),
    )

    mode: Literal["Serve", "Shadow"] = "Serve"
    """Serve, or Shadow: look and keep as if, count and sample what would have been served, and serve none."""
    store: Literal["Qdrant", "Postgres"]
    """Where vectors and answers are kept; it must be one of `stores`. A change moves nothing: the layer is
    empty in the new store."""
    profile: Profile | None = None
    """Threshold by what the questions are about: General 0.92, Support 0.88, Legal, Medical and Financial
    0.95."""
    threshold: Threshold | None = None
    """Least cosine of a match; wins over `profile`. Without either, the one that the embedder was calibrated
    with, else 0.93."""
    ttl: Duration = "24h"
    """How long an answer is served; it never slides."""
    max_entries: Annotated[int, Field(ge=1, le=100_000_000)] = 1_000_000
    """Most entries, approximately; the oldest make room."""
    max_entries_per_tenant: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Most entries of one tenant, approximately; its oldest make room."""
    max_turns: Annotated[int, Field(ge=1, le=64)] = 1
    """Longest conversation, in things that the user said, the question among them; longer ones are matched
    exactly only. What was said before is compared exactly."""
    guard: Annotated[list[GuardCheck], Field(max_length=16)] = Field(
        default=list(DEFAULT_GUARD), json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """What two questions must not differ in, however similar they are. Names costs about a fifth of the
    hits."""
    other_languages: Literal["Exact", "Unguarded"] = "Exact"
    """Questions in languages that the guard has no word lists of. Exact: they are matched exactly only.
    Unguarded: they are matched by similarity, numbers and signs alone."""
    admission: Admission = Field(default_factory=Admission)
    """Which answers are kept."""
    expose_similarity: bool = False
    """True: the header `Cachewright-Similarity` says how similar the most similar question is, on hits and on
    misses, and `Cachewright-Guard` what the guard refused it for. They tell a client something of what others
    asked, so they are for debugging."""
    hnsw: HnswSpec = Field(default_factory=HnswSpec)
    """The graph of nearest neighbours."""
    quantization: Literal["None", "Scalar"] = "None"
    """How vectors are kept for searching; similarity is computed on exact ones. A change counts from the next
    keyspace on."""
    epoch: Epoch = 0
    """Raise it to revoke every entry of this layer at once, as `spec.epoch` does for all."""
