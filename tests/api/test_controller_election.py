"""Two replicas as processes on a real API server: who leads, who follows, and how soon."""

import json
import signal
import time
from pathlib import Path

import pytest

from cachewright.kube.lease import LEASE_DURATION_SECONDS, RENEW_DEADLINE_SECONDS, RETRY_SECONDS
from e2e.cluster.apiserver import ApiServer
from tests.api.operator_process import OperatorProcess

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]


class Replicas:
    """Starts replicas that share one Lease."""

    def __init__(self, server: ApiServer, namespace: str, folder: Path) -> None:
        self.server = server
        self.namespace = namespace
        self._folder = folder

    def start(self) -> OperatorProcess:
        """Make a replica for this namespace."""
        arguments = [f"--namespace={self.namespace}", f"--lease-namespace={self.namespace}"]
        return OperatorProcess(self.server.kubeconfig, self._folder, arguments)

    @property
    def holder(self) -> str:
        """Who holds the Lease."""
        query = ["get", "lease", "cachewright-operator", "-n", self.namespace]
        return self.server.kubectl(*query, "-o", "jsonpath={.spec.holderIdentity}")


@pytest.fixture
def replicas(api_server: ApiServer, namespace: str, tmp_path: Path) -> Replicas:
    """No replica yet."""
    return Replicas(api_server, namespace, tmp_path)


def test_the_standby_answers_its_probes_and_does_nothing(replicas: Replicas) -> None:
    """The second replica is healthy and ready, reads no object and writes nothing."""
    with replicas.start() as first:
        first.wait(lambda: first.ready and first.leads, "the first leads", 30)
        with replicas.start() as second:
            second.wait(lambda: second.ready, "the second is ready", 30)
            assert second.get("/healthz") == (200, "ok\n")
            assert not second.leads
            assert second.metric("cachewright_kube_requests_total", verb="list") == 0
            for verb in ("create", "update", "patch", "delete"):
                assert second.metric("cachewright_kube_requests_total", verb=verb) == 0
            assert first.leads


def test_a_killed_leader_is_followed_within_thirty_seconds(replicas: Replicas) -> None:
    """When the leader dies without a word, the standby leads once the Lease has expired."""
    with replicas.start() as first:
        first.wait(lambda: first.ready and first.leads, "the first leads", 30)
        with replicas.start() as second:
            second.wait(lambda: second.ready, "the second stands by", 30)
            first.process.signal(signal.SIGKILL)
            died = time.monotonic()
            second.wait(lambda: second.leads and second.ready, "the second leads", 30)
            assert time.monotonic() - died > RENEW_DEADLINE_SECONDS - RETRY_SECONDS
            assert replicas.holder == second.logged("listening")[0]["identity"]


def test_a_stopped_leader_is_followed_at_once(replicas: Replicas) -> None:
    """SIGTERM gives the Lease back: exit code 0, and the standby need not wait for it to expire."""
    with replicas.start() as first:
        first.wait(lambda: first.ready and first.leads, "the first leads", 30)
        with replicas.start() as second:
            second.wait(lambda: second.ready, "the second stands by", 30)
            first.process.signal(signal.SIGTERM)
            first.wait_for_log("lease released", 20)
            released = time.monotonic()
            second.wait_for_log("lease acquired", LEASE_DURATION_SECONDS / 2)
            assert time.monotonic() - released < LEASE_DURATION_SECONDS / 2
            assert first.wait_for_exit(20) == 0
            second.wait(lambda: second.leads and second.ready, "the second leads", 30)


def test_a_leader_that_loses_its_lease_exits(replicas: Replicas) -> None:
    """When the Lease names somebody else, the process ends with code 1 and says why."""
    with replicas.start() as first:
        first.wait(lambda: first.ready and first.leads, "the first leads", 30)
        patch = json.dumps({"spec": {"holderIdentity": "somebody-else"}})
        replicas.server.kubectl(
            "patch", "lease", "cachewright-operator", "-n", replicas.namespace, "--type=merge", "-p", patch
        )
        assert first.wait_for_exit(RENEW_DEADLINE_SECONDS) == 1
        assert "somebody-else" in first.logged("lease lost, exiting")[0]["error"]
        assert replicas.holder == "somebody-else"


def test_a_frozen_leader_writes_nothing_when_it_wakes_up(replicas: Replicas) -> None:
    """A leader that was stopped past its time finds the Lease taken, and ends."""
    with replicas.start() as first:
        first.wait(lambda: first.ready and first.leads, "the first leads", 30)
        with replicas.start() as second:
            second.wait(lambda: second.ready, "the second stands by", 30)
            first.process.signal(signal.SIGSTOP)
            second.wait(lambda: second.leads, "the second leads", 30)
            first.process.signal(signal.SIGCONT)
            assert first.wait_for_exit(20) == 1
            assert second.leads
            assert replicas.holder == second.logged("listening")[0]["identity"]
