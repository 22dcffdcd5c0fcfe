"""The operator when the API server is silent, gone, or does not know InferenceCaches."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachewright.kube.client import collection_path
from cachewright.kube.lease import RENEW_DEADLINE_SECONDS
from cachewright.kube.protocol import CONFIG_MAPS
from e2e.cluster.apiserver import ApiServer
from tests.api.admin import Admin
from tests.api.conftest import install_crd
from tests.api.operator_process import OperatorProcess
from tests.support.caches import cache_document

pytestmark = pytest.mark.api

RECOVERY_SECONDS = 120
"""A silent API server that comes back is noticed within this time, by going on or by ending."""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Start an API server of the test's own, which it may stop and freeze."""
    with ApiServer() as own:
        yield own
        own.resume()


@pytest.fixture
def served(server: ApiServer) -> ApiServer:
    """Have InferenceCaches served."""
    install_crd(server)
    return server


def replica(server: ApiServer, folder: Path, *arguments: str) -> OperatorProcess:
    """Make an operator for the namespace default."""
    return OperatorProcess(
        server.kubeconfig, folder, ["--namespace=default", "--lease-namespace=default", *arguments]
    )


def serve_one(server: ApiServer, operator: OperatorProcess, name: str, timeout_seconds: float) -> None:
    """Create an object and wait until the operator has made something for it."""
    admin = Admin(server.kubeconfig)
    assert admin.create(cache_document(name, "default")).accepted
    path = f"{collection_path(CONFIG_MAPS, 'default')}/{name}-record"
    operator.wait(lambda: admin.request("GET", path).accepted, f"{name} is served", timeout_seconds)


def test_an_api_without_the_definition_is_waited_for(server: ApiServer, tmp_path: Path) -> None:
    """Started before the CRD, the operator says once what it waits for, is not ready, then works."""
    with replica(server, tmp_path) as operator:
        operator.wait_for_log("waiting for the InferenceCache definition", 30)
        assert operator.get("/readyz")[0] == 503
        assert operator.get("/healthz")[0] == 200
        install_crd(server)
        operator.wait(lambda: operator.ready, "the operator is ready", 30)
        serve_one(server, operator, "early", 30)
        assert len(operator.logged("waiting for the InferenceCache definition")) == 1


def test_a_deleted_definition_ends_the_process(served: ApiServer, tmp_path: Path) -> None:
    """Without its kind there is nothing to watch: the process ends, and its successor waits."""
    with replica(served, tmp_path) as operator:
        operator.wait(lambda: operator.ready and operator.leads, "the operator leads", 30)
        served.kubectl("delete", "crd", "inferencecaches.cachewright.dev")
        assert operator.wait_for_exit(60) == 1
        assert operator.logged("operator failed")


def test_a_leader_before_a_silent_api_ends_in_time(served: ApiServer, tmp_path: Path) -> None:
    """A leader that cannot renew ends before its Lease may be another's; a new process leads on return."""
    with replica(served, tmp_path) as operator:
        operator.wait(lambda: operator.ready and operator.leads, "the operator leads", 30)
        served.pause()
        silent = time.monotonic()
        assert operator.wait_for_exit(30) == 1
        assert time.monotonic() - silent < RENEW_DEADLINE_SECONDS + 5
    with replica(served, tmp_path) as successor:
        successor.wait_for_log("lease not reachable", 30)
        assert successor.get("/healthz")[0] == 200
        assert successor.get("/readyz")[0] == 503
        served.resume()
        successor.wait(lambda: successor.ready and successor.leads, "it leads", RECOVERY_SECONDS)
        serve_one(served, successor, "after", 30)


def test_a_single_replica_outlives_a_silent_api(served: ApiServer, tmp_path: Path) -> None:
    """Without election the process waits through the silence, and works soon after it."""
    with replica(served, tmp_path, "--no-leader-elect", "--resync-seconds=5") as operator:
        operator.wait(lambda: operator.ready, "the operator is ready", 30)
        serve_one(served, operator, "before", 30)
        served.pause()
        operator.wait(
            lambda: operator.metric("cachewright_kube_requests_total", code="timeout") > 0,
            "a request runs out of time",
            60,
        )
        assert operator.get("/metrics")[0] == 200
        served.resume()
        serve_one(served, operator, "after", RECOVERY_SECONDS)
        assert operator.exit_code is None


def test_a_restarted_api_server_is_found_again(served: ApiServer, tmp_path: Path) -> None:
    """Connections that the server closed are opened again."""
    with replica(served, tmp_path, "--no-leader-elect") as operator:
        operator.wait(lambda: operator.ready, "the operator is ready", 30)
        served.restart()
        serve_one(served, operator, "after", RECOVERY_SECONDS)
        assert operator.exit_code is None


def test_a_cluster_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    """A kubeconfig that is not there is an error with a sentence, not a trace."""
    operator = OperatorProcess(tmp_path / "missing", tmp_path, [])
    assert operator.wait_for_exit(30) == 1
    (said,) = operator.logged("operator failed")
    assert "missing" in said["error"]
    assert "exception" not in said
