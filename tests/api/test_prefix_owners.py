"""`delivery: Inject` for pods of any owner, and beside a fence: what was injected is no new workload."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from e2e.cluster.apiserver import ApiServer
from tests.api.prefix_world import PrefixWorld
from tests.api.rights import user_of_namespace
from tests.support.caches import Document
from tests.support.prefix import engine_deployment, engine_template, prefix_cache

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd", "prefix_policy")]

WORDS = ["--enable-prefix-caching", "--enable-prompt-tokens-details"]
OWNERS = {
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", {"leaderworkerset.sigs.k8s.io/name": "vllm"}),
    "RayCluster": ("ray.io/v1", {"ray.io/cluster": "vllm", "ray.io/is-ray-node": "yes"}),
}


@pytest.fixture
async def world(api_server: ApiServer, namespace: str) -> AsyncIterator[PrefixWorld]:
    """Start with an operator whose rights reach one namespace."""
    connection = await KubeConnection.open(str(user_of_namespace(api_server, f"op-{namespace}", namespace)))
    yield PrefixWorld(api_server, KubeApi(connection), namespace)
    await connection.aclose()


@pytest.mark.parametrize("kind", OWNERS)
async def test_pods_are_found_by_label_whoever_owns_them(world: PrefixWorld, kind: str) -> None:
    """The condition gives the annotation for the owner's pod template; pods that carry it get the words.

    The operator asks for no right to such kinds: it looks at their pods alone.
    """
    api_version, labels = OWNERS[kind]
    template = engine_template("serve", "--no-enable-prefix-caching")
    template["metadata"]["labels"] = dict(labels)
    sidecar: Document = {"name": "sidecar", "image": "sidecar:1", "args": ["--no-enable-prefix-caching"]}
    template["spec"]["containers"].append(sidecar)
    world.replace_pod("leader", template)
    ref = {
        "apiVersion": api_version,
        "kind": kind,
        "name": "vllm",
        "container": "engine",
        "podSelector": {"matchLabels": labels},
    }
    cache = prefix_cache(workloadRef=ref)
    cache["spec"]["model"]["workloadRef"] = ref
    cache["spec"]["rotation"] = {"fence": "Workload"}
    world.apply(cache)
    assert await world.told() == "False WaitingForRollout"
    key, _, name = (
        (await world.message()).partition("add the annotation ")[2].split(" to ")[0].partition(": ")
    )
    assert name.startswith("demo-prefix-")
    before = (await world.cache())["status"]["layers"]

    template["metadata"]["annotations"] = {key: name}
    assert world.replace_pod("leader", template) == ["serve", *WORDS]
    assert await world.told() == "True Ready"
    worker: Document = {**template, "metadata": {**template["metadata"], "annotations": {}}}
    world.replace_pod("worker", worker)
    assert await world.told() == "False WaitingForRollout"
    assert (await world.message()).startswith("1 of 2 pods")
    # To the fence all of them run the same engine.
    assert (await world.conditions())["RotationComplete"] == "True Switched"
    assert (await world.cache())["status"]["layers"] == before


async def test_a_fence_takes_injected_words_for_no_new_workload(world: PrefixWorld) -> None:
    """Beside each other and one after the other, pods with the words and without are one version."""
    world.user_applies(engine_deployment("serve", "m", "--no-enable-prefix-caching"))
    world.replace_pods()
    cache = prefix_cache(rollout="Immediate")
    cache["spec"]["rotation"] = {"fence": "Workload", "deadline": "30m"}
    world.apply(cache)
    assert await world.told() == "False WaitingForRollout"
    before = (await world.cache())["status"]["layers"]
    template = world.deployment()["spec"]["template"]
    assert world.replace_pod("new", template) == ["serve", "m", *WORDS]
    assert await world.told() == "False WaitingForRollout"
    assert (await world.conditions())["RotationComplete"] == "True Switched"
    world.kubectl("delete", "pod", "vllm-pod", "--grace-period=0", "--force")
    assert await world.told() == "True Ready"
    assert (await world.conditions())["RotationComplete"] == "True Switched"
    assert (await world.cache())["status"]["layers"] == before
