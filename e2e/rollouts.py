"""An engine that is rolled under traffic, and what clients, store and status showed meanwhile.

The engine's pods end slowly: after SIGTERM they answer on for some seconds, on connections that gateways keep
open, so that old and new pods answer side by side for as long as the roll-out lasts. Used by `test_rotation`.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import yaml

from cachewright.keys.record import Record
from e2e.client import ChatClient
from e2e.kubectl import Kubectl, wait_for
from e2e.load import Load
from e2e.stored import versions_stored
from e2e.watching import State, Watch
from e2e.workspace import Workspace

REPLICAS: Final = 3
DRAIN_SECONDS: Final = 4
SETTLE_SECONDS: Final = 240.0
MOST_LOST: Final = 0.005
"""Share of requests that may fail when an engine's pod closes the connection they were sent on."""
MODEL_VERSION: Final = "cachewright.dev/model-version"


@dataclass
class Rollouts:
    """A cache called demo over an engine with several pods."""

    workspace: Workspace
    least_rate: float
    """Answers in a second that a test must have seen to show anything."""
    annotated: bool = False
    """True: pods say their version in an annotation."""

    @property
    def kubectl(self) -> Kubectl:
        """The way to the namespace."""
        return self.workspace.kubectl

    def begin(self, version: str, **spec: Any) -> None:
        """Run the engine at version 1 and a cache of `version` that is fenced by its pods."""
        self.kubectl.apply(self._engine("1"))
        self.kubectl.run("rollout", "status", "deployment/engine", "--timeout=120s", timeout_seconds=130)
        wait_for("the first engine gone", lambda: self.pods() == Counter({"1": REPLICAS}), 60)
        model = {
            "name": "demo-model",
            "version": version,
            "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "engine"},
        }
        self.workspace.apply_cache(model=model, **spec)
        self.workspace.wait_until_ready()

    def bump(self, version: str) -> None:
        """Tell the cache that the engine is at another version."""
        self.workspace.patch("icache/demo", {"spec": {"model": {"version": version}}})

    def roll(self, version: str) -> None:
        """Begin to replace the engine's pods, one by one."""
        self.kubectl.apply(self._engine(version))

    def pods(self) -> Counter[str]:
        """Count the engine's pods by version, those that end included."""
        found = self.kubectl.get("pods", "-l", "app.kubernetes.io/name=engine")["items"]
        running = (pod for pod in found if pod["status"].get("phase") not in {"Succeeded", "Failed"})
        return Counter(_version_of(pod) for pod in running)

    def record(self) -> Record:
        """Read the record."""
        return Record.from_json(self.kubectl.get("configmap", "demo-record")["data"]["record.json"])

    def stored(self) -> dict[str, Counter[str]]:
        """Count by keyspace which versions said what is stored."""
        return versions_stored(self.kubectl, self.record().cache_id)

    @contextlib.contextmanager
    def under_traffic(self) -> Iterator[Story]:
        """Send steady traffic through both gateways while the block runs, and watch the object."""
        selector = "app.kubernetes.io/component=gateway"
        pods = [pod["metadata"]["name"] for pod in self.kubectl.get("pods", "-l", selector)["items"]]
        with contextlib.ExitStack() as stack:
            addresses = [stack.enter_context(self.kubectl.reach(pod, 8080)) for pod in pods]
            for host, port in addresses:
                wait_for("the gateway", partial(_is_ready, ChatClient(port, host)), 30)
            watch = stack.enter_context(Watch(self.kubectl))
            load = stack.enter_context(Load(addresses))
            load.wait_for_more(400)
            yield Story(self, load, watch)

    def _engine(self, version: str) -> str:
        documents = list(yaml.safe_load_all(self.workspace.installation.engine_manifest()))
        spec = documents[0]["spec"]
        spec["replicas"] = REPLICAS
        spec["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        spec["template"]["spec"]["terminationGracePeriodSeconds"] = 30
        if self.annotated:
            spec["template"]["metadata"]["annotations"] = {MODEL_VERSION: version}
        spec["template"]["spec"]["containers"][0]["args"] = [
            "--host=0.0.0.0",
            "--port=8000",
            "--latency=0.005",
            f"--drain={DRAIN_SECONDS}",
            f"--version={version}",
        ]
        return "---\n".join(json.dumps(document) + "\n" for document in documents)


@dataclass
class Story:
    """What happens while traffic flows."""

    rollouts: Rollouts
    load: Load
    watch: Watch

    def go_on(self, seconds: float) -> None:
        """Let traffic flow."""
        self.load.wait(seconds)

    def wait_for(self, said: str, version: str | None = None) -> State:
        """Wait until RotationComplete says `True/Reason` or `False/Reason` of the newest spec.

        With `version`, also until the exact layer's keyspace in use holds that version's answers.
        """
        state = self.watch.wait_until(
            f"RotationComplete {said}",
            lambda state: (
                state.observed_generation == state.generation and state.said("RotationComplete") == said
            ),
            SETTLE_SECONDS,
        )
        if version is not None:
            assert self.rollouts.record().layers["Exact"].model_version == version
        return state

    def wait_for_pods(self, **versions: int) -> None:
        """Wait until the engine's pods are these, such as `v1=3`."""
        wanted = Counter({name.removeprefix("v"): count for name, count in versions.items()})
        wait_for(f"engine pods {dict(wanted)}", lambda: self.rollouts.pods() == wanted, SETTLE_SECONDS)

    def check(self, done: State, version: str) -> None:
        """Check what must hold whatever was done; call it after the traffic's end."""
        summary = self.load.summary()
        print(summary, "| RotationComplete:", " → ".join(self.watch.story("RotationComplete")))
        lost = summary.statuses.total() - summary.statuses[200] + len(self.load.broken)
        assert lost <= MOST_LOST * summary.statuses.total(), (summary.statuses, self.load.broken[:3])
        assert self.watch.story("Ready") == ["True/Ready"]
        after = self.load.since(done.at)
        old = [each for each in after if each.status == 200 and each.version != version]
        assert not old, f"{len(old)} of {len(after)} answers after the end were old, such as {old[0]}"
        assert any(each.is_hit for each in after), "no hit after the end: writes did not resume"
        assert summary.rate >= self.rollouts.least_rate, summary

    def check_stored(self, *, named: bool = True) -> dict[str, Counter[str]]:
        """Check that each keyspace holds answers of one version alone; returns what it holds.

        `named`: and of the version that the record says.
        """
        record = self.rollouts.record()
        wanted = {str(layer.keyspace): layer.model_version for layer in record.layers.values()}
        wanted |= {str(past.keyspace): past.model_version for past in record.past}
        found = self.rollouts.stored()
        for keyspace, versions in found.items():
            told = f"{keyspace} of {wanted[keyspace]} holds {versions}"
            assert len(versions) == 1, told
            assert not named or set(versions) == {wanted[keyspace]}, told
        return found


def _is_ready(client: ChatClient) -> bool:
    return client.request("GET", "/readyz").status == HTTPStatus.OK


def _version_of(pod: dict[str, Any]) -> str:
    arguments: list[str] = pod["spec"]["containers"][0]["args"]
    return next(each.partition("=")[2] for each in arguments if each.startswith("--version="))
