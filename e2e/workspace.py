"""A namespace of the test cluster with an engine in it, and the questions that tests ask about it."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Self

import yaml

from e2e.client import Answer, ChatClient
from e2e.cluster.errors import ClusterError
from e2e.installation import NAMESPACE, ROOT, Installation
from e2e.kubectl import Kubectl, wait_for

READY_SECONDS: Final = 120.0


@dataclass(frozen=True)
class Workspace:
    """One test's own place."""

    installation: Installation
    kubectl: Kubectl

    def create(self) -> None:
        """Make the namespace, under the restricted Pod Security Standard, and the engine."""
        name = self.kubectl.namespace
        # One of an earlier run may still be on its way out.
        self.kubectl.run("delete", "namespace", name, "--ignore-not-found", timeout_seconds=180)
        self.kubectl.run("create", "namespace", name)
        enforce = "pod-security.kubernetes.io/enforce=restricted"
        self.kubectl.run("label", "namespace", name, enforce)
        manifest = self.installation.engine_manifest().replace("--latency=0.6", "--latency=0.02")
        self.kubectl.apply(manifest)
        self.kubectl.run("rollout", "status", "deployment/engine", "--timeout=120s", timeout_seconds=130)

    def apply_cache(self, name: str = "demo", **spec: Any) -> None:
        """Apply the quickstart example under another name, with parts of its spec replaced."""
        document = yaml.safe_load((ROOT / "examples" / "quickstart.yaml").read_text())
        document["metadata"] = {"name": name}
        document["spec"]["upstream"]["url"] = "http://engine:8000/v1"
        document["spec"].update(spec)
        self.kubectl.apply(json.dumps(document))

    def patch(self, target: str, patch: dict[str, Any], *options: str) -> None:
        """Merge a patch into an object."""
        self.kubectl.run("patch", target, "--type=merge", f"--patch={json.dumps(patch)}", *options)

    def wait_until_ready(self, name: str = "demo", timeout_seconds: float = READY_SECONDS) -> None:
        """Wait until Ready is true and nothing is under way for the newest spec."""
        wait_for(f"icache/{name} Ready", lambda: self.is_settled(name), timeout_seconds)

    def is_settled(self, name: str = "demo") -> bool:
        """Tell what kstatus would: current, for the newest generation."""
        cache = self.kubectl.get("icache", name)
        status = cache.get("status", {})
        conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
        return (
            status.get("observedGeneration") == cache["metadata"]["generation"]
            and conditions.get("Ready") == "True"
            and "Reconciling" not in conditions
            and "Stalled" not in conditions
        )

    def keyspace(self, name: str = "demo") -> str:
        """Return the keyspace that status names for the exact layer."""
        return str(self.kubectl.get("icache", name)["status"]["layers"][0]["keyspace"])

    @contextlib.contextmanager
    def gateway(self, name: str = "demo") -> Iterator[ChatClient]:
        """Talk to one gateway pod through a forwarded port."""
        with self.kubectl.forward(f"service/{name}-gateway", 8080) as port:
            client = ChatClient(port)
            wait_for("the gateway", lambda: client.request("GET", "/readyz").status == 200, 30)
            yield client

    def describe(self) -> str:
        """Collect what helps to see why a test failed."""
        looks: list[tuple[str, ...]] = [
            ("get", "all,icache,events", "-o", "wide"),
            ("get", "icache", "-o", "yaml"),
            ("logs", "-l", "app.kubernetes.io/component=gateway", "--tail=40", "--prefix"),
        ]
        parts = [f"--- {' '.join(look)}\n{_tried(self.kubectl, *look)}" for look in looks]
        operator = self.kubectl.within(NAMESPACE)
        parts.append(
            "--- operator\n"
            + _tried(operator, "logs", "-l", "app.kubernetes.io/component=operator", "--tail=60", "--prefix")
        )
        return "\n".join(parts)

    def logs_of_stores(self) -> str:
        """Collect what managed stores say."""
        wanted = "app.kubernetes.io/component in (redis,qdrant,postgres)"
        looks = (("describe", "pod", "-l", wanted), ("logs", "-l", wanted, "--tail=60", "--prefix"))
        return "\n".join(f"--- {' '.join(look)}\n{_tried(self.kubectl, *look)}" for look in looks)


def _ask_one_of_three(client: ChatClient, number: int) -> Answer:
    """Ask three questions in turn: plenty of hits, and each tenant's answer can be told."""
    return client.chat(f"question {number % 3}")


@dataclass
class Traffic:
    """Requests sent one after the other in a thread of its own, until told to stop."""

    client: ChatClient
    ask: Callable[[ChatClient, int], Answer] = _ask_one_of_three
    answers: list[Answer] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=60)

    def wait_for_answers(self, count: int, timeout_seconds: float = 60.0) -> None:
        """Wait until that many further answers came."""
        goal = len(self.answers) + count
        wait_for(f"{count} more answers", lambda: len(self.answers) >= goal, timeout_seconds)

    def hits_since(self, start: int) -> int:
        """Count hits from the answer number `start` on."""
        return sum(answer.is_hit for answer in self.answers[start:])

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                self.answers.append(self.ask(self.client, number))
            except OSError as e:
                self.errors.append(repr(e))
                time.sleep(0.05)


def operator_metric(kubectl: Kubectl, name: str, labels: str) -> float:
    """Sum a metric over all operator pods, over the samples that carry the given label text."""
    total = 0.0
    operator = kubectl.within(NAMESPACE)
    for pod in operator.get("pods", "-l", "app.kubernetes.io/component=operator")["items"]:
        if pod["metadata"].get("deletionTimestamp"):
            continue
        with operator.forward(f"pod/{pod['metadata']['name']}", 8080) as port:
            text = ChatClient(port).request("GET", "/metrics").body.decode()
        samples = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
        assert samples, f"{name} is not among the operator's metrics"
        total += sum(float(line.rsplit(" ", 1)[1]) for line in samples if labels in line)
    return total


def _tried(kubectl: Kubectl, *arguments: str) -> str:
    try:
        return kubectl.run(*arguments)
    except ClusterError as e:
        return str(e)
