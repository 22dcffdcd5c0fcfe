"""Look at the pods of a workload: found by the workload's own selector, or by the labels that the spec gives.

Called by observe, in each pass, and asks the API server itself: a pod counts from the moment it is created,
long before it can serve, until it is gone.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.model import WorkloadRef
from cachewright.errors import KubeForbidden
from cachewright.kube.protocol import DEPLOYMENTS, PODS, STATEFUL_SETS, KubeClient, Manifest
from cachewright.reconcile.wanted_record import is_fenced
from cachewright.reconcile.workload import WorkloadSeen, see_pods

OWN_SELECTOR: Final = {kind.kind: kind for kind in (DEPLOYMENTS, STATEFUL_SETS)}


async def see_workload(
    kube: KubeClient, namespace: str, spec: InferenceCacheSpec | None
) -> tuple[WorkloadSeen | None, str]:
    """Return what the pods run, and the labels they were found by; None where nothing is fenced."""
    if spec is None or spec.model.workload_ref is None or not is_fenced(spec):
        return None, ""
    ref = spec.model.workload_ref
    try:
        selector = await _selector(kube, namespace, ref)
        if not selector:
            return WorkloadSeen(problem=f"{ref.kind} {ref.name} does not exist"), ""
        pods = await kube.list(PODS, namespace, selector)
    except KubeForbidden as e:
        return WorkloadSeen(problem=f"the operator may not look at it ({e})"), ""
    return see_pods(pods, ref.container), selector


async def _selector(kube: KubeClient, namespace: str, ref: WorkloadRef) -> str:
    if ref.pod_selector is not None:
        return label_selector({"matchLabels": ref.pod_selector.match_labels})
    workload = await kube.get(OWN_SELECTOR[ref.kind], namespace, ref.name)
    return label_selector(workload["spec"]["selector"]) if workload is not None else ""


def label_selector(selector: Manifest) -> str:
    """Write a selector of an object as the query of a list."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or []:
        key, values = each["key"], ",".join(each.get("values") or [])
        match each["operator"]:
            case "Exists":
                parts.append(key)
            case "DoesNotExist":
                parts.append(f"!{key}")
            case "In":
                parts.append(f"{key} in ({values})")
            case _:
                parts.append(f"{key} notin ({values})")
    return ",".join(parts)
