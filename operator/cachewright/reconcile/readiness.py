"""Whether the store and the gateway do their work, from what was seen of them. Pure; called by status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cachewright.api.conditions import ConditionType, Reason
from cachewright.api.names import postgres_name
from cachewright.reconcile.managed_stores import MANAGED_STORES, instances, phase, waits_for
from cachewright.reconcile.state import Applied, Manifest, Observed, Plan, StoreFinding
from cachewright.render.metadata import gateway_name


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


def stores_part(
    observed: Observed,
    plan: Plan,
    applied: Applied,
    layers: tuple[StoreFinding, ...] = (),
    untried: tuple[str, ...] = (),
) -> Part:
    """Tell whether the stores can do their part, and Redis holds the record at its revision.

    `layers` is what gateways found wrong with what they keep there, and `untried` names the layers of which
    nobody knows yet.
    """
    if observed.cluster is not None and (problem := observed.cluster.problem) is not None:
        return _stores("False", problem.reason, problem.message)
    waiting = _managed_store_waiting(observed)
    if waiting is not None:
        return _stores("False", Reason.STORE_UNREADY, waiting)
    findings = (*_redis_findings(observed, applied), *observed.checks, *layers, *_degraded(observed))
    severe = next((finding for finding in findings if not finding.serves), None)
    if severe is not None:
        return _found(severe)
    revision = observed.store.record.revision if observed.store.record else 0
    wanted = plan.record.revision if plan.record else 1
    if not applied.published and revision < wanted:
        return _stores("False", Reason.PROGRESSING, "The record has not reached the store yet.")
    if untried:
        message = f"No gateway has tried {_named(untried)} since the stores' pods are as they are."
        return _stores("Unknown", Reason.PROGRESSING, message)
    if findings:
        return _found(findings[0])
    return _stores("True", Reason.READY, "The stores answer, and Redis holds the record.")


def _redis_findings(observed: Observed, applied: Applied) -> Iterator[StoreFinding]:
    """Say what is wrong with Redis, the worst first."""
    store = observed.store
    error = store.error or applied.store_error
    if error is not None:
        reason = store.reason if store.error is not None else applied.store_reason
        yield StoreFinding("Redis", reason, error)
    elif store.server is not None and store.server.is_replica:
        message = "the server is a replica that takes no writes: name the primary in the URL"
        yield StoreFinding("Redis", Reason.STORE_UNFIT, message)
    if store.server is not None and store.server.disk_trouble:
        message = (
            f"{store.server.disk_trouble} is err: the server cannot write to its disk, and then takes no more"
            " writes; make room on it, or turn persistence off, which a cache does not need"
        )
        yield StoreFinding("Redis", Reason.STORE_REFUSED, message, serves=True)
    if store.server is not None and store.server.may_evict_records:
        yield StoreFinding(
            "Redis",
            Reason.STORE_POLICY_UNSAFE,
            f"maxmemory-policy {store.server.eviction_policy} may evict the record, and with it what was"
            " retracted; run CONFIG SET maxmemory-policy volatile-lfu, and set it in the server's"
            " configuration",
            serves=True,
        )


def _degraded(observed: Observed) -> Iterator[StoreFinding]:
    """Say which servers are missing of a store that serves without them."""
    cluster = observed.children.get(("Cluster", postgres_name(observed.name)))
    if cluster is None:
        return
    ready, wanted = instances(cluster)
    if ready < wanted:
        message = f"{ready} of {wanted} instances are ready{phase(cluster)}"
        yield StoreFinding("PostgreSQL", Reason.STORE_DEGRADED, message, serves=True)


def _found(finding: StoreFinding) -> Part:
    message = f"{finding.store}: {finding.message.rstrip('.')}."
    return Part(ConditionType.STORES_READY, "False", finding.reason, message, serves=finding.serves)


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
    """Say what a managed store waits for; None where all run, or are external."""
    stores = (observed.document.get("spec") or {}).get("stores") or {}
    for store in MANAGED_STORES:
        if "managed" in (stores.get(store) or {}):
            waiting = waits_for(observed.children, store, observed.name)
            if waiting is not None:
                return waiting
    return None


def serving_gateways(observed: Observed) -> int:
    """Count the gateway pods that are available."""
    live = observed.children.get(("Deployment", gateway_name(observed.name)))
    return int(((live or {}).get("status") or {}).get("availableReplicas", 0))


def _named(layers: tuple[str, ...]) -> str:
    return f"layer {layers[0]}" if len(layers) == 1 else f"layers {', '.join(layers)}"


def _is_applied(plan: Plan, live: Manifest) -> bool:
    """Tell whether this very pass changes the object, so that its status is already out of date."""
    return any(
        child["kind"] == live["kind"] and child["metadata"]["name"] == live["metadata"]["name"]
        for child in plan.applies
    )


def _stores(status: Literal["True", "False", "Unknown"], reason: Reason, message: str) -> Part:
    return Part(ConditionType.STORES_READY, status, reason, message, serves=status == "True")


def _gateway(status: Literal["True", "False"], reason: Reason, message: str) -> Part:
    stopped = reason is Reason.GATEWAY_STOPPED
    return Part(ConditionType.GATEWAY_READY, status, reason, message, serves=False, in_progress=not stopped)
