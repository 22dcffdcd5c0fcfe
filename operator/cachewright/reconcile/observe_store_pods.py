"""Which pods run the managed stores, and since when they are ready: a digest, another one after each restart.

Called by observe. Gateways are asked to try their layers whenever it changes, by their next look at Redis.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.names import LABEL_CACHE, LABEL_CLOUDNATIVE_PG_CLUSTER, LABEL_COMPONENT, postgres_name
from cachewright.api.stores import is_clustered
from cachewright.errors import KubeForbidden
from cachewright.kube.protocol import PODS, KubeClient, Manifest

COMPONENTS: Final = ("postgres", "qdrant", "redis")

TAKES_WRITES: Final = "cnpg.io/instanceRole=primary"
"""Which pod of a Cluster of CloudNativePG's matters to us."""

DIGEST_CHARS: Final = 16


async def see_store_pods(kube: KubeClient, namespace: str, name: str, spec: InferenceCacheSpec | None) -> str:
    """Return the digest for one object; empty where no managed store has a ready pod, or none may be seen."""
    if spec is None or not _runs_stores(spec):
        return ""
    selectors = [f"{LABEL_CACHE}={name},{LABEL_COMPONENT} in ({','.join(COMPONENTS)})"]
    if is_clustered(spec.stores):
        selectors.append(f"{LABEL_CLOUDNATIVE_PG_CLUSTER}={postgres_name(name)},{TAKES_WRITES}")
    try:
        found = [await kube.list(PODS, namespace, selector) for selector in selectors]
        return digest_of_pods([pod for pods in found for pod in pods])
    except KubeForbidden:
        return ""


def digest_of_pods(pods: list[Manifest]) -> str:
    """Digest who is ready, since when, and after how many restarts; pods that are not ready are left out."""
    ready = sorted(fact for pod in pods if (fact := _ready_fact(pod)))
    return hashlib.sha256("\n".join(ready).encode()).hexdigest()[:DIGEST_CHARS] if ready else ""


def _runs_stores(spec: InferenceCacheSpec) -> bool:
    stores = spec.stores
    others = [store.managed for store in (stores.qdrant, stores.postgres) if store is not None]
    return stores.redis.managed is not None or any(managed is not None for managed in others)


def _ready_fact(pod: Manifest) -> str:
    status = pod.get("status") or {}
    since = next(
        (
            str(each.get("lastTransitionTime"))
            for each in status.get("conditions") or []
            if each["type"] == "Ready" and each["status"] == "True"
        ),
        "",
    )
    restarts = sum(int(each.get("restartCount", 0)) for each in status.get("containerStatuses") or [])
    return f"{pod['metadata']['uid']} {restarts} {since}" if since else ""
