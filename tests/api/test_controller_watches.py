"""The operator as a process with nothing but the table's rights: it sees what happens, and repairs it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cachewright.kube.client import collection_path
from cachewright.kube.protocol import (
    CHILD_KINDS,
    CLOUDNATIVE_PG_KINDS,
    INFERENCE_CACHES,
    PODS,
    SECRETS,
    ResourceKind,
)
from e2e.cluster.apiserver import ApiServer
from tests.api.admin import Admin
from tests.api.cloudnative_pg import install, remove
from tests.api.operator_process import OperatorProcess
from tests.api.rights import user_of_cluster, user_of_namespace
from tests.support.caches import EXTERNAL_REDIS, SPEC, Document, cache_document

pytestmark = pytest.mark.api

REPAIR_SECONDS = 30
CHILDREN = [
    (kind, name)
    for kind in (*CHILD_KINDS, *CLOUDNATIVE_PG_KINDS)
    for name in {
        "ConfigMap": ["demo-record", "demo-redis", "demo-gateway"],
        "Secret": ["demo-keys", "demo-admin", "demo-redis"],
        "Service": ["demo-redis", "demo-gateway"],
        "StatefulSet": ["demo-redis"],
        "Deployment": ["demo-gateway"],
        "PersistentVolumeClaim": ["demo-qdrant"],
        "Cluster": ["demo-postgres"],
        "Database": ["demo-postgres"],
        "PodDisruptionBudget": ["demo-gateway"],
        "NetworkPolicy": ["demo-redis"],
    }[kind.kind]
]
CACHE = cache_document(
    spec={
        "stores": {
            **SPEC["stores"],
            "qdrant": {"managed": {}},
            "postgres": {"managed": {"provider": "CloudNativePG"}},
        },
        "layers": {"exact": {}, "semantic": {"store": "Qdrant"}, "embedding": {"cold": "Postgres"}},
        "embedder": {"builtin": {}},
    }
)


class Site:
    """One operator, the namespace it serves, and an administrator who looks and meddles."""

    def __init__(self, operator: OperatorProcess, admin: Admin, namespace: str, user: str) -> None:
        self.operator = operator
        self.admin = admin
        self.namespace = namespace
        self.user = user

    def path(self, kind: ResourceKind, name: str = "") -> str:
        """Return the path of an object, or of a kind's collection."""
        return f"{collection_path(kind, self.namespace)}/{name}".rstrip("/")

    def create(self, document: Document) -> None:
        """Create an InferenceCache in the served namespace."""
        metadata = {"name": document["metadata"]["name"], "namespace": self.namespace}
        answer = self.admin.create({**document, "metadata": metadata})
        assert answer.accepted, answer.message

    def read(self, kind: ResourceKind, name: str) -> dict[str, Any] | None:
        """Read an object; None where there is none."""
        answer = self.admin.request("GET", self.path(kind, name))
        return answer.body if answer.accepted else None

    def wait(self, kind: ResourceKind, name: str, what: str, condition: Any) -> None:
        """Wait until an object exists and is as wanted."""

        def holds() -> bool:
            found = self.read(kind, name)
            return found is not None and bool(condition(found))

        self.operator.wait(holds, f"{kind.kind} {name} {what}", REPAIR_SECONDS)

    def wait_for_children(self) -> None:
        """Wait until all of the object's children exist."""
        for kind, name in CHILDREN:
            self.wait(kind, name, "exists", lambda _: True)

    def reason(self, name: str) -> str:
        """Return the reason of the object's Ready condition."""
        found = self.read(INFERENCE_CACHES, name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return next((str(each["reason"]) for each in conditions if each["type"] == "Ready"), "")

    def wait_for_reason(self, name: str, *reasons: str) -> None:
        """Wait until the object's Ready condition has one of these reasons."""
        self.operator.wait(
            lambda: self.reason(name) in reasons, f"{name} says {' or '.join(reasons)}", REPAIR_SECONDS
        )


@pytest.fixture(scope="module", autouse=True)
def cloudnative_pg(api_server: ApiServer) -> Iterator[None]:
    """Have CloudNativePG's kinds there while these tests run."""
    install(api_server)
    yield
    remove(api_server)


@pytest.fixture(params=["namespaced", "cluster-wide"])
def site(
    request: pytest.FixtureRequest, api_server: ApiServer, admin: Admin, namespace: str, tmp_path: Path
) -> Iterator[Site]:
    """Run the operator under the table's Role, or its ClusterRole; any refused request fails the test."""
    user = f"operator-of-{namespace}"
    arguments = [f"--lease-namespace={namespace}"]
    if request.param == "namespaced":
        kubeconfig = user_of_namespace(api_server, user, namespace)
        arguments.append(f"--namespace={namespace}")
    else:
        kubeconfig = user_of_cluster(api_server, user, namespace)
        admin.remove_other_caches(namespace)
    with OperatorProcess(kubeconfig, tmp_path, arguments) as operator:
        operator.wait(lambda: operator.ready and operator.leads, "the operator leads", 30)
        yield Site(operator, admin, namespace, user)
        assert operator.metric("cachewright_kube_requests_total", code="403") == 0
        assert operator.exit_code is None
    refused = [e for e in api_server.audit_events(user) if e["responseStatus"]["code"] in (401, 403)]
    assert refused == []
    assert [each for each in operator.records if each["level"] in ("error", "critical")] == []


def test_the_tables_rights_are_enough(site: Site) -> None:
    """Objects are served, an error is told by an Event, a child that is not wanted any more goes."""
    site.create(CACHE)
    site.wait_for_children()
    site.wait_for_reason("demo", "StoreUnready")
    site.create(cache_document("lost", spec={"stores": EXTERNAL_REDIS}))
    site.wait_for_reason("lost", "SecretNotFound")

    def told() -> bool:
        events = site.admin.request("GET", f"/apis/events.k8s.io/v1/namespaces/{site.namespace}/events").body
        return [(e["regarding"]["name"], e["reason"], e["type"]) for e in events["items"]] == [
            ("lost", "SecretNotFound", "Warning")
        ]

    site.operator.wait(told, "the one event is written", REPAIR_SECONDS)

    one = {"spec": {"gateway": {"replicas": 1}}}
    site.admin.request("PATCH", site.path(INFERENCE_CACHES, "demo"), one, "application/merge-patch+json")
    budget = next(kind for kind in CHILD_KINDS if kind.kind == "PodDisruptionBudget")
    site.operator.wait(
        lambda: site.read(budget, "demo-gateway") is None, "the disruption budget goes", REPAIR_SECONDS
    )


def test_every_child_that_is_deleted_comes_back(site: Site) -> None:
    """Whichever child is deleted, it is made again long before the next resync."""
    site.create(CACHE)
    site.wait_for_children()
    for kind, name in CHILDREN:
        before = site.read(kind, name)
        assert before is not None
        deleted = time.monotonic()
        assert site.admin.request("DELETE", site.path(kind, name)).accepted
        uid = before["metadata"]["uid"]
        site.wait(kind, name, "is made again", lambda found, uid=uid: found["metadata"]["uid"] != uid)
        assert time.monotonic() - deleted < REPAIR_SECONDS


def test_every_child_that_loses_its_labels_gets_them_back(site: Site) -> None:
    """A child whose labels a hand removed drops out of our watch; that is seen, and mended."""
    site.create(CACHE)
    site.wait_for_children()
    for kind, name in CHILDREN:
        before = site.read(kind, name)
        assert before is not None
        patch = {"metadata": {"labels": None}}
        assert site.admin.request(
            "PATCH", site.path(kind, name), patch, "application/merge-patch+json"
        ).accepted
        labels = before["metadata"]["labels"]
        site.wait(
            kind,
            name,
            "has its labels",
            lambda found, labels=labels: found["metadata"].get("labels") == labels,
        )


def test_a_users_secret_is_noticed_when_it_comes_and_when_it_is_labelled(site: Site) -> None:
    """An object that waits for a Secret goes on when it is there and may be used, without a resync."""
    site.create(cache_document("shop", spec={"stores": EXTERNAL_REDIS}))
    site.wait_for_reason("shop", "SecretNotFound")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "my-redis", "namespace": site.namespace},
        "stringData": {"url": "redis://127.0.0.1:1/0"},
    }
    site.admin.request("POST", site.path(SECRETS), secret)
    label = {"metadata": {"labels": {"cachewright.dev/use": "true"}}}
    site.admin.request("PATCH", site.path(SECRETS, "my-redis"), label, "application/merge-patch+json")
    site.wait_for_reason("shop", "StoreUnreachable", "GatewayUnready", "Progressing")
    unlabel = {"metadata": {"labels": {"cachewright.dev/use": None}}}
    site.admin.request("PATCH", site.path(SECRETS, "my-redis"), unlabel, "application/merge-patch+json")
    site.wait_for_reason("shop", "SecretUnlabelled")


def test_only_labelled_secrets_and_config_maps_are_listed_and_watched(
    site: Site, api_server: ApiServer
) -> None:
    """Every list and watch of children asks the server for labelled objects only."""
    site.create(CACHE)
    site.wait_for_children()
    watched = set()
    for event in api_server.audit_events(site.user):
        resource = event.get("objectRef", {}).get("resource")
        if event["verb"] in ("list", "watch") and resource not in ("inferencecaches", "leases"):
            assert "labelSelector=" in event["requestURI"], event["requestURI"]
            watched.add(resource)
    assert watched == {kind.plural for kind in (*CHILD_KINDS, *CLOUDNATIVE_PG_KINDS, PODS)}


def test_the_users_object_stays_as_it_was_written(site: Site) -> None:
    """No annotation, no finalizer, and no field manager of kopf on the user's object."""
    site.create(CACHE)
    site.wait_for_reason("demo", "StoreUnready")
    found = site.read(INFERENCE_CACHES, "demo")
    assert found is not None
    assert "annotations" not in found["metadata"]
    assert "finalizers" not in found["metadata"]
    assert "kopf" not in json.dumps(found)
