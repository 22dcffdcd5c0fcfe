"""`delivery: Patch` on a real API server: field managers of every kind, and nothing of ours left behind."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from cachewright.controller.queue import WorkQueue
from cachewright.controller.resync import Resync
from cachewright.controller.roster import Roster
from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from e2e.cluster.apiserver import ApiServer
from tests.api.prefix_world import PrefixWorld
from tests.api.rights import user_of_namespace
from tests.support.caches import Document
from tests.support.faulty_kube import ProcessKilledError
from tests.support.prefix import engine_deployment, prefix_cache

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

OFF = ("serve", "m", "--no-enable-prefix-caching")
ON = ["serve", "m", "--enable-prefix-caching", "--enable-prompt-tokens-details"]


class World(PrefixWorld):
    """An engine's workload that others write to as well."""

    def workload(self, kind: str = "deployment") -> Document:
        """Read the engine's workload, with its managed fields."""
        options = ["get", kind, "vllm", "-o", "json", "--show-managed-fields"]
        found: Document = json.loads(self.kubectl(*options))
        return found

    def args(self, kind: str = "deployment") -> list[str]:
        """Return the engine's arguments in the pod template."""
        found: list[str] = self.workload(kind)["spec"]["template"]["spec"]["containers"][0]["args"]
        return found

    def generation(self, name: str = "vllm", kind: str = "deployment") -> int:
        """Return the generation, which rises with each roll-out."""
        assert name == "vllm"
        return int(self.workload(kind)["metadata"]["generation"])

    def keep_revision(self, number: int) -> None:
        """Make the ReplicaSet in which a Deployment's controller keeps the template, for `rollout undo`."""
        live = self.workload()
        template = live["spec"]["template"]
        labels = {**template["metadata"]["labels"], "pod-template-hash": str(number)}
        owner = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "vllm",
            "uid": live["metadata"]["uid"],
        }
        metadata = {**template["metadata"], "labels": labels}
        replica_set = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"vllm-{number}",
                "labels": labels,
                "annotations": {"deployment.kubernetes.io/revision": str(number)},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {**template, "metadata": metadata},
            },
        }
        self.kubectl("create", "-f", "-", stdin=json.dumps(replica_set))

    def traces(self, kind: str = "deployment") -> list[str]:
        """List what of ours is left on the workload."""
        text = json.dumps(self.workload(kind))
        return [word for word in ("cachewright", "--enable-prefix-caching") if word in text]

    async def settled(self, name: str = "demo") -> str:
        """Run passes until nothing is left to write; return the condition."""
        await self.settle(name)
        return (await self.conditions(name))["PrefixCachingReady"]


@pytest.fixture
async def world(api_server: ApiServer, namespace: str) -> AsyncIterator[World]:
    """Start with an operator whose rights reach one namespace."""
    connection = await KubeConnection.open(str(user_of_namespace(api_server, f"op-{namespace}", namespace)))
    yield World(api_server, KubeApi(connection), namespace)
    await connection.aclose()


def patching_cache(**layer: Any) -> Document:
    """Return a cache that patches Deployment `vllm`."""
    return prefix_cache(delivery="Patch", rollout="Immediate", **layer)


async def test_a_template_is_patched_once_and_a_deleted_object_leaves_nothing(world: World) -> None:
    """One change, then silence; the fence sees the same engine; the user can change what they own again."""
    world.user_applies(engine_deployment(*OFF), server_side=True)
    world.replace_pods()
    cache = patching_cache()
    cache["spec"]["rotation"] = {"fence": "Workload"}
    world.apply(cache)
    assert await world.settled() == "False WaitingForRollout"
    assert (world.args(), world.generation()) == (ON, 2)
    before = (await world.cache())["status"]["layers"]
    world.replace_pods()
    assert await world.settled() == "True Ready"
    assert (await world.conditions())["RotationComplete"] == "True Switched"
    assert (await world.cache())["status"]["layers"] == before
    versions, live = await world.versions(), world.workload()["metadata"]["resourceVersion"]
    await world.reconcile()
    assert (await world.versions(), world.workload()["metadata"]["resourceVersion"]) == (versions, live)

    world.kubectl("delete", "icache", "demo")
    # The operator was away then; it is told by the label.
    queue = WorkQueue(asyncio.get_running_loop())
    await Resync(world.api, queue, Roster(time.monotonic), [world.namespace], 300).first()
    assert queue.depth == 1
    await world.reconcile()
    assert world.args() == list(OFF)
    assert world.traces() == []
    assert world.generation() == 3
    # Owned by the user again: other words are no conflict, and words that are left out are removed.
    world.user_applies(engine_deployment("serve"), server_side=True)
    assert world.args() == ["serve"]
    world.user_applies(engine_deployment(), server_side=True)
    assert "args" not in world.workload()["spec"]["template"]["spec"]["containers"][0]
    await world.reconcile()


