"""What users of a gateway on a real node see, also when something dies."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from e2e.client import ChatClient
from e2e.cluster.errors import ClusterError
from e2e.installation import NAMESPACE, ROOT, Installation
from e2e.kubectl import Kubectl, wait_for
from e2e.workspace import Traffic, Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture
def ready(workspace: Workspace) -> Workspace:
    """A cache called demo, ready."""
    workspace.apply_cache()
    workspace.wait_until_ready()
    return workspace


@contextlib.contextmanager
def operator_down(kubectl: Kubectl) -> Iterator[None]:
    """Scale the operator to nothing while the block runs."""
    operator = kubectl.within(NAMESPACE)
    operator.run("scale", "deployment/cachewright", "--replicas=0")
    selector = "app.kubernetes.io/component=operator"
    wait_for("the operator gone", lambda: not operator.get("pods", "-l", selector)["items"], 60)
    try:
        yield
    finally:
        operator.run("scale", "deployment/cachewright", "--replicas=2")
        operator.run("rollout", "status", "deployment/cachewright", "--timeout=120s", timeout_seconds=130)


def test_the_demo_tells_its_story(installation: Installation) -> None:
    """`python -m e2e.demo` exits 0, which it does only if every step was seen."""
    assert installation.images
    done = subprocess.run(
        [sys.executable, "-m", "e2e.demo"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "the object is Ready",
        "MISS",
        "HIT",
        "another tenant",
        "detail=sampling",
        "detail=no_tenant",
        "detail=semantic",
        "the guard found other numbers",
    ):
        assert words in done.stdout
    assert "✗" not in done.stdout
    # What it leaves to look around in would serve on beside all tests that follow.
    shown = installation.kubectl.within("default")
    shown.run("delete", "icache", "--all")
    shown.run("delete", "deployment,service", "engine", "qdrant", "--ignore-not-found")
    # The test's own installation asks for two operators.
    installation.install("replicas=2")


def test_tenants_never_share_and_repeats_hit(ready: Workspace) -> None:
    """Each tenant's second identical request is a hit with its own answer, on whichever replica."""
    with ready.gateway() as client:
        first = {tenant: client.chat("shared?", tenant=tenant) for tenant in ("a", "b")}
    assert not any(answer.is_hit for answer in first.values())
    assert first["a"].text != first["b"].text
    wait_for("a hit", lambda: _hits(ready, "a"), 15)
    with ready.gateway() as client:
        for tenant in ("a", "b"):
            again = client.chat("shared?", tenant=tenant)
            assert again.is_hit
            assert again.text == first[tenant].text


def _hits(workspace: Workspace, tenant: str) -> bool:
    with workspace.gateway() as client:
        return client.chat("shared?", tenant=tenant).is_hit


def test_a_version_bump_makes_the_next_request_miss(ready: Workspace) -> None:
    """Once status names the new keyspace, no replica serves the old answer."""
    with ready.gateway() as client:
        client.chat("bump?")
        wait_for("a hit", lambda: client.chat("bump?").is_hit, 15)
        before = ready.keyspace()
        pods = _gateway_pods(ready)
        ready.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
        wait_for("another keyspace", lambda: ready.keyspace() != before, 30)
        assert not client.chat("bump?").is_hit
        wait_for("a hit in the new keyspace", lambda: client.chat("bump?").is_hit, 15)
    assert _gateway_pods(ready) == pods, "a bump restarts no gateway"


def test_an_entry_is_purged_by_the_id_of_its_answer(ready: Workspace) -> None:
    """The admin port shows with the Secret's token what would go, and removes it on every replica."""
    token = base64.b64decode(ready.kubectl.get("secret", "demo-admin")["data"]["token"]).decode()
    headers = {"Authorization": f"Bearer {token}"}
    with ready.gateway() as client, ready.kubectl.forward("service/demo-gateway", 9091) as port:
        client.chat("purge?")
        wait_for("a hit", lambda: client.chat("purge?").is_hit, 15)
        entry = client.chat("purge?").parameter("key")
        admin = ChatClient(port)
        assert admin.request("GET", "/stats").status == 401
        assert admin.request("GET", "/stats", headers=headers).status == 200
        look = admin.request("POST", "/purge", json.dumps({"id": entry}).encode(), headers)
        assert (look.status, json.loads(look.body)["found"]) == (200, True)
        assert client.chat("purge?").is_hit
        done = admin.request("POST", "/purge", json.dumps({"id": entry, "dryRun": False}).encode(), headers)
        assert (done.status, json.loads(done.body)["removed"]) == (200, True)
        assert not client.chat("purge?").is_hit


def test_streams_and_whole_answers_share_an_entry(ready: Workspace) -> None:
    """What was streamed once is replayed as a stream and as a whole."""
    with ready.gateway() as client:
        first = client.chat("stream?", stream=True)
        assert not first.is_hit
        assert first.body.rstrip().endswith(b"data: [DONE]")
        wait_for("a streamed hit", lambda: client.chat("stream?", stream=True).is_hit, 15)
        again = client.chat("stream?", stream=True)
        assert again.body == first.body
        whole = client.chat("stream?")
        assert whole.is_hit
        assert whole.text


def _gateway_pods(workspace: Workspace) -> set[str]:
    selector = "app.kubernetes.io/component=gateway"
    return {pod["metadata"]["name"] for pod in workspace.kubectl.get("pods", "-l", selector)["items"]}


