"""`layers.prefix` on a real node: the engine's pods get their settings once, and its prefix cache is of use.

The engine is the stand-in, whose prefix cache is a real one: full blocks, each with all before it, and the
salt in the first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import pytest
import yaml

from e2e.client import ChatClient
from e2e.kubectl import Kubectl, wait_for
from e2e.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SYSTEM: Final = " ".join(f"Rule {number} is to answer briefly." for number in range(30))
REVISION: Final = "deployment.kubernetes.io/revision"
PATIENCE_SECONDS: Final = 120.0


@dataclass
class Engine:
    """Deployment `engine`, as its user sees it."""

    kubectl: Kubectl
    manifest: str

    def apply(self, *options: str, latency: float = 0.02) -> None:
        """Apply the user's manifest, which turns the prefix cache off."""
        documents = list(yaml.safe_load_all(self.manifest))
        spec = documents[0]["spec"]
        spec["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        spec["template"]["spec"]["containers"][0]["args"] = [
            "--host=0.0.0.0",
            "--port=8000",
            f"--latency={latency}",
            "--no-enable-prefix-caching",
        ]
        text = "---\n".join(json.dumps(document) + "\n" for document in documents)
        self.kubectl.run("apply", *options, "-f", "-", stdin=text)

    @property
    def revision(self) -> int:
        """Return how often its pods were rolled, from 1 on."""
        annotations = self.kubectl.get("deployment", "engine")["metadata"]["annotations"]
        return int(annotations[REVISION])

    def rolled(self) -> int:
        """Wait until its pods are rolled out, and return the revision."""
        self.kubectl.run("rollout", "status", "deployment/engine", "--timeout=120s", timeout_seconds=130)
        return self.revision

    def pods(self) -> list[dict[str, Any]]:
        """Return its pods, those that end left out."""
        found = self.kubectl.get("pods", "-l", "app.kubernetes.io/name=engine")["items"]
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def text(self) -> str:
        """Return all that the Deployment says, but for who owns which of it."""
        return json.dumps(self.kubectl.get("deployment", "engine"))

    def is_failing(self) -> bool:
        """Tell whether a pod of it was started and ended."""
        states = [s for pod in self.pods() for s in pod["status"].get("containerStatuses", [])]
        return any(state["restartCount"] or "terminated" in state["state"] for state in states)

    def words(self) -> list[str]:
        """Return the arguments of its one pod."""
        (pod,) = self.pods()
        words: list[str] = pod["spec"]["containers"][0]["args"]
        return words


@pytest.fixture
def engine(workspace: Workspace) -> Engine:
    """An engine whose prefix cache is off, behind a cache called demo."""
    made = Engine(workspace.kubectl, workspace.installation.engine_manifest())
    made.apply()
    made.rolled()
    workspace.apply_cache()
    workspace.wait_until_ready()
    return made


def change(workspace: Workspace, said: str, **layer: Any) -> None:
    """Change `layers.prefix` and wait until the condition says `True Ready` or the like of it."""
    workspace.patch("icache/demo", {"spec": {"layers": {"prefix": layer}}})
    wait_for(f"PrefixCachingReady {said}", lambda: told(workspace) == said, PATIENCE_SECONDS)


def told(workspace: Workspace) -> str:
    """Return status and reason of PrefixCachingReady for the newest spec."""
    cache = workspace.kubectl.get("icache", "demo")
    for each in cache["status"]["conditions"]:
        if each["type"] == "PrefixCachingReady":
            seen = each["observedGeneration"] == cache["metadata"]["generation"]
            return f"{each['status']} {each['reason']}" if seen else ""
    return ""


