"""Thresholds: from a semantic layer and its embedder to the least cosine of a match. Pure.

Cosines of two embedders are not comparable, so a default counts only for the embedder it was measured with.
Called by `from_spec`, and for the condition that tells of an embedder nobody measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cachewright.api.semantic import Profile, SemanticLayer
from cachewright.keys.embedding_identity import BUILTIN, EmbeddingIdentity

PROFILES: Final[Mapping[Profile, float]] = {
    "General": 0.92,
    "Support": 0.88,
    "Legal": 0.95,
    "Medical": 0.95,
    "Financial": 0.95,
}
"""What published advice for teams that serve models names."""

CALIBRATED: Final[Mapping[str, float]] = {BUILTIN.fingerprint: 0.95}
"""By fingerprint of the embedder, what `cachewright calibrate` recommends with the default guard."""

UNCALIBRATED: Final = 0.93
"""For every other embedder."""


def threshold_of(semantic: SemanticLayer, embedder: EmbeddingIdentity) -> float:
    """Return the layer's threshold; routes may have their own."""
    if semantic.threshold is not None:
        return semantic.threshold
    if semantic.profile is not None:
        return PROFILES[semantic.profile]
    return CALIBRATED.get(embedder.fingerprint, UNCALIBRATED)


def is_calibrated(semantic: SemanticLayer, embedder: EmbeddingIdentity) -> bool:
    """Tell whether the threshold was chosen for this embedder: by the user, or by measurement."""
    is_chosen = semantic.threshold is not None or semantic.profile is not None
    return is_chosen or embedder.fingerprint in CALIBRATED