async def test_settings_change_and_the_layer_goes(world: World) -> None:
    """On a StatefulSet with its words in `command`; a manifest of the user's own is merged anew."""
    workload = engine_deployment()
    workload |= {"kind": "StatefulSet"}
    workload["spec"]["serviceName"] = "vllm"
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    container["command"] = ["vllm", *OFF]
    world.user_applies(workload)
    cache = patching_cache()
    cache["spec"]["layers"]["prefix"]["workloadRef"] = {"kind": "StatefulSet", "name": "vllm"}
    world.apply(cache)
    await world.settled()
    (live,) = world.workload("statefulset")["spec"]["template"]["spec"]["containers"]
    assert (live["command"], live["args"]) == (["vllm", "serve", "m"], ON[2:])
    generation = world.generation(kind="statefulset")
    world.patch("icache/demo", {"spec": {"layers": {"prefix": {"blockSize": 64}}}})
    await world.settled()
    assert world.generation(kind="statefulset") == generation + 1
    assert "--block-size=64" in world.args("statefulset")

    container["command"] = ["vllm", "serve", "other", "--no-enable-prefix-caching"]
    world.user_applies(workload)
    world.replace_pod("vllm", world.workload("statefulset")["spec"]["template"])
    await world.settled()
    (live,) = world.workload("statefulset")["spec"]["template"]["spec"]["containers"]
    assert live["command"] == ["vllm", "serve", "other"]

    world.patch("icache/demo", {"spec": {"layers": {"prefix": None}}})
    await world.settle()
    (live,) = world.workload("statefulset")["spec"]["template"]["spec"]["containers"]
    assert (live["command"], "args" in live) == (container["command"], False)
    assert world.traces("statefulset") == []
    assert ("ConfigMap", "demo-engine") not in await world.children()


@pytest.mark.parametrize(
    ("options", "who"),
    [
        ((), "kubectl-client-side-apply"),
        (("--server-side", "--force-conflicts", "--field-manager=argocd-controller"), "argocd-controller"),
    ],
)
async def test_a_tug_of_war_is_named_and_ended(world: World, options: tuple[str, ...], who: str) -> None:
    """A manifest that comes back again and again is patched twice more and then left alone."""

    def applies(words: Sequence[str]) -> None:
        manifest = json.dumps(engine_deployment(*words))
        world.kubectl("apply", *options, "-f", "-", stdin=manifest)

    applies(OFF)
    world.replace_pods()
    world.apply(patching_cache())
    for _ in range(3):
        await world.settled()
        assert world.args() == ON
        applies(OFF)
        assert world.args() == list(OFF)
    assert await world.settled() == "False TugOfWar"
    assert f"field manager {who};" in await world.message()
    generation = world.generation()
    assert world.args() == list(OFF)
    world.restart()
    assert await world.settled() == "False TugOfWar"
    assert world.generation() == generation

    applies(ON)
    world.replace_pods()
    assert await world.settled() == "True Ready"


async def test_who_undid_it_by_hand_is_not_argued_with(world: World) -> None:
    """The template as `kubectl rollout undo` brings it back stays, until the settings change."""
    world.user_applies(engine_deployment(*OFF))
    world.keep_revision(1)
    world.replace_pods()
    world.apply(patching_cache())
    await world.settled()
    world.keep_revision(2)
    world.kubectl("rollout", "undo", "deployment/vllm")
    assert await world.settled() == "False TakenBack"
    assert world.args() == list(OFF)
    world.patch("icache/demo", {"spec": {"layers": {"prefix": {"blockSize": 64}}}})
    await world.settled()
    assert "--block-size=64" in world.args()

    world.apply(prefix_cache("other", delivery="Patch", rollout="Immediate"))
    generation = world.generation()
    assert await world.settled("other") == "False NameConflict"
    assert world.generation() == generation


async def test_a_crash_after_any_write_changes_the_template_once(world: World) -> None:
    """Killed between note, patch and status, and half-way through giving back, the next process ends it."""
    world.user_applies(engine_deployment(*OFF))
    world.apply(patching_cache())
    await world.settled()
    for dies_after in (1, 2, 3):
        generation, size = world.generation(), 16 * dies_after
        world.patch("icache/demo", {"spec": {"layers": {"prefix": {"blockSize": size}}}})
        world.restart()
        world.kube.dies_after = dies_after
        with pytest.raises(ProcessKilledError):
            await world.settle()
        world.restart()
        await world.settle()
        assert (world.generation(), f"--block-size={size}" in world.args()) == (generation + 1, True)
    world.kubectl("delete", "icache", "demo")
    world.restart()
    world.kube.dies_after = 1
    with pytest.raises(ProcessKilledError):
        await world.reconcile()
    assert world.traces() == ["cachewright"]
    world.restart()
    await world.reconcile()
    assert (world.args(), world.traces()) == (list(OFF), [])
