"""`delivery: Patch` of VLLMRuntime and LLMInferenceService, by definitions of their shape."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from cachewright.kube.permissions import CACHE_PERMISSIONS, STACK_PERMISSIONS
from e2e.cluster.apiserver import ApiServer
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import wait_until
from tests.api.harness import SETTINGS
from tests.api.prefix_world import PrefixWorld
from tests.api.rights import grant
from tests.support.caches import Document
from tests.support.prefix import prefix_cache
from tests.support.stacks import LLM_INFERENCE_SERVICE, VLLM_RUNTIME

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd", "stacks")]

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = (
    "vllmruntimes.v1alpha1.production-stack.vllm.ai",
    "llminferenceservices.v1alpha1.serving.kserve.io",
    "llminferenceservices.v1alpha2.serving.kserve.io",
)
OURS = ["--enable-prefix-caching", "--block-size=32", "--enable-prompt-tokens-details"]


class World(PrefixWorld):
    """An engine that a stack runs; the test makes its pods as the stack would."""

    def live(self, kind: str, name: str = "chat") -> Document:
        """Read the stack's object, with its managed fields."""
        options = ["get", kind, name, "-o", "json", "--show-managed-fields"]
        found: Document = json.loads(self.kubectl(*options))
        return found

    def by_user(self, document: Document) -> None:
        """Apply as the stack's user does."""
        manifest = json.dumps({**document, "metadata": {"name": "chat"}})
        self.kubectl("apply", "--server-side", "--field-manager=user", "-f", "-", stdin=manifest)

    def runs(self, container: Document) -> None:
        """Make the engine's pod."""
        template = {"metadata": {"labels": {"app": "chat"}}, "spec": {"containers": [container]}}
        self.replace_pod("chat", template)

    async def settled(self) -> str:
        """Run passes until nothing is left to write; return the condition."""
        await self.settle()
        return (await self.conditions())["PrefixCachingReady"]


def stack_cache(api_version: str, kind: str) -> Document:
    """Return a cache that patches such an object."""
    selector = {"matchLabels": {"app": "chat"}}
    ref = {"apiVersion": api_version, "kind": kind, "name": "chat", "podSelector": selector}
    return prefix_cache(delivery="Patch", rollout="Immediate", blockSize=32, workloadRef=ref)


@pytest.fixture(scope="session")
def stacks(api_server: ApiServer) -> None:
    """Install the definitions."""
    for definition in (VLLM_RUNTIME, LLM_INFERENCE_SERVICE):
        api_server.kubectl("apply", "-f", "-", stdin=json.dumps(definition))

    def are_served() -> bool:
        # A definition that is established may have no storage yet.
        try:
            for name in NAMES:
                api_server.kubectl("get", name)
        except ClusterError:
            return False
        return True

    wait_until(are_served, "the definitions are not served", 60)


@pytest.fixture
async def world(api_server: ApiServer, namespace: str) -> AsyncIterator[World]:
    """Start with an operator that has rights to stacks, in one namespace."""
    user = f"stacks-{namespace}"
    grant(api_server, user, (*CACHE_PERMISSIONS, *STACK_PERMISSIONS), namespace)
    connection = await KubeConnection.open(str(api_server.user_kubeconfig(user)))
    world = World(api_server, KubeApi(connection), namespace)
    world.reconciler = replace(world.reconciler, settings=replace(SETTINGS, engine_stacks=True))
    yield world
    await connection.aclose()


