"""What gateways found when they tried their layers, as parts of the status. Pure; called by status.

A report that is too old says nothing: its gateway may be gone, and others tell of that. Nor does one from
before a change of the stores' pods. A layer on which there is no word left is not taken for well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from cachewright.api.conditions import ConditionType, Reason
from cachewright.reconcile.readiness import Part, serving_gateways
from cachewright.reconcile.state import Observed, Plan, StoreFinding
from cachewright.stores.probes import ProbeReport, ProbeState

FRESH_SECONDS: Final = 180.0
"""Gateways report each minute while all is well."""

TRIED_LAYERS: Final = ("Exact", "Semantic", "Embedding")
"""Layers that gateways try."""

EMBEDDING_LAYERS: Final = ("Semantic", "Embedding")
"""Layers that take an embedder."""


def fresh_probes(observed: Observed, now: datetime) -> dict[str, ProbeReport]:
    """Return the reports that still count, by layer."""
    seconds = now.timestamp()
    return {
        layer: report
        for layer, report in observed.store.probes.items()
        if abs(seconds - report.at) < FRESH_SECONDS and _answers(report, observed.store_pods)
    }


def untried_layers(observed: Observed, plan: Plan, now: datetime) -> tuple[str, ...]:
    """Return the layers on which a gateway that serves still has to report."""
    if plan.record is None or not observed.store.asked or not serving_gateways(observed):
        return ()
    probes = fresh_probes(observed, now)
    return tuple(layer for layer in TRIED_LAYERS if layer in plan.record.layers and layer not in probes)


def layer_findings(probes: Mapping[str, ProbeReport]) -> Iterator[StoreFinding]:
    """Say which layers cannot be used because of their store."""
    for layer, report in sorted(probes.items()):
        if report.state is ProbeState.STORE:
            yield StoreFinding(f"Layer {layer}", Reason.LAYER_FAILING, report.problem)


def _answers(report: ProbeReport, store_pods: str) -> bool:
    """Tell whether a layer was tried since the stores' pods changed; older gateways do not say."""
    return report.request is None or not store_pods or report.request == store_pods


def embedder_part(observed: Observed, plan: Plan, now: datetime) -> Part | None:
    """Tell whether the embedder works and is still the same; None without one."""
    cache = plan.cache
    if cache is None or cache.spec.embedder is None:
        return None
    layers = cache.spec.layers
    if layers.semantic is None and layers.embedding is None:
        return None
    probes = fresh_probes(observed, now)
    reports = [probes[layer] for layer in EMBEDDING_LAYERS if layer in probes]
    for state, reason in (
        (ProbeState.MISMATCH, Reason.EMBEDDER_MISMATCH),
        (ProbeState.EMBEDDER, Reason.EMBEDDER_UNREADY),
    ):
        failing = next((report for report in reports if report.state is state), None)
        if failing is not None:
            message = f"A gateway reports: {failing.problem}."
            return Part(ConditionType.EMBEDDER_READY, "False", reason, message, serves=False)
    if not reports:
        message = "No gateway has tried the embedder yet."
        return Part(ConditionType.EMBEDDER_READY, "Unknown", Reason.PROGRESSING, message)
    return Part(
        ConditionType.EMBEDDER_READY, "True", Reason.READY, "The embedder gives the vectors it should."
    )
