"""Look at the workload and the pods of an engine. IO; called by observe."""

from __future__ import annotations

from cachewright.errors import KubeForbidden
from cachewright.kube.protocol import PODS, KubeClient
from cachewright.reconcile.observe_pods import OWN_SELECTOR, label_selector
from cachewright.reconcile.prefix.seen import PrefixSeen, living
from cachewright.reconcile.prefix.wish import PrefixWish


async def see_prefix(
    kube: KubeClient, namespace: str, wish: PrefixWish | None
) -> tuple[PrefixSeen | None, str]:
    """Return what the engine's pods run, and the labels they were found by; None without the layer."""
    if wish is None:
        return None, ""
    ref = wish.ref
    try:
        workload = None
        if ref.api_version == "apps/v1" and ref.kind in OWN_SELECTOR:
            workload = await kube.get(OWN_SELECTOR[ref.kind], namespace, ref.name)
            if workload is None:
                return PrefixSeen(problem=f"{wish.workload} does not exist"), ""
        if ref.pod_selector is not None:
            selector = label_selector({"matchLabels": ref.pod_selector.match_labels})
        else:
            selector = label_selector(workload["spec"]["selector"]) if workload is not None else ""
        pods = await kube.list(PODS, namespace, selector) if selector else []
    except KubeForbidden as e:
        return PrefixSeen(problem=f"the operator may not look at {wish.workload} ({e})"), ""
    return PrefixSeen(workload, living(pods)), selector
