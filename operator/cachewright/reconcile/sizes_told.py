"""The condition `StoresSized`: whether managed stores have the room they were given. Pure; for status."""

from __future__ import annotations

from collections.abc import Iterator

from cachewright.api.conditions import ConditionType, Reason
from cachewright.api.names import LABEL_CLOUDNATIVE_PG_CLUSTER, postgres_name
from cachewright.api.quantities import parse_quantity
from cachewright.reconcile.readiness import Part
from cachewright.reconcile.state import Manifest, Observed


def sizes_part(observed: Observed) -> Part | None:
    """Tell whether every volume is as large as asked for; None where there is no volume yet.

    It never makes the object unready: a store works on while its volume grows.
    """
    claims = sorted(volume_claims(observed), key=lambda claim: str(claim["metadata"]["name"]))
    bound = [claim for claim in claims if capacity_of(claim)]
    if not bound:
        return None
    for claim in bound:
        wanted, capacity = _wanted(observed, claim), capacity_of(claim)
        if parse_quantity(capacity) < parse_quantity(wanted):
            message = f"Volume claim {claim['metadata']['name']} grows from {capacity} to {wanted}"
            message += f"{_obstacle(claim)}."
            return Part(ConditionType.STORES_SIZED, "False", Reason.VOLUME_RESIZING, message)
    message = "Volumes have the sizes that were asked for."
    return Part(ConditionType.STORES_SIZED, "True", Reason.SIZED, message)


def volume_claims(observed: Observed) -> Iterator[Manifest]:
    """Yield the volume claims of this object's stores."""
    yield from (child for (kind, _), child in observed.children.items() if kind == "PersistentVolumeClaim")
    if observed.cluster is not None:
        yield from observed.cluster.volumes


def _wanted(observed: Observed, claim: Manifest) -> str:
    """Return the size that a claim is to have: CloudNativePG may not have asked for it yet."""
    cluster = observed.children.get(("Cluster", postgres_name(observed.name)))
    if cluster is None or claim["metadata"].get("labels", {}).get(LABEL_CLOUDNATIVE_PG_CLUSTER) is None:
        return requested_storage(claim)
    return str(cluster["spec"]["storage"]["size"])


def requested_storage(claim: Manifest) -> str:
    """Return the size that a claim asks for."""
    return str(claim["spec"]["resources"]["requests"]["storage"])


def capacity_of(claim: Manifest) -> str:
    """Return the size that a claim's volume has; empty where it has none yet."""
    return str(((claim.get("status") or {}).get("capacity") or {}).get("storage", ""))


def _obstacle(claim: Manifest) -> str:
    """Say what a volume's driver waits for, where it says so."""
    status = claim.get("status") or {}
    allocated = (status.get("allocatedResourceStatuses") or {}).get("storage", "")
    if allocated.endswith("Infeasible"):
        return ", which its driver cannot do"
    waiting = {str(each.get("type")) for each in status.get("conditions") or [] if each["status"] == "True"}
    if "FileSystemResizePending" in waiting:
        return "; its file system grows when the pod is started next"
    return ""
