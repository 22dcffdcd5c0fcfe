"""The chart installed, upgraded and removed on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cluster import binaries
from e2e.cluster.apiserver import ApiServer
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import wait_until
from tests.chart.helm import Helm, Manifest, of_kind

pytestmark = pytest.mark.api

CRD = "inferencecaches.cachewright.dev"
RIGHTS_SECONDS = 30.0
OPERATOR = "system:serviceaccount:cachewright-system:cachewright"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """Start an API server."""
    with ApiServer() as started:
        yield started


@pytest.fixture
def helm(server: ApiServer) -> Iterator[Helm]:
    """Give Helm an administrator's rights on the server, and leave no release and no CRD to the next test."""
    helm = Helm(binaries.path("helm"), server.kubeconfig)
    yield helm
    for release in helm.releases("cachewright-system"):
        helm.uninstall(release, "cachewright-system")
    server.kubectl("delete", "crd", CRD, "--ignore-not-found", "--timeout=30s")


def install(helm: Helm, values: dict[str, Any] | None = None) -> str:
    """Install or upgrade as the README says; return the notes."""
    return helm.install("cachewright", "cachewright-system", values)


def fetch(server: ApiServer, manifest: Manifest) -> Manifest:
    """Read one rendered object back."""
    metadata = manifest["metadata"]
    where = ["-n", metadata["namespace"]] if "namespace" in metadata else []
    found: Manifest = json.loads(
        server.kubectl("get", manifest["kind"], metadata["name"], *where, "-o", "json")
    )
    return found


def example_of(notes: str) -> str:
    """Cut the example out of the notes, as the reader's shell would: up to a line that is just the word."""
    _, _, rest = notes.partition("<<'YAML'\n")
    body, found, _ = rest.partition("\nYAML\n")
    assert found, notes
    return body


def can(server: ApiServer, verb: str, resource: str, namespace: str, subresource: str = "") -> bool:
    """Ask the server whether the operator may do something."""
    question = [verb, resource, "-n", namespace, f"--as={OPERATOR}", f"--subresource={subresource}"]
    try:
        answer = server.kubectl("auth", "can-i", *question)
    except ClusterError:
        return False
    return answer.strip() == "yes"


def wait_for_rights(server: ApiServer, namespace: str) -> None:
    """Wait until the server goes by the rights that were just installed; it hears of them a moment later."""
    wait_until(lambda: can(server, "watch", CRD, namespace), "the operator's rights count", RIGHTS_SECONDS)


def test_install_upgrade_and_uninstall(server: ApiServer, helm: Helm) -> None:
    """Install creates every object, a second run changes none, uninstall leaves the CRD and its objects."""
    rendered = helm.manifests(release="cachewright")
    notes = install(helm)
    server.kubectl("wait", "--for=condition=Established", f"crd/{CRD}", "--timeout=30s")
    before = [fetch(server, manifest) for manifest in rendered]

    install(helm)
    after = [fetch(server, manifest) for manifest in rendered]
    assert [m["metadata"]["resourceVersion"] for m in after] == [
        m["metadata"]["resourceVersion"] for m in before
    ]

    server.kubectl("apply", "-f", "-", stdin=example_of(notes))
    helm.uninstall("cachewright", "cachewright-system")
    for manifest in rendered:
        if manifest["kind"] != "CustomResourceDefinition":
            with pytest.raises(ClusterError, match="NotFound"):
                fetch(server, manifest)
    assert "support-bot" in server.kubectl("get", "icache", "-n", "default", "-o", "name")

    install(helm)
    assert "support-bot" in server.kubectl("get", "icache", "-n", "default", "-o", "name")


def test_uninstall_takes_the_crd_along_when_told(server: ApiServer, helm: Helm) -> None:
    """`crds.keep: false` leaves nothing behind."""
    install(helm, {"crds": {"keep": False}})
    helm.uninstall("cachewright", "cachewright-system")
    server.kubectl("wait", "--for=delete", f"crd/{CRD}", "--timeout=30s")


def test_a_namespaced_install_reaches_its_namespaces_alone(server: ApiServer, helm: Helm) -> None:
    """The operator may work in the watched namespaces and see nothing of any other."""
    for namespace in ("ml", "other"):
        server.kubectl("create", "namespace", namespace)
    notes = install(helm, {"watchNamespaces": ["ml"]})
    assert "kubectl -n ml apply" in notes
    wait_for_rights(server, "ml")
    for verb, resource in [("watch", "inferencecaches.cachewright.dev"), ("get", "secrets")]:
        assert can(server, verb, resource, "ml")
        assert not can(server, verb, resource, "other")
        assert not can(server, verb, resource, "cachewright-system")
    assert can(server, "create", "leases.coordination.k8s.io", "cachewright-system")
    assert not can(server, "get", "leases.coordination.k8s.io/another", "cachewright-system")
    assert can(server, "get", "leases.coordination.k8s.io/cachewright", "cachewright-system")


def test_a_cluster_wide_install_reaches_every_namespace(server: ApiServer, helm: Helm) -> None:
    """Without watched namespaces the operator works everywhere, and still holds no other right."""
    install(helm)
    wait_for_rights(server, "default")
    assert can(server, "patch", "inferencecaches.cachewright.dev", "default", "status")
    assert not can(server, "update", "inferencecaches.cachewright.dev", "default")
    assert not can(server, "delete", "pods", "default")
    assert not can(server, "delete", "inferencecaches.cachewright.dev", "default")


def test_the_operators_pod_is_admitted_where_only_restricted_pods_are(server: ApiServer, helm: Helm) -> None:
    """The API server's own Pod Security admission accepts the pod and refuses one with a right more."""
    server.kubectl("create", "namespace", "strict")
    server.kubectl("label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
    (deployment,) = of_kind(helm.manifests(), "Deployment")
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "operator", "namespace": "strict"},
        "spec": deployment["spec"]["template"]["spec"],
    }
    server.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(ClusterError, match="violates PodSecurity"):
        server.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
