"""The chart's admission policy on a real API server: what it makes of pods, shape by shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cachewright.api.inference_cache import InferenceCache
from cachewright.crd.validation import load
from cachewright.engines.arguments import contradictions, missing_arguments
from cachewright.engines.tensorrt_llm import FILE_PATH
from cachewright.reconcile.prefix.injection import settings_words
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.prefix.target import PrefixTarget, prefix_target
from cachewright.reconcile.prefix.wish import PrefixWish, prefix_wish
from cachewright.render.prefix_settings import build_prefix_settings_config_map, settings_data
from e2e.cluster.apiserver import ApiServer
from e2e.cluster.processes import wait_until
from tests.support.caches import Document
from tests.support.prefix import engine_template, prefix_cache

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd", "prefix_policy")]

VLLM = ["--enable-prefix-caching", "--block-size=32", "--enable-prompt-tokens-details"]
SGLANG = ["--page-size=32", "--enable-cache-report", "--enable-metrics"]


class Engines:
    """Settings for each engine in one namespace, and pods that are made and thrown away."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.server = server
        self.namespace = namespace
        self.settings: dict[str, str] = {}
        self.wishes: dict[str, PrefixWish] = {}
        for engine, version in (("VLLM", "0.32.0"), ("SGLang", "0.5.23"), ("TensorRTLLM", "1.3.0")):
            cache = load(
                prefix_cache(name=engine.lower(), engine=engine, engineVersion=version, blockSize=32)
            )
            wish, target = self._target(cache)
            self.wishes[engine] = wish
            self.settings[engine] = target.name
            data = settings_data(cache.metadata.name, settings_words(wish, target))
            self.apply({**build_prefix_settings_config_map(cache, target.name, data, {})})

    def _target(self, cache: InferenceCache) -> tuple[PrefixWish, PrefixTarget]:
        wish = prefix_wish(cache.spec)
        assert wish is not None
        workload = {"spec": {"selector": {"matchLabels": {"app": "vllm"}}, "template": engine_template("x")}}
        target = prefix_target(wish, PrefixSeen(workload), cache.metadata.name)
        assert target is not None
        return wish, target

    def apply(self, manifest: Document) -> None:
        """Apply as an administrator, without an owner that does not exist here."""
        metadata = {**manifest["metadata"], "namespace": self.namespace, "ownerReferences": []}
        self.server.kubectl("apply", "-f", "-", stdin=json.dumps({**manifest, "metadata": metadata}))

    def made(self, template: Document, settings: str = "", namespace: str = "", **labels: str) -> Document:
        """Return what becomes of a pod of this template."""
        metadata = {
            "name": "made",
            "namespace": namespace or self.namespace,
            "labels": {**template["metadata"]["labels"], **labels},
            "annotations": {"prefix.cachewright.dev/settings": settings} if settings else {},
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        options = ["create", "--dry-run=server", "-o", "json", "-f", "-"]
        made: Document = json.loads(self.server.kubectl(*options, stdin=json.dumps(pod)))
        return made


@pytest.fixture
def engines(api_server: ApiServer, namespace: str) -> Engines:
    """Settings that the policy acts on already."""
    found = Engines(api_server, namespace)

    def acts(engine: str) -> Callable[[], bool]:
        template = engine_template("serve")
        return lambda: _words(found.made(template, found.settings[engine])) != ["serve"]

    for engine in found.settings:
        wait_until(acts(engine), f"the policy acts on {engine}'s settings", 60)
    return found


def _words(pod: Document, container: int = 0) -> list[str]:
    found = pod["spec"]["containers"][container]
    return [*(found.get("command") or []), *(found.get("args") or [])]


LAUNCH = ["python3", "-m", "sglang.launch_server"]

SHAPES: dict[str, tuple[str, Document, list[str]]] = {
    "args": ("VLLM", engine_template("serve", "m"), ["serve", "m", *VLLM]),
    "switched-off": (
        "VLLM",
        engine_template("serve", "--no-enable-prefix-caching", "--no-enable-prefix-caching=true", "m"),
        ["serve", "m", *VLLM],
    ),
    "other-values": (
        "VLLM",
        engine_template("--block_size", "16", "--block-size=8", "--enable-prefix", "--seed", "1"),
        ["--seed", "1", *VLLM],
    ),
    "a-switch-takes-no-word-along": (
        "VLLM",
        engine_template("--enable-prefix-caching", "m", "--block-size", "--seed=1"),
        ["m", "--seed=1", *VLLM],
    ),
    "odd-words": (
        "VLLM",
        engine_template("--json", '{"a":\n"\\\\b"}', "--", "$(HOME)", ""),
        ["--json", '{"a":\n"\\\\b"}', "--", "$(HOME)", "", *VLLM],
    ),
    "command-alone": ("SGLang", engine_template(command=[*LAUNCH, "--tp=2"]), [*LAUNCH, "--tp=2", *SGLANG]),
    "command-switched-off": (
        "SGLang",
        engine_template("--tp=2", command=[*LAUNCH, "--disable-radix-cache", "--page-size", "1"]),
        [*LAUNCH, "--tp=2", *SGLANG],
    ),
    "neither": ("VLLM", engine_template(), []),
    "shell": ("VLLM", engine_template(command=["sh", "-c", "vllm serve m"]), ["sh", "-c", "vllm serve m"]),
    "shell-in-args": ("VLLM", engine_template("/bin/bash", "-lc", "x"), ["/bin/bash", "-lc", "x"]),
    "script": ("VLLM", engine_template(command=["bash", "run.sh"]), ["bash", "run.sh"]),
    "file": ("TensorRTLLM", engine_template("serve", "m"), ["serve", "m", f"--config={FILE_PATH}"]),
    "own-file": (
        "TensorRTLLM",
        engine_template("--extra_llm_api_options", "/mine.yaml"),
        ["--extra_llm_api_options", "/mine.yaml"],
    ),
}


def test_each_shape_is_decided_and_no_pod_is_broken(engines: Engines) -> None:
    """Words go to the engine's container alone, and where they would break it they are left out."""
    for name, (engine, template, words) in SHAPES.items():
        pod = engines.made(template, engines.settings[engine])
        assert _words(pod) == words, name
        container = pod["spec"]["containers"][0]
        assert container["env"] == template["spec"]["containers"][0]["env"], name
        assert "command" not in container or container["command"], name
        config = engines.wishes[engine].configuration
        assert config is not None
        edited = words != _words({"spec": template["spec"]})
        if edited:
            assert not missing_arguments(words, config), name
            assert not contradictions(words, config), name
        assert ("prefix.cachewright.dev/original" in pod["metadata"].get("annotations", {})) is edited, name


def test_the_file_is_mounted_beside_what_is_there(engines: Engines) -> None:
    """A pod with volumes keeps them; one without gets its first."""
    bare = engines.made(engine_template("serve"), engines.settings["TensorRTLLM"])
    mine = engine_template("serve")
    mine["spec"]["volumes"] = [{"name": "mine", "emptyDir": {}}]
    mine["spec"]["containers"][0]["volumeMounts"] = [{"name": "mine", "mountPath": "/mine"}]
    both = engines.made(mine, engines.settings["TensorRTLLM"])
    for pod, names in ((bare, ["cachewright-prefix"]), (both, ["mine", "cachewright-prefix"])):
        assert [volume["name"] for volume in pod["spec"]["volumes"]] == names
        mounts = pod["spec"]["containers"][0]["volumeMounts"]
        assert [mount["name"] for mount in mounts] == names
        assert pod["spec"]["volumes"][-1]["configMap"]["name"] == engines.settings["TensorRTLLM"]


def test_other_containers_pods_and_namespaces_are_left_alone(engines: Engines) -> None:
    """Whoever does not name the settings, or is not the workload that they are for, stays as it was."""
    crowd = engine_template("--no-enable-prefix-caching")
    other: dict[str, Any] = {"name": "other", "image": "x", "args": ["--no-enable-prefix-caching"]}
    crowd["spec"]["containers"] = [other, *crowd["spec"]["containers"]]
    crowd["spec"]["initContainers"] = [{**other, "name": "init"}]
    pod = engines.made(crowd, engines.settings["VLLM"])
    assert (_words(pod, 0), _words(pod, 1)) == (other["args"], VLLM)
    assert pod["spec"]["initContainers"][0]["args"] == other["args"]

    plain = engine_template("serve")
    for made in (
        engines.made(plain),
        engines.made(plain, "vllm-prefix-0000000000"),
        engines.made(plain, engines.settings["VLLM"], app="another"),
        engines.made(plain, engines.settings["VLLM"], namespace="default"),
    ):
        assert _words(made) == ["serve"]
        assert "prefix.cachewright.dev/original" not in made["metadata"].get("annotations", {})


def test_no_pod_is_refused_for_what_the_policy_cannot_read(engines: Engines) -> None:
    """Settings that are empty, odd or gone: the pod is made as its user wrote it."""
    labels = {"app.kubernetes.io/name": "cachewright", "app.kubernetes.io/component": "prefix"}
    for name, data in (("none", None), ("empty", {}), ("odd", {"labels": "a", "container": "engine"})):
        engines.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}
            | ({"data": data} if data is not None else {})
        )
    plain = engine_template("serve", "--no-enable-prefix-caching")
    for name in ("none", "empty", "odd", "gone"):
        assert _words(engines.made(plain, name)) == ["serve", "--no-enable-prefix-caching"], name
    # The others' settings are added all the same.
    assert _words(engines.made(engine_template("serve"), engines.settings["VLLM"])) == ["serve", *VLLM]
