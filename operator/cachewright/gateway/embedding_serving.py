"""What requests for embeddings are served with: a part of Serving, and like it swapped as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cachewright.gateway.embedding_source import EmbeddingSource
from cachewright.layers.embedding import EmbeddingLayer


@dataclass(frozen=True, slots=True)
class EmbeddingServing:
    """What requests for embeddings are served with."""

    layer: EmbeddingLayer
    source: EmbeddingSource
    model: str
    """Requests for any other model are not ours."""
    dimensions: int
    shared: bool
    """True: all tenants share vectors."""
    is_trusted: Callable[[], bool]
    """False while the embedder is not the one that the keyspace was filled with."""
