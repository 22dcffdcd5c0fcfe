"""Whether the store and the gateway do their work, from what was seen of them. Pure; called by status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cachewright.api.conditions import ConditionType, Reason
from cachewright.reconcile.state import Applied, Manifest, Observed, Plan
from cachewright.render.metadata import gateway_name, redis_name


@dataclass(frozen=True, slots=True)
class Part:
    """One condition before it is compared with the former one."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    reason: Reason
    message: str
    serves: bool = True
    """False where requests would not be answered as the object promises."""
    in_progress: bool = False
    """True while a rollout is under way."""


def stores_part(observed: Observed, plan: Plan, applied: Applied) -> Part:
    """Tell whether the store answers and holds the record at its revision."""
    waiting = _managed_store_waiting(observed)
    if waiting is not None:
        return _stores("False", Reason.STORE_UNREADY, waiting)
    error = observed.store.error or applied.store_error
    if error is not None:
        return _stores("False", Reason.STORE_UNREACHABLE, f"The store did not answer the operator: {error}.")
    revision = observed.store.record.revision if observed.store.record else 0
    wanted = plan.record.revision if plan.record else 1
    if not applied.published and revision < wanted:
        return _stores("False", Reason.PROGRESSING, "The record has not reached the store yet.")
    return _stores("True", Reason.READY, "The store answers and holds the record.")


def gateway_part(observed: Observed, plan: Plan) -> Part:
    """Tell whether the gateway's pods serve, and whether they are being rolled."""
    live = observed.children.get(("Deployment", gateway_name(observed.name)))
    if live is None:
        return _gateway("False", Reason.PROGRESSING, "The gateway's Deployment is being created.")
    wanted = int(live["spec"].get("replicas", 1))
    if wanted == 0:
        return _gateway("False", Reason.GATEWAY_STOPPED, "spec.gateway.replicas is 0: nothing serves.")
    status: Manifest = live.get("status") or {}
    available = int(status.get("availableReplicas", 0))
    seen = int(status.get("observedGeneration", 0)) >= int(live["metadata"].get("generation", 0))
    updated = int(status.get("updatedReplicas", 0)) if seen else 0
    total = int(status.get("replicas", 0))
    rolling = updated < wanted or total > updated or available < wanted or _is_applied(plan, live)
    if available == 0:
        return _gateway("False", Reason.GATEWAY_UNREADY, f"0 of {wanted} gateway pods are available.")
    if rolling:
        message = f"{updated} of {wanted} gateway pods are up to date, {available} available."
        return Part(ConditionType.GATEWAY_READY, "False", Reason.PROGRESSING, message, in_progress=True)
    return Part(
        ConditionType.GATEWAY_READY, "True", Reason.READY, f"{wanted} of {wanted} gateway pods are available."
    )


def _managed_store_waiting(observed: Observed) -> str | None:
    """Say what a managed store waits for; None where it runs, or is external."""
    spec = (observed.document.get("spec") or {}).get("stores") or {}
    if "managed" not in (spec.get("redis") or {}):
        return None
    live = observed.children.get(("StatefulSet", redis_name(observed.name)))
    if live is None:
        return "The store's StatefulSet is being created."
    if int((live.get("status") or {}).get("readyReplicas", 0)) < 1:
        return f"Pod {redis_name(observed.name)}-0 is not ready."
    return None


def _is_applied(plan: Plan, live: Manifest) -> bool:
    """Tell whether this very pass changes the object, so that its status is already out of date."""
    return any(
        child["kind"] == live["kind"] and child["metadata"]["name"] == live["metadata"]["name"]
        for child in plan.applies
    )


def _stores(status: Literal["True", "False"], reason: Reason, message: str) -> Part:
    return Part(ConditionType.STORES_READY, status, reason, message, serves=status == "True")


def _gateway(status: Literal["True", "False"], reason: Reason, message: str) -> Part:
    stopped = reason is Reason.GATEWAY_STOPPED
    return Part(ConditionType.GATEWAY_READY, status, reason, message, serves=False, in_progress=not stopped)
