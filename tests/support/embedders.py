"""An embedder that a test scripts: which vector for which text, and which trouble."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cachewright.embedders.protocol import Embedding
from cachewright.keys.embedding_identity import BUILTIN, EmbeddingIdentity
from tests.support.vectors import random_vector

DIMENSIONS: Final = 8
STUB: Final[EmbeddingIdentity] = replace(BUILTIN, model="stub", dimensions=DIMENSIONS)


def one_direction(_text: str) -> array[float]:
    """Return the same vector whatever the text, so that every cosine is 1.0."""
    return random_vector("the same")


def of_words(text: str) -> array[float]:
    """Return one vector for all texts with the same words, in whatever order, and unrelated ones else."""
    return random_vector(" ".join(sorted(text.lower().split())))


@dataclass
class StubEmbedder:
    """Embedder that does as told."""

    vector_of: Callable[[str], array[float]] = of_words
    identity: EmbeddingIdentity = STUB
    error: Exception | None = None
    frozen: bool = False
    unembeddable: Callable[[str], bool] = lambda _text: False
    texts: list[str] = field(default_factory=list)
    """All that was embedded."""

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed, or do as told."""
        self.texts += texts
        if self.frozen:
            await asyncio.sleep(3600)
        if self.error is not None:
            raise self.error
        return [Embedding(self.vector_of(text), 3, has_unknown=self.unembeddable(text)) for text in texts]

    async def aclose(self) -> None:
        """Nothing is held."""
