"""`delivery: Inject` with the operator, whose rights reach one namespace, and the chart's policy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import Harness
from tests.api.rights import user_of_namespace
from tests.support.caches import Document
from tests.support.prefix import engine_deployment, prefix_cache

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd", "prefix_policy")]

SETTINGS = "prefix.cachewright.dev/settings"
WORDS = ["--enable-prefix-caching", "--enable-prompt-tokens-details"]


class World(Harness):
    """An operator with a namespace's rights, and an engine's Deployment whose pods the test makes."""

    def user_applies(self, deployment: Document, *, server_side: bool = False) -> None:
        """Apply as the workload's user does."""
        options = ["--server-side", "--field-manager=user"] if server_side else []
        self.kubectl("apply", *options, "-f", "-", stdin=json.dumps(deployment))

    def deployment(self, name: str = "vllm") -> Document:
        """Read the engine's Deployment."""
        found: Document = json.loads(self.kubectl("get", "deployment", name, "-o", "json"))
        return found

    def stamp(self, name: str = "vllm") -> str:
        """Return the settings that its pod template names."""
        metadata = self.deployment(name)["spec"]["template"]["metadata"]
        return str((metadata.get("annotations") or {}).get(SETTINGS, ""))

    def generation(self, name: str = "vllm") -> int:
        """Return the generation, which rises with each roll-out."""
        return int(self.deployment(name)["metadata"]["generation"])

    def replace_pods(self, name: str = "vllm") -> list[str]:
        """Make a pod of the template in place of those that are there; return the engine's words."""
        self.kubectl("delete", "pod", "-l", f"app={name}", "--grace-period=0", "--force")
        template = self.deployment(name)["spec"]["template"]
        metadata = {**template["metadata"], "name": f"{name}-pod"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        made: Document = json.loads(self.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(pod)))
        words: list[str] = made["spec"]["containers"][0].get("args", [])
        return words

    async def told(self, name: str = "demo") -> str:
        """Run passes until the policy was seen to act and nothing is left to write; return the condition."""
        for _ in range(200):
            await self.settle(name)
            said = (await self.conditions(name))["PrefixCachingReady"]
            if not said.endswith(("Progressing", "PolicyAPIUnavailable")):
                return said
        raise AssertionError("the policy does not act")


@pytest.fixture
async def world(api_server: ApiServer, namespace: str) -> AsyncIterator[World]:
    """Start with one engine that runs without its prefix cache."""
    connection = await KubeConnection.open(str(user_of_namespace(api_server, f"op-{namespace}", namespace)))
    world = World(api_server, KubeApi(connection), namespace)
    world.user_applies(engine_deployment("serve", "m", "--no-enable-prefix-caching"))
    yield world
    await connection.aclose()


async def test_at_once_means_one_change_of_the_template_and_no_other(world: World) -> None:
    """The template names the settings once; passes, and the user's manifest applied anew, change nothing."""
    world.replace_pods()
    world.apply(prefix_cache(rollout="Immediate"))
    assert await world.told() == "False WaitingForRollout"
    assert world.generation() == 2
    assert world.stamp().startswith("demo-prefix-")
    mine = engine_deployment("serve", "m", "--no-enable-prefix-caching")
    template = world.deployment()["spec"]["template"]
    for server_side in (False, True):
        world.user_applies(mine, server_side=server_side)
        await world.settle()
        assert world.deployment()["spec"]["template"] == template

    assert world.replace_pods() == ["serve", "m", *WORDS]
    assert await world.told() == "True Ready"

    former, generation = world.stamp(), world.generation()
    world.patch("icache/demo", {"spec": {"layers": {"prefix": {"blockSize": 64}}}})
    assert await world.told() == "False WaitingForRollout"
    assert world.generation() == generation + 1
    kept = {name for kind, name in await world.children() if kind == "ConfigMap" and "prefix-" in name}
    assert kept == {former, world.stamp()}  # pods of the former template are still made as they were


async def test_the_next_roll_out_brings_the_settings_and_an_undo_takes_them_back(world: World) -> None:
    """Nothing rolls before the user changes the template; what a user takes back stays away."""
    first = engine_deployment("serve", "m", "--no-enable-prefix-caching")
    world.replace_pods()
    world.apply(prefix_cache())
    assert await world.told() == "False WaitingForRollout"
    assert (world.generation(), world.stamp()) == (1, "")

    second = engine_deployment("serve", "m", image="engine:2")
    world.user_applies(second)
    assert world.generation() == 2  # one change, the user's and ours
    assert world.stamp()
    assert world.replace_pods() == ["serve", "m", *WORDS]
    assert await world.told() == "True Ready"

    undo = {"op": "replace", "path": "/spec/template", "value": first["spec"]["template"]}
    world.kubectl("patch", "deployment", "vllm", "--type=json", f"--patch={json.dumps([undo])}")
    assert world.replace_pods() == ["serve", "m", "--no-enable-prefix-caching"]
    assert await world.told() == "False TakenBack"
    world.user_applies(second)
    assert world.stamp() == ""
    assert await world.told() == "False TakenBack"


async def test_two_objects_of_one_namespace_keep_to_their_engines(world: World) -> None:
    """Each engine has its own object's settings; a second object for the same engine is told whose it is."""
    world.user_applies(engine_deployment("serve", name="other"))
    world.apply(prefix_cache(rollout="Immediate"))
    await world.told()
    other = prefix_cache("other", rollout="Immediate", blockSize=64)
    other["spec"]["layers"]["prefix"]["workloadRef"] = {"name": "other"}
    world.apply(other)
    await world.told("other")
    assert world.replace_pods() == ["serve", "m", *WORDS]
    assert world.replace_pods("other") == ["serve", WORDS[0], "--block-size=64", WORDS[1]]

    world.apply(prefix_cache("third", rollout="Immediate"))
    generation = world.generation()
    assert await world.told("third") == "False NameConflict"
    assert world.generation() == generation

    # No controller collects garbage here: what goes with the object is removed by hand.
    world.kubectl("delete", "icache", "demo", "--wait=false")
    world.kubectl("delete", "configmap", "-l", "cachewright.dev/cache=demo")
    assert await _words_without_settings(world) == ["serve", "m", "--no-enable-prefix-caching"]


async def _words_without_settings(world: World) -> list[str]:
    """Make pods until the policy saw that the settings are gone."""
    words: list[str] = []
    for _ in range(200):
        words = world.replace_pods()
        if words[-1] == "--no-enable-prefix-caching":
            break
    return words


async def test_a_template_that_cannot_be_added_to_is_left_alone(world: World) -> None:
    """The condition gives the line to add, and the template does not change."""
    shell = engine_deployment("sh", "-c", "vllm serve m")
    world.user_applies(shell)
    generation = world.generation()
    world.apply(prefix_cache(rollout="Immediate"))
    assert await world.told() == "False FlagNotInjectable"
    assert world.generation() == generation
    (said,) = [
        each["message"]
        for each in (await world.cache())["status"]["conditions"]
        if each["type"] == "PrefixCachingReady"
    ]
    assert "--enable-prefix-caching" in said
    assert world.stamp() == ""
