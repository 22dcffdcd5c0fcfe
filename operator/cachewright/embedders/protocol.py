"""What layers need of an embedder, as a Protocol, and the value that it gives for each text.

Vectors are `array('f')`: any consumer can read their buffer without a copy, and nothing here needs numpy.
Implementations: `builtin` (the model in this process), `endpoint` (a server that speaks the OpenAI API).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cachewright.errors import EmbedderRefused
from cachewright.keys.embedding_identity import EmbeddingIdentity


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """What an embedder made of one text."""

    vector: array[float]
    """float32, as many as the identity's dimensions, finite and not all zero; empty beyond the window."""
    n_tokens: int = 0
    """Tokens of the text as the model counts them, special ones included; 0 where it is not known."""
    has_unknown: bool = False
    """True: part of the text has no token of its own, so texts that differ there may have equal vectors."""
    beyond_window: bool = False
    """True: the text is longer than the window, or may be; there is no vector."""

    @property
    def is_embeddable(self) -> bool:
        """Tell whether the vector stands for the whole of the text."""
        return not (self.has_unknown or self.beyond_window)


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def identity(self) -> EmbeddingIdentity:
        """The space of the vectors."""

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts, one result for each in their order; raises EmbedderError.

        Bounded in time by the implementation itself. Cancelling it is allowed at any time.
        """

    async def aclose(self) -> None:
        """Give up what is under way and free all resources."""


def checked(vector: array[float], dimensions: int) -> array[float]:
    """Return a vector that may be stored and compared; raises EmbedderRefused for any other."""
    if len(vector) != dimensions:
        raise EmbedderRefused(f"the embedder gave a vector of {len(vector)} numbers in place of {dimensions}")
    if not math.isfinite(sum(vector)):  # one number that is not finite makes the sum so
        raise EmbedderRefused("the embedder gave a vector with a number that is not finite")
    if not any(vector):
        raise EmbedderRefused("the embedder gave a vector of zeros")
    return vector
