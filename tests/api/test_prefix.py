"""`delivery: Inject` with the operator, whose rights reach one namespace, and the chart's policy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from e2e.cluster.apiserver import ApiServer
from e2e.engine import Engine as StandIn
from e2e.engine import PrefixCache
from tests.api.prefix_world import PrefixWorld
from tests.api.rights import user_of_namespace
from tests.support.prefix import engine_deployment, prefix_cache

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd", "prefix_policy")]

WORDS = ["--enable-prefix-caching", "--enable-prompt-tokens-details"]


@pytest.fixture
async def world(api_server: ApiServer, namespace: str) -> AsyncIterator[PrefixWorld]:
    """Start with one engine that runs without its prefix cache."""
    connection = await KubeConnection.open(str(user_of_namespace(api_server, f"op-{namespace}", namespace)))
    world = PrefixWorld(api_server, KubeApi(connection), namespace)
    world.user_applies(engine_deployment("serve", "m", "--no-enable-prefix-caching"))
    yield world
    await connection.aclose()


async def test_at_once_means_one_change_of_the_template_and_no_other(world: PrefixWorld) -> None:
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


async def test_the_next_roll_out_brings_the_settings_and_an_undo_takes_them_back(world: PrefixWorld) -> None:
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


async def test_two_objects_of_one_namespace_keep_to_their_engines(world: PrefixWorld) -> None:
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


async def _words_without_settings(world: PrefixWorld) -> list[str]:
    """Make pods until the policy saw that the settings are gone."""
    words: list[str] = []
    for _ in range(200):
        words = world.replace_pods()
        if words[-1] == "--no-enable-prefix-caching":
            break
    return words


async def test_what_an_engine_counts_comes_into_status_and_no_more_is_written(
    world: PrefixWorld,
) -> None:
    """The rate is told in twentieths and rarely; a switch has the engine empty its cache."""
    cache = PrefixCache(block_size=4)
    async with StandIn(prefix_cache=cache, dev_mode=True) as engine:
        port = urlsplit(engine.url).port
        world.user_applies(engine_deployment("serve", "m", f"--port={port}"))
        world.apply(prefix_cache(rollout="Immediate", flush="AfterSwitch"))
        assert await world.told() == "Unknown NoPods"
        world.replace_pods()
        running = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
        world.patch("pod/vllm-pod", {"status": running}, "--subresource=status")
        prompt = {"prompt": " ".join(str(number) for number in range(400))}
        for _ in range(5):
            cache.use(prompt)
        world.monotonic += 60
        assert await world.told() == "True Ready"
        told = (await world.cache())["status"]["prefix"]
        assert (told["workload"], told["hitRate"]) == ("Deployment vllm", 0.8)
        before = await world.cache()
        for _ in range(3):
            world.monotonic += 60
            cache.use(prompt)
            await world.reconcile()
        assert await world.cache() == before

        world.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
        await world.settle()
        keyspaces = {each["name"]: each["keyspace"] for each in (await world.cache())["status"]["layers"]}
        assert (await world.cache())["status"]["prefix"]["flushed"] == keyspaces["Prefix"]
        assert cache.use(prompt).cached == 0


async def test_a_template_that_cannot_be_added_to_is_left_alone(world: PrefixWorld) -> None:
    """The condition gives the line to add, and the template does not change."""
    shell = engine_deployment("sh", "-c", "vllm serve m")
    world.user_applies(shell)
    generation = world.generation()
    world.apply(prefix_cache(rollout="Immediate"))
    assert await world.told() == "False FlagNotInjectable"
    assert world.generation() == generation
    assert "--enable-prefix-caching" in await world.message()
    assert world.stamp() == ""


async def test_a_namespace_that_goes_ends_passes_in_peace(world: PrefixWorld) -> None:
    """The pod that is to prove that the policy acts is refused then, which is no fault of anybody's."""
    world.apply(prefix_cache())
    await world.reconcile()
    world.kubectl("delete", "namespace", world.namespace, "--wait=false")
    outcomes = [await world.reconcile() for _ in range(3)]
    assert outcomes[-1].ready is None
    assert not any(outcome.retry for outcome in outcomes)
