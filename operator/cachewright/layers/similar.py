"""What goes into a semantic look-up and comes out of it: values that the layer and the gateway share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.embedders.protocol import Embedding
from cachewright.keys.digest import EntryName
from cachewright.keys.generations import Dependence
from cachewright.layers.exact import Miss
from cachewright.policy.guard import GuardReason
from cachewright.policy.question import Question
from cachewright.policy.reasons import SemanticReason
from cachewright.stores.protocols import Marks

LAYER: Final = "Semantic"
"""The layer's name in the record."""


@dataclass(frozen=True, slots=True)
class SemanticSettings:
    """What the layer needs of the policy."""

    cache_id: str
    binding: str
    ttl_seconds: float
    serves: bool = True
    """False: Shadow, which looks and stores as if, and serves nothing."""
    guard: tuple[GuardCheck, ...] = DEFAULT_GUARD
    other_languages: bool = False
    """True: questions in languages that the guard has no words of are matched too."""
    embedder_seconds: float = 0.05
    """An embedder that takes longer for a probe is left alone."""
    store_seconds: float = 0.05
    """The same for the vector store."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that the exact layer missed."""

    question: Question
    dependence: Dependence
    place: Miss
    """Where the exact layer would have it."""
    threshold: float
    """Least cosine of a match."""


@dataclass(slots=True)
class Draft:
    """What it takes to keep the answer to a question, as far as the look-up found it out."""

    ticket: EntryName
    seen: Marks
    """Under the ticket's hash tag, when the request began."""
    partition: EntryName
    """The mark that something is stored in the partition."""
    partition_seen: Marks | None
    text: str = field(repr=False)
    dependence: bytes
    """What the answer depends on; see `Miss.dependence`."""
    embedding: asyncio.Task[Embedding] | None = None
    """Under way since the look-up; None: it was not needed yet."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Two questions of one partition that are similar enough, and what the guard has against them."""

    asked: str = field(repr=False)
    stored: str = field(repr=False)
    similarity: float
    refused: tuple[GuardReason, ...] = ()


@dataclass(frozen=True, slots=True)
class NoMatch:
    """No answer to serve."""

    reason: SemanticReason
    draft: Draft | None = None
    """None: the answer cannot be kept in this layer."""
    refused: tuple[GuardReason, ...] = ()
    """What the guard refused candidates for, each once."""
    samples: tuple[Sample, ...] = ()
    """In Shadow, what would have been served or refused."""
    similarity: float | None = None
    """Of the best candidate, where there is one."""
