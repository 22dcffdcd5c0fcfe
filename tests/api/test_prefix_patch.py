"""`delivery: Patch` on a real API server: field managers of every kind, and nothing of ours left behind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import Harness
from tests.api.rights import user_of_namespace
from tests.support.caches import Document
from tests.support.prefix import engine_deployment, prefix_cache

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

OFF = ("serve", "m", "--no-enable-prefix-caching")
ON = ["serve", "m", "--enable-prefix-caching", "--enable-prompt-tokens-details"]


class World(Harness):
    """An operator with a namespace's rights, and an engine's workload that others write to as well."""

    def user_applies(self, workload: Document, *options: str) -> None:
        """Apply as the workload's user does."""
        self.kubectl("apply", *options, "-f", "-", stdin=json.dumps(workload))

    def workload(self, kind: str = "deployment") -> Document:
        """Read the engine's workload, with its managed fields."""
        options = ["get", kind, "vllm", "-o", "json", "--show-managed-fields"]
        found: Document = json.loads(self.kubectl(*options))
        return found

    def args(self, kind: str = "deployment") -> list[str]:
        """Return the engine's arguments in the pod template."""
        found: list[str] = self.workload(kind)["spec"]["template"]["spec"]["containers"][0]["args"]
        return found

    def generation(self, kind: str = "deployment") -> int:
        """Return the generation, which rises with each roll-out."""
        return int(self.workload(kind)["metadata"]["generation"])

    def make_pod(self, kind: str = "deployment") -> None:
        """Make a pod of the template in place of the one that is there."""
        self.kubectl("delete", "pod", "-l", "app=vllm", "--grace-period=0", "--force")
        template = self.workload(kind)["spec"]["template"]
        metadata = {**template["metadata"], "name": "vllm-pod"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        self.kubectl("create", "-f", "-", stdin=json.dumps(pod))

    async def told(self) -> str:
        """Run passes until nothing is left to write; return the condition."""
        await self.settle()
        return (await self.conditions())["PrefixCachingReady"]

    async def message(self) -> str:
        """Return what the condition says in full."""
        conditions: list[dict[str, Any]] = (await self.cache())["status"]["conditions"]
        return str(next(c["message"] for c in conditions if c["type"] == "PrefixCachingReady"))

    def traces(self, kind: str = "deployment") -> list[str]:
        """List what of ours is left on the workload."""
        text = json.dumps(self.workload(kind)).replace("last-applied-configuration", "")
        return [word for word in ("cachewright", "--enable-prefix-caching") if word in text]


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
    world.user_applies(engine_deployment(*OFF), "--server-side", "--field-manager=user")
    world.make_pod()
    cache = patching_cache()
    cache["spec"]["rotation"] = {"fence": "Workload"}
    world.apply(cache)
    assert await world.told() == "False WaitingForRollout"
    assert (world.args(), world.generation()) == (ON, 2)
    before = (await world.cache())["status"]["layers"]
    world.make_pod()
    assert await world.told() == "True Ready"
    assert (await world.conditions())["RotationComplete"] == "True Switched"
    assert (await world.cache())["status"]["layers"] == before
    versions, live = await world.versions(), world.workload()["metadata"]["resourceVersion"]
    await world.reconcile()
    assert (await world.versions(), world.workload()["metadata"]["resourceVersion"]) == (versions, live)

    world.kubectl("delete", "icache", "demo")
    await world.reconcile()
    assert world.args() == list(OFF)
    assert world.traces() == []
    assert world.generation() == 3
    # Owned by the user again: other words are no conflict, and words that are left out are removed.
    world.user_applies(engine_deployment("serve"), "--server-side", "--field-manager=user")
    assert world.args() == ["serve"]
    world.user_applies(engine_deployment(), "--server-side", "--field-manager=user")
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
    await world.told()
    (live,) = world.workload("statefulset")["spec"]["template"]["spec"]["containers"]
    assert (live["command"], live["args"]) == (["vllm", "serve", "m"], ON[2:])
    generation = world.generation("statefulset")
    world.patch("icache/demo", {"spec": {"layers": {"prefix": {"blockSize": 64}}}})
    await world.told()
    assert world.generation("statefulset") == generation + 1
    assert "--block-size=64" in world.args("statefulset")

    container["command"] = ["vllm", "serve", "other", "--no-enable-prefix-caching"]
    world.user_applies(workload)
    world.make_pod("statefulset")
    await world.told()
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
    world.user_applies(engine_deployment(*OFF), *options)
    world.make_pod()
    world.apply(patching_cache())
    for _ in range(3):
        await world.told()
        assert world.args() == ON
        world.user_applies(engine_deployment(*OFF), *options)
        assert world.args() == list(OFF)
    assert await world.told() == "False TugOfWar"
    assert f"field manager {who};" in await world.message()
    generation = world.generation()
    assert world.args() == list(OFF)
    world.restart()
    assert await world.told() == "False TugOfWar"
    assert world.generation() == generation

    world.user_applies(engine_deployment(*ON), *options)
    world.make_pod()
    assert await world.told() == "True Ready"


async def test_who_undid_it_by_hand_is_not_argued_with(world: World) -> None:
    """The template as `kubectl rollout undo` brings it back stays, until the settings change."""
    world.user_applies(engine_deployment(*OFF))
    template = world.workload()["spec"]["template"]
    world.make_pod()
    world.apply(patching_cache())
    await world.told()
    undo = json.dumps([{"op": "replace", "path": "/spec/template", "value": template}])
    world.kubectl("patch", "deployment", "vllm", "--type=json", f"--patch={undo}", "--field-manager=kubectl")
    assert await world.told() == "False TakenBack"
    assert world.args() == list(OFF)
    world.patch("icache/demo", {"spec": {"layers": {"prefix": {"blockSize": 64}}}})
    await world.told()
    assert "--block-size=64" in world.args()

    world.apply(prefix_cache("other", delivery="Patch", rollout="Immediate"))
    generation = world.generation()
    await world.settle("other")
    assert (await world.conditions("other"))["PrefixCachingReady"] == "False NameConflict"
    assert world.generation() == generation
