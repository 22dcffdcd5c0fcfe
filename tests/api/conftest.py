"""One real kube-apiserver with etcd for the whole API tier, and a namespace of its own for each test."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from e2e.cluster.apiserver import ApiServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """Start the API server once; tests share it and keep to their own namespaces."""
    with ApiServer() as server:
        yield server


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
