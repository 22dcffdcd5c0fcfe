"""The embedder and the embedding layer on a real API server: sidecar, record, Secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import CONFIG_MAPS, DEPLOYMENTS
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import Harness
from tests.support.caches import SPEC, cache_document

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

POSTGRES = {"external": {"dsnSecretRef": {"name": "pg", "key": "dsn"}}}


@pytest.fixture
def harness(api_server: ApiServer, kube_api: KubeApi, namespace: str) -> Harness:
    """An operator whose passes the test runs."""
    return Harness(api_server, kube_api, namespace)


@pytest.fixture
async def settled(harness: Harness) -> Harness:
    """An object with the built-in embedder and the embedding layer beside the exact one, at rest."""
    layers = SPEC["layers"] | {"embedding": {}}
    harness.apply(cache_document(spec={"embedder": {"builtin": {}}, "layers": layers}))
    await harness.settle()
    return harness


async def keyspaces(harness: Harness) -> dict[str, str]:
    """Return the keyspace in use of each layer."""
    record = json.loads((await harness.child(CONFIG_MAPS, "demo-record"))["data"]["record.json"])
    return {name: layer["keyspace"] for name, layer in record["layers"].items()}


async def test_the_sidecar_is_accepted_and_never_written_again(settled: Harness) -> None:
    """The API server takes the container that keeps running, and what it adds to it is no drift."""
    deployment = await settled.child(DEPLOYMENTS, "demo-gateway")
    (sidecar,) = deployment["spec"]["template"]["spec"]["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("embedder", "Always")
    assert (await settled.conditions())["Ready"] == "True Ready"
    settled.kube.writes.clear()
    for _ in range(3):
        await settled.reconcile()
    assert settled.kube.writes == []


async def test_a_bump_of_the_model_keeps_every_vector(settled: Harness) -> None:
    """The exact layer moves, the embedding layer does not; another sharing moves it alone."""
    before = await keyspaces(settled)
    settled.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
    await settled.settle()
    bumped = await keyspaces(settled)
    assert bumped["Embedding"] == before["Embedding"]
    assert bumped["Exact"] != before["Exact"]
    settled.patch("icache/demo", {"spec": {"layers": {"embedding": {"shareAcrossTenants": True}}}})
    await settled.settle()
    shared = await keyspaces(settled)
    assert shared["Embedding"] != before["Embedding"]
    assert shared["Exact"] == bumped["Exact"]


async def test_another_embedder_is_another_keyspace(settled: Harness) -> None:
    """The sidecar goes, and so do the vectors of its model; answers stay."""
    before = await keyspaces(settled)
    endpoint: dict[str, Any] = {"url": "http://tei:80/v1", "model": "m", "dimensions": 8, "maxTokens": 512}
    settled.patch("icache/demo", {"spec": {"embedder": {"builtin": None, **endpoint}}})
    await settled.settle()
    after = await keyspaces(settled)
    assert after["Embedding"] != before["Embedding"]
    assert after["Exact"] == before["Exact"]
    deployment = await settled.child(DEPLOYMENTS, "demo-gateway")
    assert "initContainers" not in deployment["spec"]["template"]["spec"]


async def test_a_database_without_its_secret_is_told_by_field(settled: Harness) -> None:
    """The last good state keeps running, and the sentence names what is missing."""
    settled.patch(
        "icache/demo",
        {"spec": {"stores": {"postgres": POSTGRES}, "layers": {"embedding": {"cold": "Postgres"}}}},
    )
    await settled.reconcile()
    conditions = (await settled.cache())["status"]["conditions"]
    (ready,) = [condition for condition in conditions if condition["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "SecretNotFound")
    assert "spec.stores.postgres.external.dsnSecretRef: Secret pg does not exist" in ready["message"]
    deployment = await settled.child(DEPLOYMENTS, "demo-gateway")
    assert deployment["metadata"]["generation"] == 1
