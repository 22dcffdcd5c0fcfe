"""The condition `Calibrated`: whether the threshold of similar questions was measured. Pure; for status."""

from __future__ import annotations

from cachewright.api.conditions import ConditionType, Reason
from cachewright.api.inference_cache import InferenceCache
from cachewright.keys.embedding_identity import identity_of
from cachewright.policy.thresholds import is_calibrated, threshold_of
from cachewright.reconcile.readiness import Part


def calibration_part(cache: InferenceCache | None) -> Part | None:
    """Tell whether the semantic layer's threshold is right for its embedder; None without that layer.

    It never makes the object unready: what is served is guarded all the same.
    """
    if cache is None or cache.spec.layers.semantic is None or cache.spec.embedder is None:
        return None
    semantic, embedder = cache.spec.layers.semantic, identity_of(cache.spec.embedder)
    threshold = threshold_of(semantic, embedder)
    if is_calibrated(semantic, embedder):
        message = f"Similar questions share an answer from {threshold:g} on."
        return Part(ConditionType.CALIBRATED, "True", Reason.CALIBRATED, message)
    message = (
        f"Nobody has measured {embedder.model}, so the threshold is {threshold:g}, a guess."
        " Run `cachewright calibrate` with it and set spec.layers.semantic.threshold."
    )
    return Part(ConditionType.CALIBRATED, "False", Reason.UNCALIBRATED, message)
