"""The semantic layer of one configuration, as a part of what requests are served with."""

from __future__ import annotations

from dataclasses import dataclass

from cachewright.gateway.samples import Samples
from cachewright.layers.semantic import SemanticLayer
from cachewright.layers.semantic_keeping import Keeping
from cachewright.policy.document import SemanticPolicy


@dataclass(frozen=True, slots=True)
class Semantics:
    """Look-ups and writes of the layer, with the policy they enact."""

    policy: SemanticPolicy
    layer: SemanticLayer
    keeping: Keeping
    samples: Samples
    """Of Shadow mode."""
