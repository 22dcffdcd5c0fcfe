"""The condition `RotationComplete`: which keyspaces are in use, and what the workload is waited for. Pure.

Called by status.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from cachewright.api.conditions import ConditionType, Reason
from cachewright.api.durations import parse_duration_seconds
from cachewright.keys.record import Record
from cachewright.reconcile.readiness import Part
from cachewright.reconcile.rotation import deadline_of
from cachewright.reconcile.serving import AUTO, in_use, serves_annotation
from cachewright.reconcile.state import Observed, Plan
from cachewright.reconcile.workload import WorkloadSeen
from cachewright.stores.reclaim import ReclaimState

IDENTITIES_TOLD: Final = 4
"""More of them say no more."""

Told = tuple[Reason, str]


def rotation_part(observed: Observed, plan: Plan, now: datetime, settled: bool) -> Part | None:
    """Tell whether the keyspaces in use are the spec's, and what that waits for; None without a record.

    It never makes the object unready: what is in use meanwhile is right, only not what the spec asks for.
    """
    record = plan.record
    if record is None:
        return None
    told = _workload_told(observed, plan, record, now)
    if told is not None:
        return _rotation("False", *told)
    if not settled:
        return _rotation("False", Reason.PROGRESSING, "The switch is on its way to the gateways.")
    failed = [each for each in observed.store.reclaims.items() if each[1].state is ReclaimState.FAILED]
    if failed:
        keyspace, report = min(failed, key=lambda each: each[0])
        message = f"The space of {keyspace} is not free: {report.problem}"
        return _rotation("False", Reason.RECLAIM_FAILED, message)
    if any(layer.rolled_back for layer in record.layers.values()):
        return _rotation("True", Reason.ROLLED_BACK, "A retained keyspace is in use again.")
    return _rotation("True", Reason.SWITCHED, "The keyspaces in use are those of this spec.")


def _workload_told(observed: Observed, plan: Plan, record: Record, now: datetime) -> Told | None:
    """Say what is waited for of the workload; None where all its pods run what they should."""
    seen, cache = observed.workload, plan.cache
    if seen is None or cache is None:
        return None
    current = in_use(record)
    version = cache.spec.model.version
    pods = pods_told(seen, current.workload if current else "")
    if record.waiting is not None:
        until = deadline_of(record, parse_duration_seconds(cache.spec.rotation.deadline))
        if until is None or now < until:
            return Reason.WAITING_FOR_WORKLOAD, f"Version {version} waits for the workload: {pods}."
        way_out = f" If they serve it already: {_command(observed, seen, version)}" if seen.uniform else ""
        return Reason.ROLLOUT_NOT_SEEN, f"Version {version} is not served yet: {pods}.{way_out}"
    if not seen.uniform:
        return Reason.WAITING_FOR_WORKLOAD, f"Nothing is stored: {pods}."
    if current is None or current.workload in ("", seen.uniform) or version == AUTO:
        return None
    return Reason.WORKLOAD_CHANGED, (
        f"Nothing is stored: {pods}, not what version {current.version} was made by."
        f" Change spec.model.version; or, if they serve the same: {_command(observed, seen, version)}"
    )


def _command(observed: Observed, seen: WorkloadSeen, version: str) -> str:
    """Return what to type to vouch for the pods."""
    namespace = observed.document["metadata"]["namespace"]
    annotation = serves_annotation(seen.uniform, version)
    return f"kubectl -n {namespace} annotate --overwrite icache {observed.name} {annotation}"


def pods_told(seen: WorkloadSeen, expected: str) -> str:
    """Describe the pods of a workload, as part of a sentence."""
    if seen.problem:
        return seen.problem
    if not seen.pods:
        return "there is no pod of it"
    if seen.uniform:
        count = seen.pods[seen.uniform]
        return f"all of its {count} pods run {seen.uniform}" if count > 1 else f"its pod runs {seen.uniform}"
    counts = sorted(seen.pods.items(), key=lambda item: (item[0] != expected, item[0]))
    runs = ", ".join(f"{count} run {identity}" for identity, count in counts[:IDENTITIES_TOLD])
    return f"its pods differ: {runs}"


def _rotation(status: Literal["True", "False"], reason: Reason, message: str) -> Part:
    return Part(ConditionType.ROTATION_COMPLETE, status, reason, message)
