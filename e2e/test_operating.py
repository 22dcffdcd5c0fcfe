"""What administrators see on a real node: repair, take-over, restart, deletion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.installation import NAMESPACE
from e2e.kubectl import Kubectl, tool, wait_for
from e2e.test_serving import operator_down
from e2e.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

LEASE = "lease/cachewright"


@pytest.fixture
def ready(workspace: Workspace) -> Workspace:
    """A cache called demo, ready."""
    workspace.apply_cache()
    workspace.wait_until_ready()
    return workspace


def test_kubectl_get_shows_what_people_look_for(ready: Workspace) -> None:
    """Ready, reason, version, endpoint and age stand in the table; the message under -o wide."""
    header, row = ready.kubectl.run("get", "icache", "demo", "-o", "wide").splitlines()
    assert header.split() == ["NAME", "READY", "REASON", "VERSION", "ENDPOINT", "AGE", "MESSAGE"]
    assert row.split()[:5] == [
        "demo",
        "True",
        "Ready",
        "1",
        f"http://demo-gateway.{ready.kubectl.namespace}.svc:8080/v1",
    ]


def test_explain_tells_what_a_bump_would_cost(ready: Workspace, tmp_path: Path) -> None:
    """Keyspace and hit rate are those of the running gateways, read through the API server."""
    with ready.gateway() as client:
        wait_for("a hit", lambda: client.chat("explain?").is_hit, 15)
    document = ready.kubectl.get("icache", "demo")
    del document["status"]
    document["spec"]["model"]["version"] = "2"
    file = tmp_path / "new.json"
    file.write_text(json.dumps(document))
    command = [sys.executable, "-m", "cachewright.cli", "explain", "--live", "-f", str(file), "-o", "json"]
    done = subprocess.run(
        [*command, "-n", ready.kubectl.namespace, "--kubectl", tool("kubectl")],
        env={**os.environ, "KUBECONFIG": str(ready.kubectl.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    (cache,) = json.loads(done.stdout)["caches"]
    (layer,) = cache["layers"]
    assert (layer["fate"], layer["causes"]) == ("Rotates", ["spec.model.version"])
    assert layer["keyspace"]["before"] == ready.keyspace()
    assert layer["lookups"] >= 2
    assert 0 < layer["hitRate"] < 1


@pytest.mark.parametrize(
    "target", ["deployment/demo-gateway", "statefulset/demo-redis", "service/demo-redis"]
)
def test_a_deleted_child_is_back_within_30_seconds(ready: Workspace, target: str) -> None:
    """The operator's watches see the deletion; no resync is waited for."""
    uid = ready.kubectl.get(target)["metadata"]["uid"]
    ready.kubectl.run("delete", target, "--wait=true", "--cascade=foreground", timeout_seconds=120)

    def is_back() -> bool:
        child = ready.kubectl.find(target)
        return child is not None and child["metadata"]["uid"] != uid

    wait_for(f"{target} back", is_back, 30)
    ready.wait_until_ready()


def test_a_hand_edited_child_is_back_within_30_seconds(ready: Workspace) -> None:
    """Somebody scales the gateway past the operator."""
    ready.patch("deployment/demo-gateway", {"spec": {"replicas": 5}})
    wait_for(
        "two replicas again",
        lambda: ready.kubectl.get("deployment", "demo-gateway")["spec"]["replicas"] == 2,
        30,
    )
    ready.wait_until_ready()


def test_killing_the_operator_during_a_change_converges(ready: Workspace, kubectl: Kubectl) -> None:
    """Both replicas die while a change is being carried out; the next ones finish it."""
    operator = kubectl.within(NAMESPACE)
    before = ready.keyspace()
    change = {"model": {"version": "2"}, "gateway": {"replicas": 1}, "limits": {"budget": {"exact": "9ms"}}}
    ready.patch("icache/demo", {"spec": change})
    operator.run(
        "delete",
        "pod",
        "-l",
        "app.kubernetes.io/component=operator",
        "--grace-period=0",
        "--force",
        "--wait=false",
    )
    ready.wait_until_ready()
    assert ready.keyspace() != before
    assert ready.kubectl.get("deployment", "demo-gateway")["spec"]["replicas"] == 1
    assert ready.kubectl.find("pdb", "demo-gateway") is None
    operator.run("rollout", "status", "deployment/cachewright", "--timeout=120s", timeout_seconds=130)


def test_the_second_replica_takes_over_within_30_seconds(ready: Workspace, kubectl: Kubectl) -> None:
    """The active operator is killed without a chance to say so; a change is carried out by the other."""
    operator = kubectl.within(NAMESPACE)
    operator.run("rollout", "status", "deployment/cachewright", "--timeout=120s", timeout_seconds=130)
    holder = operator.get(LEASE)["spec"]["holderIdentity"]
    pods = [
        pod["metadata"]["name"]
        for pod in operator.get("pods", "-l", "app.kubernetes.io/component=operator")["items"]
    ]
    active = next(name for name in pods if name in holder)
    started = time.monotonic()
    operator.run("delete", "pod", active, "--grace-period=0", "--force", "--wait=false")
    ready.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
    wait_for("another holder", lambda: operator.get(LEASE)["spec"]["holderIdentity"] not in {holder, ""}, 30)
    wait_for("the change carried out", lambda: ready.keyspace().endswith("-2"), 30)
    assert time.monotonic() - started < 30


def test_deleting_the_object_takes_its_children_within_60_seconds(ready: Workspace) -> None:
    """Nothing of ours is left, and nothing comes back."""
    started = time.monotonic()
    ready.kubectl.run("delete", "icache", "demo", "--cascade=foreground", "--timeout=60s", timeout_seconds=70)
    kinds = "statefulset,deployment,service,configmap,secret,poddisruptionbudget,networkpolicy,pod"
    selector = "cachewright.dev/cache=demo"
    wait_for("no children", lambda: not ready.kubectl.get(kinds, "-l", selector)["items"], 60)
    assert time.monotonic() - started < 60


def test_deleting_the_namespace_with_the_operator_down_finishes_within_60_seconds(
    ready: Workspace, kubectl: Kubectl
) -> None:
    """No finalizer of ours holds a namespace."""
    with operator_down(kubectl):
        started = time.monotonic()
        name = ready.kubectl.namespace
        kubectl.run("delete", "namespace", name, "--timeout=60s", timeout_seconds=70)
        assert kubectl.find("namespace", name) is None
        assert time.monotonic() - started < 60