def known_tokens(client: ChatClient, question: str, tenant: str) -> int:
    """Ask behind the long system prompt; returns how many tokens the engine knew."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    answer = client.chat(question, tenant=tenant, messages=messages)
    if answer.status == 504:  # right after a roll-out the Service may lead to a pod that has just gone
        answer = client.chat(question, tenant=tenant, messages=messages)
    assert answer.status == 200, answer
    return int(json.loads(answer.body)["usage"]["prompt_tokens_details"]["cached_tokens"])


def test_an_engine_gets_its_settings_once_and_shares_prefixes_within_a_tenant(
    workspace: Workspace, engine: Engine
) -> None:
    """Roll-outs are counted throughout: each wanted one is one, and nothing else causes any."""
    first = engine.revision
    on = {"engine": "VLLM", "engineVersion": "0.32.0", "workloadRef": {"name": "engine"}}
    change(workspace, "True Ready", **on, rollout="Immediate")
    assert engine.rolled() == first + 1
    assert engine.words()[-2:] == ["--enable-prefix-caching", "--enable-prompt-tokens-details"]

    engine.apply()
    engine.apply("--server-side", "--force-conflicts")
    workspace.patch("icache/demo", {"spec": {"sweep": {"interval": "2h"}}})
    workspace.wait_until_ready()
    assert engine.rolled() == first + 1

    change(workspace, "False WaitingForRollout", rollout="OnNextRollout", blockSize=8)
    assert engine.rolled() == first + 1
    engine.apply("--server-side", "--force-conflicts", latency=0.01)
    assert engine.rolled() == first + 2
    wait_for("the next roll-out to bring them", lambda: told(workspace) == "True Ready", PATIENCE_SECONDS)
    assert "--block-size=8" in engine.words()

    with workspace.gateway() as client:
        _shares_within_a_tenant(workspace, client)
    _undoes_a_bad_flag(workspace, engine)
    wait_for("a hit rate", lambda: _hit_rate(workspace) > 0.5, PATIENCE_SECONDS)


def test_a_patched_engine_is_rolled_once_and_given_back(workspace: Workspace, engine: Engine) -> None:
    """On clusters without the policy: one roll-out brings the words, and one takes them back."""
    first, before = engine.revision, engine.words()
    on = {"engine": "VLLM", "engineVersion": "0.32.0", "workloadRef": {"name": "engine"}}
    change(workspace, "True Ready", **on, delivery="Patch", rollout="Immediate")
    assert engine.rolled() == first + 1
    assert engine.words() == [*before[:-1], "--enable-prefix-caching", "--enable-prompt-tokens-details"]
    engine.kubectl.run("delete", "icache", "demo")
    wait_for("nothing of ours", lambda: "cachewright.dev" not in engine.text(), PATIENCE_SECONDS)
    assert engine.rolled() == first + 2
    wait_for("one pod", lambda: len(engine.pods()) == 1, PATIENCE_SECONDS)
    assert engine.words() == before


def _shares_within_a_tenant(workspace: Workspace, client: ChatClient) -> None:
    """The same tenant finds its beginnings, another does not, and after a bump nobody finds the old."""
    assert known_tokens(client, "one", "acme") == 0
    known = known_tokens(client, "two", "acme")
    assert known > 150
    assert known_tokens(client, "three", "globex") == 0
    before = workspace.kubectl.get("icache", "demo")["status"]["layers"]
    workspace.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
    wait_for("RotationComplete", lambda: _is_rotated(workspace, before), PATIENCE_SECONDS)
    assert known_tokens(client, "four", "acme") == 0
    assert known_tokens(client, "five", "globex") == 0
    for number in range(20):
        assert known_tokens(client, f"question {number}", "acme") >= known


def _is_rotated(workspace: Workspace, before: list[dict[str, str]]) -> bool:
    status = workspace.kubectl.get("icache", "demo")["status"]
    former = {each["name"]: each["keyspace"] for each in before}
    now = {each["name"]: each["keyspace"] for each in status["layers"]}
    return now["Prefix"] != former["Prefix"] and workspace.is_settled()


def _undoes_a_bad_flag(workspace: Workspace, engine: Engine) -> None:
    """Pods that do not start are undone as anything else is, and it stays so."""
    revision = engine.revision
    (serving,) = engine.pods()
    bad = {"rollout": "Immediate", "extraArgs": ["--no-such-flag"]}
    workspace.patch("icache/demo", {"spec": {"layers": {"prefix": bad}}})
    wait_for("pods that do not start", engine.is_failing, PATIENCE_SECONDS)
    engine.kubectl.run("rollout", "undo", "deployment/engine")
    assert engine.rolled() == revision + 2
    wait_for("TakenBack", lambda: told(workspace) == "False TakenBack", PATIENCE_SECONDS)
    wait_for("the bad pod gone", lambda: len(engine.pods()) == 1, PATIENCE_SECONDS)
    (pod,) = engine.pods()
    assert pod["metadata"]["uid"] == serving["metadata"]["uid"]
    assert engine.revision == revision + 2


def _hit_rate(workspace: Workspace) -> float:
    status = workspace.kubectl.get("icache", "demo")["status"]
    return float((status.get("prefix") or {"hitRate": 0})["hitRate"])
