"""The condition `Calibrated`: for which objects the threshold of similar questions is more than a guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.quality import THRESHOLD
from cachewright.api.conditions import ConditionType, Reason
from cachewright.crd.validation import load
from cachewright.keys.embedding_identity import BUILTIN
from cachewright.policy.thresholds import CALIBRATED
from cachewright.reconcile.calibration_told import calibration_part

EXAMPLE = Path(__file__).parents[2] / "examples/semantic.yaml"
ENDPOINT = {"url": "http://tei.ml:8080/v1", "model": "bge-m3", "dimensions": 1024, "maxTokens": 8192}


def document(embedder: dict[str, Any], **semantic: Any) -> dict[str, Any]:
    """Return the example with another embedder and more in its semantic layer."""
    made: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    made["spec"]["embedder"] = embedder
    made["spec"]["layers"]["semantic"] |= semantic
    return made


@pytest.mark.parametrize(
    ("embedder", "semantic", "reason", "threshold"),
    [
        ({"builtin": {}}, {}, Reason.CALIBRATED, "0.95"),
        (ENDPOINT, {"threshold": 0.9}, Reason.CALIBRATED, "0.9"),
        (ENDPOINT, {"profile": "Support"}, Reason.CALIBRATED, "0.88"),
        (ENDPOINT, {}, Reason.UNCALIBRATED, "0.93"),
    ],
)
def test_the_threshold_is_told_and_where_it_is_from(
    embedder: dict[str, Any], semantic: dict[str, Any], reason: Reason, threshold: str
) -> None:
    """Measured, chosen, or a guess with what to do about it; the object is ready in each case."""
    part = calibration_part(load(document(embedder, **semantic)))
    assert part is not None
    assert (part.type, part.reason) == (ConditionType.CALIBRATED, reason)
    assert (part.status == "True") is (reason is Reason.CALIBRATED)
    assert threshold in part.message
    assert ("cachewright calibrate" in part.message) is (reason is Reason.UNCALIBRATED)
    assert part.serves


def test_an_object_without_the_layer_has_no_such_condition() -> None:
    """Nor has one whose spec cannot be read."""
    made = document({"builtin": {}})
    del made["spec"]["layers"]["semantic"]
    for route in made["spec"]["routes"]:
        route["layers"] = ["Exact"]
        route.pop("question", None)
        route.pop("threshold", None)
    del made["spec"]["stores"]["qdrant"]
    assert calibration_part(load(made)) is None
    assert calibration_part(None) is None


def test_the_published_figures_are_those_of_the_default_threshold() -> None:
    """The tables are measured at the threshold that the built-in embedder gets."""
    assert CALIBRATED[BUILTIN.fingerprint] == THRESHOLD
