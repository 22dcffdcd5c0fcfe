"""Look at what CloudNativePG runs for an object: Cluster, Database, volume claims. IO; called by observe.

These kinds exist only where CloudNativePG is installed, so they are asked for only where they are wanted, or
where what is left of them says that they were.
"""

from __future__ import annotations

from collections.abc import Mapping

from cachewright.api.conditions import Reason
from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.names import LABEL_CACHE, LABEL_CLOUDNATIVE_PG_CLUSTER, postgres_name
from cachewright.api.stores import is_clustered
from cachewright.errors import KubeForbidden, KubeNotFound
from cachewright.kube.protocol import CLOUDNATIVE_PG_KINDS, VOLUME_CLAIMS, KubeClient
from cachewright.reconcile.references import Reference
from cachewright.reconcile.state import ChildId, ClusterSeen, Finding, Manifest
from cachewright.render.cloudnative_pg import SECRET_TYPE

_MISSING = (
    "spec.stores.postgres.managed.provider is CloudNativePG, and the API server knows no {api_version}"
    " {kind}: install CloudNativePG 1.26 or newer, or take a PostgreSQL of your own as external."
)


async def see_cluster(
    kube: KubeClient,
    namespace: str,
    cache_name: str,
    spec: InferenceCacheSpec | None,
    children: Mapping[ChildId, Manifest],
) -> tuple[ClusterSeen | None, dict[ChildId, Manifest]]:
    """Return what there is to know, and Cluster and Database; None where none is nor was wanted."""
    if spec is None:
        return None, {}
    name, is_wanted = postgres_name(cache_name), is_clustered(spec.stores)
    left = children.get(("Secret", name), {}).get("type") == SECRET_TYPE
    if not is_wanted and not left:
        return None, {}
    found: dict[ChildId, Manifest] = {}
    try:
        for kind in CLOUDNATIVE_PG_KINDS:
            try:
                items = await kube.list(kind, namespace, f"{LABEL_CACHE}={cache_name}")
            except KubeNotFound:
                if not is_wanted:
                    return None, {}
                message = _MISSING.format(api_version=kind.api_version, kind=kind.kind)
                return ClusterSeen(Finding(Reason.PROVIDER_MISSING, message, stalled=True)), {}
            for item in items:
                typed = {**item, "apiVersion": kind.api_version, "kind": kind.kind}
                found[kind.kind, str(item["metadata"]["name"])] = typed
        claims = (
            await kube.list(VOLUME_CLAIMS, namespace, f"{LABEL_CLOUDNATIVE_PG_CLUSTER}={name}")
            if is_wanted
            else []
        )
    except KubeForbidden as e:
        message = f"The operator may not look at what CloudNativePG runs: {e}"
        return ClusterSeen(Finding(Reason.FORBIDDEN, message, stalled=True)), {}
    return ClusterSeen(volumes=tuple(claims)), found


def watched_cluster(
    cache_name: str, spec: InferenceCacheSpec | None, cluster: ClusterSeen | None
) -> frozenset[Reference]:
    """List what is to be watched for this object: not every API server knows these kinds."""
    if spec is None or cluster is None or cluster.problem is not None or not is_clustered(spec.stores):
        return frozenset()
    mine = f"{LABEL_CACHE}={cache_name}"
    return frozenset({Reference("Cluster", label_selector=mine), Reference("Database", label_selector=mine)})
