"""Stores that the operator runs, on a real node: what they hold, the loss of each one's pod, their growth.

One object with everything: exact, semantic and embedding; Redis, PostgreSQL with pgvector, and Qdrant, which
is a stand-in unless `CACHEWRIGHT_E2E_QDRANT_IMAGE` names a real one; the built-in embedder as a sidecar.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e.client import Answer, ChatClient
from e2e.installation import ROOT, Installation
from e2e.kubectl import wait_for
from e2e.similarity import EMBEDDER, OTHER_NUMBER, PARAPHRASE, QUESTION, kept, wait_until_kept
from e2e.watching import Watch
from e2e.workspace import Traffic, Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

NAME = "all-managed"
STORES = ("redis", "qdrant", "postgres")
START_SECONDS = 600.0


@pytest.fixture(scope="module")
def managed(installation: Installation, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """The example with every store run by the operator, ready; it is deleted after the last test."""
    made = Workspace(installation, installation.kubectl.within("e2e-stores"))
    made.create()
    made.kubectl.apply(json.dumps(_cache()))
    failed_before = request.session.testsfailed
    try:
        made.wait_until_ready(NAME, START_SECONDS)
        yield made
    finally:
        # A start that failed is told as well; failures of other files are not this object's.
        if request.session.testsfailed > failed_before or not made.is_settled(NAME):
            print(made.describe())
            print(made.logs_of_stores())
        made.kubectl.run("delete", "namespace", "e2e-stores", "--wait=false", "--ignore-not-found")


@pytest.fixture
def truth_seconds(request: pytest.FixtureRequest) -> float:
    """Within how many seconds status must tell of a pod that went or came."""
    return float(request.config.getoption("--truth-seconds"))


def test_similar_questions_share_answers_and_a_bump_keeps_vectors(managed: Workspace) -> None:
    """A paraphrase hits, another number does not and says why; a bump leaves just the vectors warm."""
    with (
        managed.gateway(NAME) as client,
        managed.kubectl.forward(f"service/{NAME}-gateway", 9090) as port,
    ):
        management = ChatClient(port)
        before = kept(management)
        first = client.chat(QUESTION)
        assert not first.is_hit
        wait_until_kept(management, before)
        hit = client.chat(PARAPHRASE)
        assert (hit.is_hit, hit.detail, hit.text) == (True, "semantic", first.text)
        assert float(hit.headers["cachewright-similarity"]) >= 0.95
        assert not client.chat(PARAPHRASE, tenant="globex").is_hit
        refused = client.chat(OTHER_NUMBER)
        assert (refused.is_hit, refused.detail) == (False, "guard")
        assert refused.headers["cachewright-guard"] == "numbers"

        assert not client.embed("warm", "vectors", model=EMBEDDER).is_hit
        wait_for("vectors kept", lambda: client.embed("warm", "vectors", model=EMBEDDER).is_hit, 60)
        old = _keyspaces(managed)
        managed.patch(f"icache/{NAME}", {"spec": {"model": {"version": "2"}}})
        wait_for("the switch", lambda: _keyspaces(managed)["Semantic"] != old["Semantic"], 60)
        new = _keyspaces(managed)
        assert {layer for layer in new if new[layer] == old[layer]} == {"Embedding"}
        assert client.embed("warm", "vectors", model=EMBEDDER).is_hit
        assert not client.chat(PARAPHRASE).is_hit


@pytest.mark.parametrize("store", STORES)
def test_the_loss_of_a_stores_pod_costs_hits_and_no_request(
    managed: Workspace, store: str, truth_seconds: float
) -> None:
    """Every request is answered, Ready tells of the loss and of the return, and hits are back after it."""
    pod = f"{NAME}-{store}-0"
    with (
        managed.gateway(NAME) as client,
        Watch(managed.kubectl, NAME) as watch,
        Traffic(client, ask=_ask) as traffic,
    ):
        traffic.wait_for_answers(6)
        killed = time.monotonic()
        # Not by force: another pod on the same volume must not start before this one is surely gone.
        managed.kubectl.run("delete", "pod", pod, "--grace-period=1", "--wait=false")
        lost = watch.wait_until("Ready false", lambda state: state.said("Ready").startswith("False/"))
        ready = wait_for(f"{pod} ready", lambda: _is_ready(managed, pod) and time.monotonic())
        back = watch.wait_until("Ready true", lambda state: state.said("Ready").startswith("True/"))
        since = len(traffic.answers)
        traffic.wait_for_answers(12)
    print(f"{store}: told {lost.at - killed:.1f} s after the kill, {back.at - ready:.1f} s after the return")
    assert not traffic.errors
    assert {answer.status for answer in traffic.answers} == {200}
    assert traffic.hits_since(since)
    assert lost.at - killed < truth_seconds
    assert back.at - ready < truth_seconds


def test_a_volume_grows_in_place(managed: Workspace) -> None:
    """The claim is patched, status says so until the volume is larger, and the pod stays as it is."""
    kubectl, claim = managed.kubectl, f"{NAME}-qdrant"
    pod = kubectl.get("pod", f"{claim}-0")["metadata"]["uid"]
    with Watch(kubectl, NAME) as watch:
        managed.patch(
            f"icache/{NAME}", {"spec": {"stores": {"qdrant": {"managed": {"storage": {"size": "2Gi"}}}}}}
        )
        told = watch.wait_until("growing", lambda state: state.said("StoresSized") == "False/VolumeResizing")
        assert "from 1Gi to 2Gi" in told.condition("StoresSized")["message"]
        assert told.said("Ready").startswith("True/")
        # The node's volumes have no driver that grows them, so the test does what one would.
        volume = kubectl.get("pvc", claim)["spec"]["volumeName"]
        managed.patch(f"pv/{volume}", {"spec": {"capacity": {"storage": "2Gi"}}})
        managed.patch(f"pvc/{claim}", {"status": {"capacity": {"storage": "2Gi"}}}, "--subresource=status")
        watch.wait_until("grown", lambda state: state.said("StoresSized") == "True/Sized")
    assert kubectl.get("pod", f"{claim}-0")["metadata"]["uid"] == pod


def _cache() -> dict[str, Any]:
    """Return the example, small, with one gateway, in the namespace of the test."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "all-managed.yaml").read_text())
    spec = document["spec"]
    spec["upstream"]["url"] = "http://engine:8000/v1"
    few = {"requests": {"cpu": "10m"}}
    spec["stores"]["redis"]["managed"] |= {"maxMemory": "64Mi", "resources": few}
    for store in ("qdrant", "postgres"):
        small = {"memory": "256Mi", "storage": {"size": "1Gi"}, "resources": few}
        spec["stores"][store]["managed"] |= small
    spec["layers"]["semantic"]["exposeSimilarity"] = True
    # Tests share two processors: what is shown is that it works, not how fast.
    spec["limits"]["budget"] = {"exact": "1s", "total": "5s"}
    spec["gateway"] = {"replicas": 1}
    return document


def _ask(client: ChatClient, number: int) -> Answer:
    """Ask what is stored, what is not, and for vectors in turn, so that every store is needed."""
    match number % 3:
        case 0:
            return client.chat("asked all the time")
        case 1:
            return client.chat(f"asked once, as number {number}")
    return client.embed("asked all the time", f"asked once, as number {number}", model=EMBEDDER)


def _keyspaces(workspace: Workspace) -> dict[str, str]:
    """Return the keyspace of each layer as status tells it."""
    status = workspace.kubectl.get("icache", NAME)["status"]
    return {layer["name"]: layer["keyspace"] for layer in status["layers"]}


def _is_ready(workspace: Workspace, pod: str) -> bool:
    found = workspace.kubectl.find("pod", pod)
    if found is None or found["metadata"].get("deletionTimestamp"):
        return False
    conditions = found["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
