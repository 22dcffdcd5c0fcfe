"""The identity of an embedder: everything that two vectors must share to be comparable. Pure.

It is fingerprinted into the keyspaces of every layer that keeps vectors, so vectors of two models, revisions
or lengths never meet. Where an embedder is reached is no part of it: the same model may move, and the live
probe checks that it is the same. Called by fingerprints, by the embedders and by the policy.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from cachewright.api.embedder import EmbedderSpec
from cachewright.keys.fields import encode_fields


@dataclass(frozen=True, slots=True)
class EmbeddingIdentity:
    """One embedding space."""

    provider: str
    """What kind of server computes the vectors: `builtin` or `endpoint`."""
    model: str
    revision: str
    """Of the model's weights and settings; a new one is a new space."""
    dimensions: int
    """Length of each vector."""
    max_tokens: int
    """The model's window, special tokens included; a longer text is not embedded."""
    normalized: bool = False
    """True: vectors have length 1 by construction; False: they are as the server gave them."""
    input_type: str = ""
    """Instruction or prefix that every text is embedded with; empty: none."""

    @property
    def fingerprint(self) -> str:
        """Digest all of it, as 64 hex digits."""
        fields = [
            ("provider", self.provider.encode()),
            ("model", self.model.encode()),
            ("revision", self.revision.encode()),
            ("dimensions", str(self.dimensions).encode()),
            ("max_tokens", str(self.max_tokens).encode()),
            ("normalized", b"1" if self.normalized else b""),
            ("input_type", self.input_type.encode()),
            ("truncation", b""),  # never: what does not fit is refused
        ]
        return hashlib.sha256(encode_fields("cachewright/embedding", fields)).hexdigest()


BUILTIN: Final = EmbeddingIdentity(
    provider="builtin",
    model="all-MiniLM-L6-v2",
    revision="onnx-int8-1",
    dimensions=384,
    max_tokens=256,
    normalized=True,
)
"""The model that ships with the project: English, on the CPU, without a download."""


def identity_of(spec: EmbedderSpec) -> EmbeddingIdentity:
    """Return the space of a spec's embedder; a model without a revision has the empty one."""
    if spec.builtin is not None:
        return BUILTIN
    return EmbeddingIdentity(
        provider="endpoint",
        model=spec.model or "",
        revision=spec.revision or "",
        dimensions=spec.dimensions or 0,
        max_tokens=spec.max_tokens or 0,
    )


PROBE_TEXT: Final = "The caching gateway keeps what the model answered yesterday, and says why it did not."
"""Embedded again and again to see whether an embedder is still the one that a keyspace was filled with."""
