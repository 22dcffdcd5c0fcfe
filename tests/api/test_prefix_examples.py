"""The examples of engines: each applied as it is, with what the operator and the policy make of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from e2e.cluster.apiserver import ApiServer
from tests.api.prefix_world import PrefixWorld
from tests.api.rights import user_of_namespace
from tests.support.caches import Document

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd", "prefix_policy")]

EXAMPLES = Path(__file__).parents[2] / "examples"


class Example(PrefixWorld):
    """One file of examples/, applied."""

    def apply_file(self, name: str) -> tuple[Document, Document]:
        """Apply all of it as a user does; return the InferenceCache and the engine's workload."""
        cache, workload = yaml.safe_load_all((EXAMPLES / f"prefix-{name}.yaml").read_text())
        self.kubectl("apply", "-f", "-", stdin=json.dumps(workload))
        self.apply(cache)
        return cache, workload

    def live(self, workload: Document) -> Document:
        """Read the workload."""
        found: Document = json.loads(
            self.kubectl("get", workload["kind"], workload["metadata"]["name"], "-o", "json")
        )
        return found

    def pod_words(self, workload: Document) -> list[str]:
        """Make a pod of the workload's template; return its engine's whole command line."""
        template = self.live(workload)["spec"]["template"]
        self.replace_pod("made", template)
        pod: Document = json.loads(self.kubectl("get", "pod", "made-pod", "-o", "json"))
        (container,) = pod["spec"]["containers"]
        return [*container.get("command", []), *container.get("args", [])]


@pytest.fixture
async def example(api_server: ApiServer, namespace: str) -> AsyncIterator[Example]:
    """Start with an operator whose rights reach one namespace."""
    connection = await KubeConnection.open(str(user_of_namespace(api_server, f"op-{namespace}", namespace)))
    yield Example(api_server, KubeApi(connection), namespace)
    await connection.aclose()


async def test_vllm_gets_its_words_with_the_next_roll_out(example: Example) -> None:
    """Nothing is rolled; the user's next change of the template brings the settings."""
    _, workload = example.apply_file("vllm")
    assert "--no-enable-prefix-caching" in example.pod_words(workload)
    assert await example.told("vllm") == "False WaitingForRollout"
    workload["spec"]["template"]["metadata"]["annotations"] = {"rolled": "by hand"}
    example.kubectl("apply", "-f", "-", stdin=json.dumps(workload))
    assert example.pod_words(workload) == [
        "meta-llama/Llama-3.1-8B-Instruct",
        "--port=8000",
        "--enable-prefix-caching",
        "--block-size=32",
        "--prefix-caching-hash-algo=sha256_cbor",
        "--enable-prompt-tokens-details",
    ]
    assert await example.told("vllm") == "True Ready"


async def test_sglang_is_patched(example: Example) -> None:
    """The switch that turns the cache off goes, and the second tier comes."""
    _, workload = example.apply_file("sglang")
    await example.settle("sglang")
    words = example.pod_words(workload)
    assert "--disable-radix-cache" not in words
    assert {"--radix-eviction-policy=lfu", "--enable-hierarchical-cache"} <= set(words)
    await example.settle("sglang")
    assert (await example.conditions("sglang"))["PrefixCachingReady"] == "True Ready"


async def test_tensorrt_llm_reads_its_file(example: Example) -> None:
    """The Deployment mounts and names the ConfigMap already."""
    _, workload = example.apply_file("tensorrt-llm")
    await example.settle("tensorrt-llm")
    example.pod_words(workload)
    assert await example.told("tensorrt-llm") == "True Ready"
    file = example.kubectl("get", "configmap", "tensorrt-llm-prefix", "-o", r"jsonpath={.data.engine\.yaml}")
    assert yaml.safe_load(file)["kv_cache_config"]["enable_block_reuse"] is True
