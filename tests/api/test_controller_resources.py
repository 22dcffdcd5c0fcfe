"""What the running operator costs: memory, and writes when nothing changes."""

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cachewright.kube.client import collection_path
from cachewright.kube.protocol import CHILD_KINDS, CONFIG_MAPS, INFERENCE_CACHES, SECRETS
from e2e.cluster.apiserver import ApiServer
from tests.api.admin import Admin
from tests.api.operator_process import OperatorProcess
from tests.support.caches import cache_document

pytestmark = pytest.mark.api

MIB = 2**20
UNRELATED = 2000
MANY = 200
WRITES = ("create", "update", "patch", "delete")


def replica(server: ApiServer, namespace: str, folder: Path, *arguments: str) -> OperatorProcess:
    """Make an operator for one namespace."""
    return OperatorProcess(
        server.kubeconfig,
        folder,
        [f"--namespace={namespace}", f"--lease-namespace={namespace}", *arguments],
    )


def rss_at_rest(operator: OperatorProcess) -> int:
    """Return the memory of an operator that has looked at everything a few times."""
    operator.wait(lambda: operator.ready and operator.leads, "the operator leads", 60)
    before = operator.metric("cachewright_kube_requests_total", kind="InferenceCache", verb="list")
    operator.wait(
        lambda: (
            operator.metric("cachewright_kube_requests_total", kind="InferenceCache", verb="list")
            >= before + 3
        ),
        "three resyncs",
        60,
    )
    return operator.rss_bytes


def fill(admin: Admin, namespace: str) -> None:
    """Create many Secrets and ConfigMaps that are none of ours."""
    content = base64.b64encode(b"x" * 4096).decode()

    def create(number: int) -> None:
        for kind in (SECRETS, CONFIG_MAPS):
            document = {
                "apiVersion": "v1",
                "kind": kind.kind,
                "metadata": {"name": f"unrelated-{number}", "labels": {"app": "other"}},
                "data": {"content": content},
            }
            assert admin.request("POST", collection_path(kind, namespace), document).accepted

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, range(UNRELATED)))


def waiting_for_pods(admin: Admin, namespace: str) -> int:
    """Count the objects whose children all exist; without nodes their store's pod never runs."""
    listed = admin.request("GET", collection_path(INFERENCE_CACHES, namespace)).body["items"]
    conditions = [each.get("status", {}).get("conditions", []) for each in listed]
    return sum(
        any(c["reason"] == "StoreUnready" for c in each if c["type"] == "Ready") for each in conditions
    )


@pytest.fixture
def crowd(admin: Admin, namespace: str) -> Iterator[str]:
    """Give a namespace that is emptied afterwards: nothing collects garbage here, and others list it too."""
    yield namespace
    for kind in (INFERENCE_CACHES, *CHILD_KINDS):
        assert admin.request("DELETE", collection_path(kind, namespace)).accepted


def test_unrelated_secrets_cost_no_memory(
    api_server: ApiServer, admin: Admin, crowd: str, tmp_path: Path
) -> None:
    """2,000 Secrets and ConfigMaps of others add less than 10 MiB, before the start and while it runs."""
    with replica(api_server, crowd, tmp_path, "--resync-seconds=1") as operator:
        empty = rss_at_rest(operator)
        fill(admin, crowd)
        assert rss_at_rest(operator) - empty < 10 * MIB
    with replica(api_server, crowd, tmp_path, "--resync-seconds=1") as operator:
        assert rss_at_rest(operator) - empty < 10 * MIB


@pytest.mark.timeout(600)  # about memory, not time
def test_two_hundred_objects_fit_into_two_hundred_megabytes(
    api_server: ApiServer, admin: Admin, crowd: str, tmp_path: Path
) -> None:
    """200 objects with all their children are served and then restarted with less than 200 MB of memory."""
    for number in range(MANY):
        assert admin.create(cache_document(f"cache-{number}", crowd)).accepted
    with replica(api_server, crowd, tmp_path) as operator:
        operator.wait(lambda: waiting_for_pods(admin, crowd) == MANY, "all are served", 240)
        first = operator.rss_bytes
    with replica(api_server, crowd, tmp_path) as operator:
        operator.wait(
            lambda: operator.metric("cachewright_caches", ready="false") == MANY, "all are seen", 240
        )
        again = operator.rss_bytes
    assert max(first, again) < 200_000_000, f"{first / MIB:.0f} MiB, then {again / MIB:.0f} MiB"


def test_nothing_is_written_while_nothing_changes(
    api_server: ApiServer, admin: Admin, namespace: str, tmp_path: Path
) -> None:
    """Over 20 resyncs the running operator sends no write but the renewals of its Lease."""
    for name in ("one", "two"):
        assert admin.create(cache_document(name, namespace)).accepted
    with replica(api_server, namespace, tmp_path, "--resync-seconds=1") as operator:

        def passes() -> float:
            return operator.metric("cachewright_reconciles_total")

        def writes() -> float:
            def count(**labels: str) -> float:
                return operator.metric("cachewright_kube_requests_total", **labels)

            return sum(count(verb=verb) - count(verb=verb, kind="Lease") for verb in WRITES)

        operator.wait(lambda: waiting_for_pods(admin, namespace) == 2, "both are served", 60)
        settled = passes() + 6
        operator.wait(lambda: passes() >= settled, "both are at rest", 60)
        written, seen = writes(), passes()
        operator.wait(lambda: passes() >= seen + 40, "20 resyncs of both", 120)
        assert writes() == written
        assert written > 0