def _kill_redis(workspace: Workspace) -> None:
    uid = workspace.kubectl.get("pod", "demo-redis-0")["metadata"]["uid"]
    workspace.kubectl.run("delete", "pod", "demo-redis-0", "--grace-period=0", "--force", "--wait=false")

    def is_new_and_ready() -> bool:
        pod = workspace.kubectl.get("pod", "demo-redis-0")
        conditions = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions", [])}
        return bool(pod["metadata"]["uid"] != uid and conditions.get("Ready") == "True")

    wait_for("a new Redis pod", is_new_and_ready, 90)


def test_killing_redis_loses_hits_but_no_request(ready: Workspace) -> None:
    """Every request is answered with 200 throughout, and hits come back by themselves."""
    with ready.gateway() as client, Traffic(client) as traffic:
        traffic.wait_for_answers(10)
        _kill_redis(ready)
        start = len(traffic.answers)
        wait_for("hits again", lambda: traffic.hits_since(start) >= 3, 60)
    assert traffic.errors == []
    assert {answer.status for answer in traffic.answers} == {200}


def test_killing_redis_with_the_operator_down_heals_itself(ready: Workspace, kubectl: Kubectl) -> None:
    """An empty store is refilled from the gateways' mounted copy of the record."""
    with operator_down(kubectl), ready.gateway() as client, Traffic(client) as traffic:
        traffic.wait_for_answers(10)
        _kill_redis(ready)
        start = len(traffic.answers)
        wait_for("hits again", lambda: traffic.hits_since(start) >= 3, 60)
        assert traffic.errors == []
        assert {answer.status for answer in traffic.answers} == {200}


def test_a_pod_without_the_gateways_label_cannot_reach_the_store(ready: Workspace) -> None:
    """The NetworkPolicy lets the gateway's pods in and times everybody else out."""
    image = ready.installation.images["valkey"]
    selector = ready.kubectl.get("deployment", "demo-gateway")["spec"]["selector"]["matchLabels"]
    for name, labels in (("friend", selector), ("stranger", {"app": "stranger"})):
        ready.kubectl.apply(json.dumps(_probe_pod(name, labels, image)))
    for name in ("friend", "stranger"):
        ready.kubectl.run("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    ping = ("valkey-cli", "-h", "demo-redis", "-t", "3", "--user", "health", "--pass", "-", "PING")
    wait_for(
        "PONG for the gateway's label", lambda: "PONG" in ready.kubectl.run("exec", "friend", "--", *ping), 30
    )
    with pytest.raises(ClusterError, match=r"timed out|[Tt]imeout|Could not connect"):
        ready.kubectl.run("exec", "stranger", "--", "timeout", "10", *ping)
    ready.kubectl.run("delete", "pod", "friend", "stranger", "--grace-period=0", "--force")


def _probe_pod(name: str, labels: dict[str, str], image: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 999,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "sleep",
                    "image": image,
                    "command": ["sleep", "600"],
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }


def test_nothing_secret_or_private_is_logged(ready: Workspace, kubectl: Kubectl) -> None:
    """Neither passwords nor keys nor prompts nor tenants stand in any log of gateway or operator."""
    with ready.gateway() as client:
        client.chat("PRIVATE-QUESTION", tenant="PRIVATE-TENANT")
        client.request("POST", "/v1/chat/completions", b'{"PRIVATE-BROKEN', {"X-Tenant-Id": "PRIVATE-TENANT"})
    values = ["PRIVATE-QUESTION", "PRIVATE-TENANT", "PRIVATE-BROKEN"]
    for name in ("demo-keys", "demo-admin", "demo-redis"):
        data = ready.kubectl.get("secret", name)["data"]
        values += [base64.b64decode(value).decode().strip() for value in data.values()]
    gateway = ready.kubectl.run("logs", "-l", "app.kubernetes.io/component=gateway", "--tail=-1")
    operator = kubectl.within(NAMESPACE).run(
        "logs", "-l", "app.kubernetes.io/component=operator", "--tail=-1"
    )
    assert gateway.strip()
    assert operator.strip()
    for value in values:
        assert value not in gateway
        assert value not in operator


def test_a_managed_redis_serves_like_a_valkey(workspace: Workspace) -> None:
    """`flavor: Redis` runs Redis with the same configuration, accounts and probes."""
    workspace.apply_cache(stores={"redis": {"managed": {"flavor": "Redis", "maxMemory": "64Mi"}}})
    workspace.wait_until_ready()
    with workspace.gateway() as client:
        client.chat("redis?")
        wait_for("a hit", lambda: client.chat("redis?").is_hit, 15)


def test_bad_requests_get_clear_answers(ready: Workspace) -> None:
    """A wrong method, an unknown path and an upstream that is gone: no 500 of our making, in bounded time."""
    with ready.gateway() as client:
        assert client.request("GET", "/v1/chat/completions").status == 405
        assert client.request("POST", "/reset_prefix_cache", b"{}").status in {403, 404}
        ready.kubectl.run("scale", "deployment/engine", "--replicas=0")
        started = time.monotonic()
        ready.kubectl.run("wait", "--for=delete", "pod", "-l=app.kubernetes.io/name=engine", "--timeout=45s")

        # Until the node's rules forget the pod, packets to it are lost rather than refused: 504, not 502.
        def is_refused() -> bool:
            answer = client.chat(f"gone {time.time()}")
            assert answer.status in {502, 504}
            assert "error" in json.loads(answer.body)
            return answer.status == 502

        wait_for("502", is_refused, 30)
        assert time.monotonic() - started < 60
