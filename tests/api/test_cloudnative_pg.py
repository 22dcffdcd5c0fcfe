"""PostgreSQL that CloudNativePG runs for an object: what it is given, and what is made of what it says."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import CLOUDNATIVE_PG_KINDS, CLUSTERS, DATABASES, SECRETS, Manifest
from cachewright.render.metadata import PRODUCT
from e2e.cluster.apiserver import ApiServer
from tests.api.cloudnative_pg import install, remove
from tests.api.harness import Harness
from tests.support.caches import SPEC, cache_document

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

POSTGRES = {
    "provider": "CloudNativePG",
    "instances": 3,
    "storage": {"size": "1Gi", "storageClassName": "fast"},
    "nodeSelector": {"disk": "ssd"},
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
    "tolerations": [{"key": "db", "operator": "Exists"}],
}
STORES = {**SPEC["stores"], "postgres": {"managed": POSTGRES}}
LAYERS = {"exact": {}, "semantic": {"store": "Postgres"}, "embedding": {"cold": "Postgres"}}
CLUSTERED = cache_document(spec={"stores": STORES, "layers": LAYERS, "embedder": {"builtin": {}}})

NAME = "demo-postgres"


@pytest.fixture
def harness(api_server: ApiServer, kube_api: KubeApi, namespace: str) -> Iterator[Harness]:
    """An operator whose passes the test runs, on a server that knows nothing of CloudNativePG."""
    yield Harness(api_server, kube_api, namespace)
    remove(api_server)


def say(harness: Harness, kind: str, **status: Any) -> None:
    """Write a status as CloudNativePG does."""
    harness.patch(f"{kind}.postgresql.cnpg.io/{NAME}", {"status": status}, "--subresource=status")


async def serve(harness: Harness) -> None:
    """Have all servers run, and the database be there."""
    await harness.settle()
    say(harness, "cluster", readyInstances=3, instances=3, phase="Cluster in healthy state")
    say(harness, "database", applied=True)
    await harness.settle()


async def ready(harness: Harness, kind: str = "Ready") -> Manifest:
    """Return one condition whole."""
    conditions = (await harness.cache())["status"]["conditions"]
    found: Manifest = next(each for each in conditions if each["type"] == kind)
    return found


async def clustered(harness: Harness) -> dict[str, Manifest]:
    """Read what CloudNativePG was given, by kind."""
    found = [
        (kind.kind, each)
        for kind in CLOUDNATIVE_PG_KINDS
        for each in await harness.api.list(kind, harness.namespace)
    ]
    return {
        kind: each
        for kind, each in found
        if each["metadata"]["labels"]["app.kubernetes.io/managed-by"] == PRODUCT
    }


async def test_without_cloudnative_pg_it_is_said_and_nothing_is_half_made(harness: Harness) -> None:
    """Named as what is missing, looked for again each minute, and gone on with once it is there."""
    harness.apply(CLUSTERED)
    outcome = await harness.reconcile()
    assert outcome.requeue_after_seconds == 60
    assert await harness.children() == {}
    assert (await harness.conditions())["StoresReady"] == "False ProviderMissing"
    assert (await harness.conditions())["Stalled"] == "True ProviderMissing"
    assert "install CloudNativePG 1.26 or newer" in (await ready(harness))["message"]
    install(harness.server)
    await serve(harness)
    assert (await harness.conditions())["Ready"] == "True Ready"


async def test_what_cloudnative_pg_is_given_is_kept_and_goes_with_the_object(harness: Harness) -> None:
    """At rest nothing is written; edits are undone; the password stands in one Secret, of the right type."""
    install(harness.server)
    harness.apply(CLUSTERED)
    await serve(harness)
    given = await clustered(harness)
    spec = given["Cluster"]["spec"]
    assert (spec["instances"], spec["storage"]["size"], spec["storage"]["storageClass"]) == (3, "1Gi", "fast")
    assert spec["affinity"] == {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "db", "operator": "Exists"}],
        "additionalPodAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []},
    }
    assert given["Database"]["spec"]["extensions"] == [{"name": "vector", "ensure": "present"}]
    assert not any(
        kind in {"StatefulSet", "Service"} and name == NAME for kind, name in await harness.children()
    )
    secret = await harness.child(SECRETS, NAME)
    assert secret["type"] == "kubernetes.io/basic-auth"
    password = base64.b64decode(secret["data"]["password"]).decode()
    dsn = base64.b64decode(secret["data"]["dsn"]).decode()
    host = f"demo-postgres-rw.{harness.namespace}.svc:5432"
    assert dsn == f"postgresql://cachewright:{password}@{host}/cachewright?sslmode=require"
    assert password not in json.dumps(given) + await harness.everything_but_secrets()
    before = {kind: each["metadata"]["resourceVersion"] for kind, each in given.items()}
    harness.restart()
    outcome = [await harness.reconcile() for _ in range(5)][-1]
    assert harness.kube.writes == []
    assert {each.kind for each in outcome.watched} == {"Cluster", "Database"}
    now = await clustered(harness)
    assert {kind: each["metadata"]["resourceVersion"] for kind, each in now.items()} == before
    harness.patch(
        f"cluster.postgresql.cnpg.io/{NAME}", {"spec": {"instances": 1, "enableSuperuserAccess": True}}
    )
    harness.kubectl("delete", f"database.postgresql.cnpg.io/{NAME}")
    await serve(harness)
    mended = await clustered(harness)
    assert mended["Cluster"]["spec"] == {**spec, "enableSuperuserAccess": True}, (
        "what we say nothing of stays"
    )
    assert mended["Database"]["spec"] == given["Database"]["spec"]
    harness.kubectl("delete", "icache/demo", "--cascade=foreground", "--wait=false")
    harness.kubectl("delete", f"cluster.postgresql.cnpg.io/{NAME}", f"database.postgresql.cnpg.io/{NAME}")
    harness.kube.writes.clear()
    await harness.reconcile()
    assert harness.kube.writes == [], "nothing is brought back that goes with the object"


async def test_status_follows_what_cloudnative_pg_says(harness: Harness) -> None:
    """No server, no database, a server less, a volume that grows: only the first two make it unready."""
    install(harness.server)
    harness.apply(CLUSTERED)
    await harness.settle()
    say(harness, "cluster", readyInstances=0, phase="Setting up primary")
    await harness.settle()
    assert (await ready(harness, "StoresReady"))["message"] == (
        "Cluster demo-postgres has 0 of 3 instances ready: Setting up primary."
    )
    say(harness, "cluster", readyInstances=3, phase="Cluster in healthy state")
    say(harness, "database", applied=False, message='extension "vector" is not available')
    await harness.settle()
    assert (await ready(harness))["message"] == (
        'Database demo-postgres is not there yet: extension "vector" is not available.'
    )
    say(harness, "database", applied=True, message="")
    say(harness, "cluster", readyInstances=2, phase="Failing over")
    await harness.settle()
    assert (await harness.conditions())["StoresReady"] == "False StoreDegraded"
    assert (await harness.conditions())["Ready"] == "True Ready"
    assert (await ready(harness, "StoresReady"))[
        "message"
    ] == "PostgreSQL: 2 of 3 instances are ready: Failing over."
    say(harness, "cluster", readyInstances=3, phase="Cluster in healthy state")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{NAME}-1", "labels": {"cnpg.io/cluster": NAME}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    harness.kubectl("apply", "-f", "-", stdin=json.dumps(claim))
    harness.bind(claim)
    await harness.settle()
    assert (await harness.conditions())["StoresSized"] == "True Sized"
    harness.patch(
        "icache/demo", {"spec": {"stores": {"postgres": {"managed": {"storage": {"size": "2Gi"}}}}}}
    )
    await harness.settle()
    assert (await ready(harness, "StoresSized"))[
        "message"
    ] == "Volume claim demo-postgres-1 grows from 1Gi to 2Gi."
    assert (await harness.child(CLUSTERS, NAME))["spec"]["storage"]["size"] == "2Gi"
    harness.patch(f"cluster.postgresql.cnpg.io/{NAME}", {"spec": {"storage": {"size": "3Gi"}}})
    await harness.settle()
    assert "Cluster demo-postgres asks for 3Gi" in (await ready(harness))["message"]
    harness.patch(
        "icache/demo",
        {"spec": {"layers": {"semantic": None, "embedding": None}, "stores": {"postgres": None}}},
    )
    await harness.settle()
    assert await clustered(harness) == {}, "taken out, it goes with its volumes"
    assert await harness.api.get(DATABASES, harness.namespace, NAME) is None
    assert (await harness.conditions())["Ready"] == "True Ready"
