"""From what a pass has seen, planned and done to the object's status. Pure; called by service.

No clock reading enters the comparison: `lastTransitionTime` moves only when a condition's status moves, so
a pass that finds the same writes nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from cachewright.api.conditions import ConditionType, Reason
from cachewright.api.names import API_VERSION, KIND
from cachewright.reconcile.calibration_told import calibration_part
from cachewright.reconcile.keyspaces_told import layers_status, retained_status
from cachewright.reconcile.memory_told import memory_part
from cachewright.reconcile.planned import planned_status
from cachewright.reconcile.prefix.told import prefix_part, prefix_status
from cachewright.reconcile.probes_told import embedder_part, fresh_probes, layer_findings, untried_layers
from cachewright.reconcile.readiness import Part, gateway_part, stores_part
from cachewright.reconcile.rotation_told import rotation_part
from cachewright.reconcile.serving import in_use
from cachewright.reconcile.sizes_told import sizes_part
from cachewright.reconcile.state import Applied, Finding, Manifest, Observed, Plan
from cachewright.reconcile.sweep_told import sweep_status
from cachewright.reconcile.timestamps import to_timestamp
from cachewright.reconcile.undersized_told import undersized_part
from cachewright.render.metadata import endpoint_url

MAX_MESSAGE_LENGTH: Final = 4096


def build_status(
    observed: Observed, plan: Plan, applied: Applied, now: datetime, settled: bool = True
) -> Manifest:
    """Build the whole status of ours; `settled` tells whether no gateway serves older keyspaces any more."""
    before = observed.document.get("status") or {}
    parts = _parts(observed, plan, applied, now)
    rotation = rotation_part(observed, plan, now, settled)
    if rotation is not None:
        parts.append(rotation)
    others = (
        memory_part(observed),
        undersized_part(observed, plan.cache),
        calibration_part(plan.cache),
        prefix_part(observed, plan),
        sizes_part(observed),
    )
    parts += [part for part in others if part is not None]
    conditions = [_condition(part, before, observed.generation, now) for part in parts]
    status: Manifest = {"observedGeneration": observed.generation, "conditions": conditions}
    if plan.cache is not None:
        status["endpoint"] = endpoint_url(plan.cache)
    elif "endpoint" in before:
        status["endpoint"] = before["endpoint"]
    if plan.record is not None:
        status["cacheID"] = plan.record.cache_id
    if plan.record is not None and plan.record.layers:
        status["layers"] = layers_status(plan.record)
    engine = prefix_status(before, observed, plan, now)
    if engine:
        status["prefix"] = engine
    if swept := sweep_status(before, observed, plan.record):
        status["sweep"] = swept
    if plan.changes and (plan.blocked is not None or applied.error is not None):
        status["planned"] = planned_status(plan.changes)
    if plan.record is not None and plan.record.past:
        status["retained"] = retained_status(plan.record)
    return status


def status_manifest(observed: Observed, status: Manifest) -> Manifest:
    """Wrap a status for server-side apply."""
    metadata = observed.document["metadata"]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }


def is_same_status(before: Manifest | None, after: Manifest) -> bool:
    """Tell whether the stored status already says all of `after`, and nothing more under our fields."""
    return before is not None and {key: before[key] for key in sorted(before)} == {
        key: after[key] for key in sorted(after)
    }


def _parts(observed: Observed, plan: Plan, applied: Applied, now: datetime) -> list[Part]:
    failing = tuple(layer_findings(fresh_probes(observed, now)))
    stores = stores_part(observed, plan, applied, failing, untried_layers(observed, plan, now))
    gateway = gateway_part(observed, plan)
    embedder = embedder_part(observed, plan, now)
    told = [stores, gateway, *([embedder] if embedder is not None else [])]
    problem = plan.blocked or applied.error
    parts = [_ready(plan, problem, told), *told]
    if problem is not None and problem.stalled:
        parts.append(Part(ConditionType.STALLED, "True", problem.reason, problem.message))
    elif _is_reconciling(plan, problem, told):
        cause = next((part for part in told if not part.serves), gateway)
        reason, message = (problem.reason, problem.message) if problem else (cause.reason, cause.message)
        parts.append(Part(ConditionType.RECONCILING, "True", reason, message))
    return parts


def _ready(plan: Plan, problem: Finding | None, told: list[Part]) -> Part:
    """Ready tells whether the endpoint serves this spec; a rollout that still serves stays ready."""
    if problem is not None and problem.reason is not Reason.SUSPENDED:
        return Part(ConditionType.READY, "False", problem.reason, problem.message)
    waiting = next((part for part in told if not part.serves), None)
    status: Literal["True", "False"] = "True" if waiting is None else "False"
    if problem is not None:
        return Part(ConditionType.READY, status, problem.reason, problem.message)
    if waiting is not None:
        return Part(ConditionType.READY, status, waiting.reason, waiting.message)
    return Part(ConditionType.READY, status, Reason.READY, _ready_message(plan))


def _ready_message(plan: Plan) -> str:
    model = plan.cache.spec.model.name if plan.cache else "the model"
    served = in_use(plan.record) if plan.record else None
    version = f" at version {served.version}" if served else ""
    if plan.record is not None and not plan.record.layers:
        return f"Answers of {model} are not cached until it is known which version is served."
    return f"Answers of {model}{version} are cached."


def _is_reconciling(plan: Plan, problem: Finding | None, told: list[Part]) -> bool:
    if plan.blocked is not None:
        return False
    # A record alone may change whenever a pod comes or goes, for as long as a rollout takes.
    writes = bool(plan.applies or plan.deletes)
    # A gateway that was scaled to nothing does not serve, and nobody is at work on it.
    others = [part for part in told if part.type is not ConditionType.GATEWAY_READY]
    at_work = any(part.in_progress for part in told) or not all(part.serves for part in others)
    return problem is not None or writes or at_work


def _condition(part: Part, before: Manifest, generation: int, now: datetime) -> dict[str, Any]:
    former = next((c for c in before.get("conditions") or [] if c.get("type") == part.type), None)
    moved = former is None or former.get("status") != part.status
    return {
        "type": str(part.type),
        "status": part.status,
        "observedGeneration": generation,
        "lastTransitionTime": to_timestamp(now) if moved or former is None else former["lastTransitionTime"],
        "reason": str(part.reason),
        "message": part.message[:MAX_MESSAGE_LENGTH],
    }
