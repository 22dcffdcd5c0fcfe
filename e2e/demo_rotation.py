"""The demo's second chapter: a new version of the model, rolled out pod by pod, and the way back.

Called by `demo` with the stand-in engine running; tells it with examples/rotation.yaml.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

from e2e.client import Answer, ChatClient
from e2e.cluster.console import Step
from e2e.engine import version_in
from e2e.installation import ROOT, Installation
from e2e.kubectl import Kubectl, wait_for
from e2e.story import Story

NAME: Final = "rotation"
SETTLE_SECONDS: Final = 120.0


def tell_rotation(story: Story, installation: Installation) -> None:
    """Bump, roll, switch, and go back, with questions in between."""
    kubectl = installation.kubectl
    story.title("kubectl apply -f examples/rotation.yaml")
    kubectl.apply(installation.engine_manifest())
    kubectl.run("rollout", "status", "deployment/engine", "--timeout=120s", timeout_seconds=130)
    kubectl.apply((ROOT / "examples" / "rotation.yaml").read_text())
    with Step("waiting until it is Ready and the engine's pods are alike"):
        wait_for("Ready", lambda: condition(kubectl, "Ready").get("status") == "True", SETTLE_SECONDS)
        wait_for_rotation(kubectl, "True")
    with kubectl.forward(f"service/{NAME}-gateway", 8080) as port:
        client = ChatClient(port)
        wait_for("an answer of the gateway", lambda: client.request("GET", "/readyz").status == 200, 30)
        question = f"How tall is a giraffe? (asked at {time.time():.0f})"
        tell_bump(story, kubectl, client, question)
        tell_fence(story, kubectl, client)
        tell_switch(story, kubectl, client, question)
        tell_way_back(story, installation, client, question)


def tell_bump(story: Story, kubectl: Kubectl, client: ChatClient, question: str) -> None:
    """Fill the cache, then change the version before any pod is rolled."""
    first = client.chat(question)
    by_the_first = not first.is_hit and said_by(first) == "1"
    story.answer("a question: MISS, by engine 1", first, holds=by_the_first)
    second = client.chat(question)
    story.answer("the same again: HIT", second, holds=second.is_hit)
    story.title("spec.model.version: 2, before any pod is rolled")
    patch_cache(kubectl, "2")
    waiting = wait_for_rotation(kubectl, "False")
    story.tell("the switch waits", seen=waiting["reason"], holds=waiting["reason"] == "WaitingForWorkload")
    ready = condition(kubectl, "Ready")["status"]
    story.tell("the object stays Ready meanwhile", seen=f"Ready={ready}", holds=ready == "True")
    third = client.chat(question)
    story.answer("the old answer is still right: HIT", third, holds=third.is_hit)


def tell_fence(story: Story, kubectl: Kubectl, client: ChatClient) -> None:
    """Roll the engine; as soon as a new pod exists, answers are read and none is stored."""
    story.title("kubectl patch deployment engine: its pods are replaced by version 2")
    patch_engine(kubectl, "2")
    wait_for("writes fenced", lambda: exact_layer(kubectl)["state"] == "readonly", SETTLE_SECONDS)
    asked = f"Who answers this one? (asked at {time.time():.0f})"
    answers = [client.chat(asked), client.chat(asked)]
    is_fenced = exact_layer(kubectl)["state"] == "readonly"
    said = " and ".join(said_by(answer) for answer in answers)
    seen = f"engine {said}" if is_fenced else "the roll-out was over before this could be asked"
    # What was asked across the end of the roll-out shows nothing, and is no failure.
    stored = any(answer.is_hit for answer in answers)
    story.tell("while they differ, a new answer is not stored", seen=seen, holds=not (is_fenced and stored))


def tell_switch(story: Story, kubectl: Kubectl, client: ChatClient, question: str) -> None:
    """Wait until every pod runs the new version, the ending ones gone."""
    with Step("waiting until every pod runs version 2"):
        done = wait_for_rotation(kubectl, "True")
    version = exact_layer(kubectl)["modelVersion"]
    story.tell("a new keyspace is in use", seen=f"{done['reason']}, version {version}", holds=version == "2")
    first = client.chat(question)
    fresh = not first.is_hit and said_by(first) == "2"
    story.answer("the question of before: MISS, by engine 2", first, holds=fresh)
    second = client.chat(question)
    story.answer("and again: HIT", second, holds=second.is_hit and said_by(second) == "2")


def tell_way_back(story: Story, installation: Installation, client: ChatClient, question: str) -> None:
    """Set version and pods back; the retained answers are served again."""
    kubectl = installation.kubectl
    story.title("Version 2 is no good: back to version 1")
    patch_cache(kubectl, "1")
    patch_engine(kubectl, "1")
    with Step("waiting until every pod runs version 1"):
        done = wait_for_rotation(kubectl, "True", reason="RolledBack")
    story.tell("the retained keyspace is in use again", seen=done["reason"], holds=True)
    back = client.chat(question)
    right = back.is_hit and said_by(back) == "1"
    story.answer("the first question after it: HIT, of version 1", back, holds=right)


def patch_cache(kubectl: Kubectl, version: str) -> None:
    """Say that the engine is at another version."""
    patch = json.dumps({"spec": {"model": {"version": version}}})
    kubectl.run("patch", "icache", NAME, "--type=merge", f"--patch={patch}")


def patch_engine(kubectl: Kubectl, version: str) -> None:
    """Begin to replace the engine's pods."""
    engine = kubectl.get("deployment", "engine")
    arguments = engine["spec"]["template"]["spec"]["containers"][0]["args"]
    # In its place: pods whose arguments stand in another order are other pods to the operator.
    changed = [f"--version={version}" if each.startswith("--version=") else each for each in arguments]
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": changed}]
    kubectl.run("patch", "deployment", "engine", "--type=json", f"--patch={json.dumps(patch)}")


def condition(kubectl: Kubectl, kind: str) -> dict[str, str]:
    """Return a condition that speaks of the newest spec; empty where there is none yet."""
    cache = kubectl.get("icache", NAME)
    for each in cache.get("status", {}).get("conditions", []):
        if each["type"] == kind and each["observedGeneration"] == cache["metadata"]["generation"]:
            return dict(each)
    return {}


def wait_for_rotation(kubectl: Kubectl, status: str, reason: str = "") -> dict[str, str]:
    """Wait until RotationComplete says so of the newest spec."""

    def probe() -> dict[str, str] | None:
        found = condition(kubectl, "RotationComplete")
        return found if found.get("status") == status and reason in ("", found["reason"]) else None

    return wait_for(f"RotationComplete {status} {reason}", probe, SETTLE_SECONDS)


def exact_layer(kubectl: Kubectl) -> dict[str, Any]:
    """Return what the record says of the exact layer."""
    record = json.loads(kubectl.get("configmap", f"{NAME}-record")["data"]["record.json"])
    layer: dict[str, Any] = record["layers"]["Exact"]
    return layer


def said_by(answer: Answer) -> str:
    """Return the version of the engine that said it."""
    return version_in(answer.text)