async def test_a_runtime_of_the_production_stack_gets_its_typed_fields(world: World) -> None:
    """The switch has a field; what has none goes to extraArgs; all of it is given back."""
    version, kind = "production-stack.vllm.ai/v1alpha1", "VLLMRuntime"
    config = {"gpuMemoryUtilization": "0.8", "extraArgs": ["--seed=1", "--block-size", "16"], "port": 8000}
    runtime = {"apiVersion": version, "kind": kind, "spec": {"vllmConfig": config}}
    world.by_user(runtime)
    world.runs({"name": "vllm", "image": "vllm:1", "args": ["--no-enable-prefix-caching"]})
    world.apply(stack_cache(version, kind))
    assert await world.settled() == "False WaitingForRollout"
    patched = world.live(kind)
    assert patched["spec"]["vllmConfig"] == {
        "enablePrefixCaching": True,
        "gpuMemoryUtilization": "0.8",
        "extraArgs": ["--seed=1", *OURS[1:]],
        "port": 8000,
    }
    world.runs({"name": "vllm", "image": "vllm:1", "args": [OURS[0], "--seed=1", *OURS[1:]]})
    assert await world.settled() == "True Ready"
    assert world.live(kind)["metadata"]["generation"] == patched["metadata"]["generation"]

    world.kubectl("delete", "icache", "demo")
    await world.reconcile()
    left = world.live(kind)
    assert left["spec"]["vllmConfig"] == config
    assert "cachewright" not in json.dumps(left)
    config["extraArgs"] = ["--seed=2"]
    world.by_user(runtime)


async def test_a_service_of_kserve_gets_its_variable(world: World) -> None:
    """Beside the user's other variables, and word by word; a service without any gets it and loses it."""
    version, kind = "serving.kserve.io/v1alpha2", "LLMInferenceService"
    home = {"name": "HOME", "value": "/home"}
    mine = {"name": "VLLM_ADDITIONAL_ARGS", "value": "--no-enable-prefix-caching --chat-template 'a b'"}
    service: Document = {"apiVersion": version, "kind": kind, "spec": {"model": {"uri": "hf://m"}}}
    bare = json.loads(json.dumps(service))
    service["spec"]["template"] = {"containers": [{"name": "main", "env": [home, mine]}]}
    world.by_user(service)
    world.apply(stack_cache(version, kind))
    assert await world.settled() == "Unknown NoPods"
    (main,) = world.live(kind)["spec"]["template"]["containers"]
    wanted = {**mine, "value": f"--chat-template 'a b' {' '.join(OURS)}"}
    assert main["env"] == [home, wanted]
    world.runs({"name": "main", "image": "vllm:1", "command": ["bash", "-c", "x"], "env": [home, wanted]})
    assert await world.settled() == "True Ready"

    world.patch("icache/demo", {"spec": {"layers": {"prefix": None}}})
    await world.settle()
    left = world.live(kind)
    assert left["spec"] == service["spec"]
    assert "cachewright" not in json.dumps(left)

    world.by_user(bare)
    assert "template" not in world.live(kind)["spec"]
    world.apply(stack_cache(version, kind))
    await world.settled()
    assert OURS[0] in json.dumps(world.live(kind)["spec"])
    world.kubectl("delete", "icache", "demo")
    await world.reconcile()
    assert OURS[0] not in json.dumps(world.live(kind))
    assert "main" not in json.dumps(world.live(kind)["spec"])


@pytest.mark.parametrize("name", ["production-stack", "kserve"])
async def test_the_examples_of_stacks_do_as_they_say(world: World, name: str) -> None:
    """Each file is applied as it is, and the stack's object then says that the prefix cache is on."""
    cache, stack = yaml.safe_load_all((EXAMPLES / f"prefix-{name}.yaml").read_text())
    world.kubectl("apply", "-f", "-", stdin=json.dumps(stack))
    world.apply(cache)
    await world.settle(name)
    assert (await world.conditions(name))["PrefixCachingReady"] == "Unknown NoPods"
    before, live = stack["spec"], world.live(stack["kind"], "llama")["spec"]
    if name == "kserve":
        (main,) = live["template"]["containers"]
        assert main["env"][0]["value"] == f"--max-model-len=16384 {OURS[0]} {OURS[2]}"
        assert main["resources"] == before["template"]["containers"][0]["resources"]
    else:
        extra = [*before["vllmConfig"]["extraArgs"], *OURS[1:]]
        changed = {"enablePrefixCaching": True, "extraArgs": extra}
        assert live["vllmConfig"].items() >= (before["vllmConfig"] | changed).items()
