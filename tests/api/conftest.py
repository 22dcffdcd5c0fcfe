"""One real kube-apiserver with etcd for the whole API tier, and a namespace of its own for each test."""

import itertools
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from e2e.cluster import binaries
from e2e.cluster.apiserver import ApiServer
from e2e.cluster.processes import wait_until
from tests.api.admin import Admin
from tests.chart.helm import Helm

CRD = Path(__file__).parents[2] / "crds" / "cachewright.dev_inferencecaches.yaml"

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """Start the API server once; tests share it and keep to their own namespaces."""
    with ApiServer() as server:
        yield server


@pytest.fixture(scope="session")
def crd(api_server: ApiServer) -> None:
    """Install the CRD."""
    install_crd(api_server)


def install_crd(server: ApiServer) -> None:
    """Install the CRD in a server, and wait until it is served."""
    server.kubectl("apply", "--server-side", "-f", str(CRD))

    def is_established() -> bool:
        # `kubectl wait` fails at once on an object that has no conditions yet.
        found = json.loads(server.kubectl("get", "crd", "inferencecaches.cachewright.dev", "-o", "json"))
        conditions = found.get("status", {}).get("conditions") or []
        return {"Established": "True"}.items() <= {
            each["type"]: each["status"] for each in conditions
        }.items()

    wait_until(is_established, "the CRD is not established", 60)


@pytest.fixture(scope="session")
def admin(api_server: ApiServer, crd: None) -> Admin:
    """Open a bare client that may do everything, with InferenceCaches served."""
    del crd
    return Admin(api_server.kubeconfig)


@pytest.fixture
def namespace(api_server: ApiServer) -> str:
    """Make a fresh namespace."""
    name = f"test-{next(_numbers)}"
    api_server.kubectl("create", "namespace", name)
    return name


@pytest.fixture
async def kube_api(api_server: ApiServer) -> AsyncIterator[KubeApi]:
    """Open the operator's own client as administrator."""
    connection = await KubeConnection.open(str(api_server.kubeconfig))
    yield KubeApi(connection)
    await connection.aclose()


@pytest.fixture(scope="session")
def prefix_policy(api_server: ApiServer) -> None:
    """Install the chart's admission policy, for good: an API server forgets parameters of one that went."""
    helm = Helm(binaries.path("helm"))
    policies = [m for m in helm.manifests() if m["kind"].startswith("MutatingAdmissionPolicy")]
    api_server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(policies))
