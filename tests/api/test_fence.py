"""The fence against a real API server: pods that come and go."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from cachewright.keys.record import Record
from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import CONFIG_MAPS
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import Harness
from tests.support.caches import Document, cache_document

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

_names = itertools.count(1)


def fenced(version: str = "1", **workload: Any) -> Document:
    """Return a cache in front of the Deployment `engine`."""
    model = {"name": "demo-model", "version": version, "workloadRef": {"name": "engine", **workload}}
    return cache_document(spec={"model": model})


def engine(image: str = "engine:1") -> Document:
    """Return the Deployment; nobody makes its pods here but the test."""
    labels = {"app": "engine"}
    container = {"name": "engine", "image": image}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


class Engine:
    """Makes and removes pods as a Deployment's controller would."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness

    def start(self, image: str, **annotations: str) -> str:
        """Create a pod that runs an image; it stays pending, for there is no node."""
        name = f"engine-{next(_names)}"
        keys = {f"cachewright.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "engine"}, "annotations": keys},
            "spec": {
                "containers": [{"name": "engine", "image": image}],
                "automountServiceAccountToken": False,
            },
        }
        self.harness.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
        return name

    def stop(self, name: str) -> None:
        """Remove a pod at once."""
        self.harness.kubectl("delete", "pod", name, "--grace-period=0", "--force")

    def finish(self, name: str) -> None:
        """Let a pod end by itself."""
        self.harness.patch(f"pod/{name}", {"status": {"phase": "Succeeded"}}, "--subresource=status")


async def record_of(harness: Harness) -> Record:
    """Read the record, and see that the store holds the same."""
    config_map = await harness.child(CONFIG_MAPS, "demo-record")
    record = Record.from_json(config_map["data"]["record.json"])
    assert await harness.store.read_record(record.cache_id) == record
    return record


async def state_of(harness: Harness) -> str:
    """Return version and state of the exact layer."""
    layer = (await record_of(harness)).layers["Exact"]
    return f"{layer.model_version} {layer.state}"


@pytest.fixture
def harness(api_server: ApiServer, kube_api: KubeApi, namespace: str) -> Harness:
    """An operator without watches in a namespace of its own."""
    return Harness(api_server, kube_api, namespace)


@pytest.fixture
async def rolling(harness: Harness) -> tuple[Harness, Engine]:
    """A settled cache before one pod that runs engine:1."""
    harness.kubectl("apply", "-f", "-", stdin=json.dumps(engine()))
    pods = Engine(harness)
    pods.start("engine:1")
    harness.apply(fenced())
    await harness.settle()
    assert await state_of(harness) == "1 active"
    return harness, pods


async def test_permission_follows_pods_from_their_creation_to_their_end(
    rolling: tuple[Harness, Engine],
) -> None:
    """A pending pod counts, one that is over does not, and each pass says so to the store."""
    harness, pods = rolling
    other = pods.start("engine:2")
    await harness.reconcile()
    assert await state_of(harness) == "1 readonly"
    assert (await harness.conditions())["Ready"] == "True Ready"
    assert (await harness.conditions())["RotationComplete"] == "False WaitingForWorkload"
    pods.finish(other)
    await harness.reconcile()
    assert await state_of(harness) == "1 active"
    assert (await harness.conditions())["RotationComplete"] == "True Switched"


async def test_a_terminating_pod_still_counts(rolling: tuple[Harness, Engine]) -> None:
    """It answers on over connections that are open, until it is gone."""
    harness, pods = rolling
    old = pods.start("engine:0")
    harness.patch(f"pod/{old}", {"metadata": {"finalizers": ["example.com/slow"]}})
    pods.harness.kubectl("delete", "pod", old, "--grace-period=0", "--force", "--wait=false")
    await harness.reconcile()
    assert await state_of(harness) == "1 readonly"
    harness.patch(f"pod/{old}", {"metadata": {"finalizers": None}})
    await harness.reconcile()
    assert await state_of(harness) == "1 active"


async def test_a_bump_waits_for_the_pods_and_is_told_when_it_is_done(rolling: tuple[Harness, Engine]) -> None:
    """Bump, new pod, old pod gone: switched, with the old keyspace retained in status."""
    harness, pods = rolling
    (old,) = harness.kubectl("get", "pods", "-o", "name").split()
    harness.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
    await harness.settle()
    assert await state_of(harness) == "1 active"
    pods.start("engine:2")
    await harness.settle()
    assert await state_of(harness) == "1 readonly"
    pods.stop(old.removeprefix("pod/"))
    await harness.settle()
    assert await state_of(harness) == "2 active"
    status = (await harness.cache())["status"]
    assert [each["modelVersion"] for each in status["retained"]] == ["1"]
    assert (await harness.conditions())["RotationComplete"] == "True Switched"
    events = json.loads(harness.kubectl("get", "events.events.k8s.io", "-o", "json"))
    reasons = {each["reason"] for each in events["items"]}
    assert {"WaitingForWorkload", "Switched"} <= reasons


async def test_pods_are_found_by_labels_alone(harness: Harness) -> None:
    """For kinds that the operator knows nothing about, and may not read."""
    selector = {"matchLabels": {"app": "engine"}}
    reference: Document = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "podSelector": selector,
    }
    pods = Engine(harness)
    pods.start("engine:1", model_version="1")
    harness.apply(fenced(**reference))
    await harness.settle()
    assert await state_of(harness) == "1 active"
    pods.start("engine:1", model_version="2")
    await harness.settle()
    assert await state_of(harness) == "1 readonly"


async def test_a_workload_that_does_not_exist_is_waited_for(harness: Harness) -> None:
    """Nothing is stored, Ready stays true, and the sentence names it."""
    harness.apply(fenced())
    await harness.settle()
    assert await state_of(harness) == "1 readonly"
    assert (await harness.conditions())["Ready"] == "True Ready"
    conditions = (await harness.cache())["status"]["conditions"]
    (told,) = (each for each in conditions if each["type"] == "RotationComplete")
    assert "Deployment engine does not exist" in told["message"]
    assert (await harness.reconcile()).requeue_after_seconds == 10.0


async def test_a_fenced_cache_at_rest_writes_nothing_but_the_heartbeat(
    rolling: tuple[Harness, Engine],
) -> None:
    """Twenty passes change no resourceVersion, and come back in time for the next beat."""
    harness, _ = rolling
    before = await harness.versions()
    for _ in range(20):
        outcome = await harness.reconcile()
        assert outcome.requeue_after_seconds == 120.0
    assert await harness.versions() == before
