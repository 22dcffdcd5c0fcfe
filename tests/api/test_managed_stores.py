"""Stores with volumes, which the operator runs, on a real API server: written, kept, mended and grown."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import SECRETS, STATEFUL_SETS, VOLUME_CLAIMS
from cachewright.stores.probes import ProbeReport, ProbeState
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import SETTINGS, Harness
from tests.support.caches import SPEC, cache_document

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

KEPT = {"managed": {"storage": {"size": "1Gi", "storageClassName": "growing"}}}
STORES = {**SPEC["stores"], "qdrant": KEPT, "postgres": KEPT}
LAYERS = {"exact": {}, "semantic": {"store": "Qdrant"}, "embedding": {"cold": "Postgres"}}
MANAGED = cache_document(spec={"stores": STORES, "layers": LAYERS, "embedder": {"builtin": {}}})

NAMES = ("demo-postgres", "demo-qdrant")
OURS = {
    (kind, name)
    for name in NAMES
    for kind in (
        "ConfigMap",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "Secret",
        "Service",
        "StatefulSet",
    )
}

EDITS: dict[str, dict[str, Any]] = {
    "statefulset/demo-qdrant": {"spec": {"replicas": 0}},
    "service/demo-qdrant": {"spec": {"selector": {"app": "evil"}}},
    "configmap/demo-qdrant": {"data": {"qdrant.yaml": "telemetry_disabled: false"}},
    "configmap/demo-postgres": {"data": {"pg_hba.conf": "host all all all trust"}},
    "statefulset/demo-postgres": {"spec": {"template": {"metadata": {"annotations": None}}}},
    "networkpolicy/demo-qdrant": {"spec": {"ingress": [{}]}},
    "poddisruptionbudget/demo-qdrant": {"spec": {"maxUnavailable": 2}},
    "persistentvolumeclaim/demo-qdrant": {"metadata": {"labels": {"cachewright.dev/cache": None}}},
}


@pytest.fixture(scope="module", autouse=True)
def classes(api_server: ApiServer) -> None:
    """Make one StorageClass whose volumes can grow, and one whose volumes cannot."""
    for name, grows in (("growing", True), ("rigid", False)):
        document = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": "example.com/none",
            "allowVolumeExpansion": grows,
        }
        api_server.kubectl("apply", "-f", "-", stdin=json.dumps(document))


@pytest.fixture
def harness(api_server: ApiServer, kube_api: KubeApi, namespace: str) -> Harness:
    """An operator whose passes the test runs."""
    return Harness(api_server, kube_api, namespace)


async def ours(harness: Harness) -> set[tuple[str, str]]:
    """List the children that belong to managed vector stores."""
    return {identity for identity in await harness.children() if identity[1] in NAMES}


def _decoded(value: str) -> str:
    return base64.b64decode(value).decode()


async def test_children_are_made_kept_and_mended(harness: Harness) -> None:
    """At rest nothing is written; what is deleted or edited comes back; the key stands in one place."""
    harness.apply(MANAGED)
    await harness.settle()
    assert await ours(harness) == OURS
    assert (await harness.conditions())["Ready"] == "True Ready"
    assert (await harness.conditions())["StoresSized"] == "True Sized"
    key = (await harness.child(SECRETS, "demo-qdrant"))["data"]["api-key"]
    password = (await harness.child(SECRETS, "demo-postgres"))["data"]["password"]
    visible = await harness.everything_but_secrets()
    assert not any(text in visible for text in (key, password, *map(_decoded, (key, password))))
    before = await harness.versions()
    harness.restart()
    for _ in range(5):
        await harness.reconcile()
    assert harness.kube.writes == []
    assert await harness.versions() == before
    specs = {name: child.get("spec") for name, child in (await harness.children()).items()}
    for target, patch in EDITS.items():
        harness.patch(target, patch)
    await harness.settle()
    assert {name: child.get("spec") for name, child in (await harness.children()).items()} == specs
    harness.kubectl("delete", *(f"{kind}/{name}" for kind, name in sorted(OURS) if kind != "Secret"))
    await harness.settle()
    assert await ours(harness) == OURS
    assert (await harness.child(SECRETS, "demo-qdrant"))["data"]["api-key"] == key
    harness.kubectl("delete", "icache/demo", "--cascade=foreground", "--wait=false")
    harness.kubectl("delete", *(f"{kind}/{name}" for kind, name in sorted(OURS)))
    harness.kube.writes.clear()
    await harness.reconcile()
    assert harness.kube.writes == [], "nothing is brought back that goes with the object"


async def test_a_stores_pod_that_comes_back_is_tried_before_the_object_is_ready(harness: Harness) -> None:
    """Gateways are asked once; what they said before counts no more, and their next word does."""
    harness.apply(MANAGED)
    await harness.settle()
    cache_id = (await harness.cache())["status"]["cacheID"]
    labels = {"cachewright.dev/cache": "demo", "app.kubernetes.io/component": "qdrant"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo-qdrant-0", "labels": labels}}
    containers = [{"name": "qdrant", "image": "qdrant"}]
    spec = {"containers": containers, "automountServiceAccountToken": False}
    harness.kubectl("create", "-f", "-", stdin=json.dumps({**pod, "spec": spec}))

    async def report(request: str) -> None:
        well = ProbeReport(ProbeState.WELL, at=time.time(), request=request)
        for layer in ("Exact", "Semantic", "Embedding"):
            await harness.store.write_probe(cache_id, layer, well)

    await report("")
    asked = {""}
    for second in (1, 2):
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": f"2026-11-30T12:00:0{second}Z"}
        harness.patch("pod/demo-qdrant-0", {"status": {"conditions": [ready]}}, "--subresource=status")
        outcome = await harness.reconcile()
        assert outcome.requeue_after_seconds == SETTINGS.await_probes_seconds
        assert (await harness.conditions())["Ready"] == "False Progressing"
        request = await harness.store.read_probe_request(cache_id)
        assert request not in asked
        asked.add(request)
        await report(request)
        await harness.reconcile()
        assert (await harness.conditions())["Ready"] == "True Ready"
        before = len(harness.kube.writes)
        await harness.reconcile()
        assert len(harness.kube.writes) == before


async def test_a_volume_grows_in_place_and_never_shrinks(harness: Harness) -> None:
    """The claim asks for more, no pod is replaced, and status tells until the volume has the size."""
    harness.apply(MANAGED)
    await harness.settle()
    set_before = await harness.child(STATEFUL_SETS, "demo-qdrant")
    size = {"spec": {"stores": {"qdrant": {"managed": {"storage": {"size": "2Gi"}}}}}}
    harness.patch("icache/demo", size)
    await harness.settle()
    claim = await harness.child(VOLUME_CLAIMS, "demo-qdrant")
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert (await harness.conditions())["StoresSized"] == "False VolumeResizing"
    assert (await harness.conditions())["Ready"] == "True Ready"
    harness.bind(claim)
    await harness.settle()
    assert (await harness.conditions())["StoresSized"] == "True Sized"
    assert await harness.child(STATEFUL_SETS, "demo-qdrant") == set_before
    # Grown behind our back it would have to shrink, which no volume does.
    harness.patch(
        "persistentvolumeclaim/demo-qdrant", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    )
    await harness.settle()
    assert (await harness.conditions())["Stalled"] == "True ImmutableField"
    ready = next(c for c in (await harness.cache())["status"]["conditions"] if c["type"] == "Ready")
    assert "set it to 3Gi or more" in ready["message"]


async def test_a_volume_that_cannot_grow_is_told(harness: Harness) -> None:
    """The API server's refusal is no lack of rights: the reason says what to do, and the store runs on."""
    rigid = {"managed": {"storage": {"size": "1Gi", "storageClassName": "rigid"}}}
    harness.apply(cache_document(spec={"stores": {**SPEC["stores"], "qdrant": rigid}}))
    await harness.settle()
    assert (await harness.conditions())["Ready"] == "True Ready"
    size = {"spec": {"stores": {"qdrant": {"managed": {"storage": {"size": "2Gi"}}}}}}
    harness.patch("icache/demo", size)
    await harness.reconcile()
    assert (await harness.conditions())["Stalled"] == "True VolumeNotExpandable"
