"""`delivery: ConfigMap`: the file that an engine reads, and what is said of its pods."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cachewright.api.conditions import ConditionType
from cachewright.engines.configuring import configure
from cachewright.engines.files import file_words, settings_file
from cachewright.engines.settings import Engine, PrefixSettings
from cachewright.engines.versions import EngineVersion
from cachewright.errors import InvalidInput
from cachewright.reconcile.prefix.seen import PrefixSeen
from tests.support import prefix
from tests.support.caches import Document
from tests.support.passes import World

PATH = "/etc/cachewright/engine.yaml"


def prefix_cache(**layer: Any) -> Document:
    """Return a cache whose engine is Deployment `vllm`, and reads a file."""
    return prefix.prefix_cache(delivery="ConfigMap", workloadRef={"name": "vllm"}, **layer)


def pod(
    *args: str, created: str = "2100-01-01T00:00:00Z", mount: str = "/etc/cachewright", more: int = 0
) -> Document:
    """Return a pod of the engine that mounts the file, unless `mount` is empty."""
    containers: list[Document] = [
        {"name": "engine", "args": list(args), "volumeMounts": [{"name": "file", "mountPath": mount}]}
    ]
    containers += [{"name": f"sidecar-{number}"} for number in range(more)]
    volumes = [{"name": "file", "configMap": {"name": "demo-prefix"}}] if mount else []
    return {
        "metadata": {"name": "vllm-1", "creationTimestamp": created},
        "spec": {"containers": containers, "volumes": volumes},
    }


def told(document: Document, *pods: Document, problem: str = "") -> str:
    """Run passes over a cache and return what the condition says."""
    passes = World(document)
    passes.settle()
    passes.step(prefix=PrefixSeen(pods=tuple(pods), problem=problem))
    condition = passes.condition(ConditionType.PREFIX_CACHING_READY)
    return f"{condition['status']} {condition['reason']}: {condition['message']}"


@pytest.mark.parametrize("engine", [Engine.VLLM, Engine.SGLANG])
def test_a_file_says_what_the_arguments_say(engine: Engine) -> None:
    """Each argument is an entry, a flag without a value is true, and the order does not matter."""
    version = EngineVersion(0, 32) if engine is Engine.VLLM else EngineVersion(0, 5, 23)
    settings = PrefixSettings(block_size=32, extra_arguments=("--seed=1", "--quiet"))
    configuration = configure(engine, version, settings)
    file = yaml.safe_load(settings_file(engine, version, configuration))
    words = {f"--{key}" if value is True else f"--{key}={value}" for key, value in file.items()}
    assert words == set(configuration.words)
    assert file_words(engine, configuration) == ("--config", PATH)


def test_tensorrt_llm_has_a_file_of_its_own_shape() -> None:
    """Older versions call the flag by another name, and no argument can stand in the file."""
    version = EngineVersion(1, 0)
    configuration = configure(Engine.TENSORRT_LLM, version, PrefixSettings(block_size=64))
    assert yaml.safe_load(settings_file(Engine.TENSORRT_LLM, version, configuration)) == {
        "kv_cache_config": {"enable_block_reuse": True, "tokens_per_block": 64}
    }
    assert file_words(Engine.TENSORRT_LLM, configuration) == ("--extra_llm_api_options", PATH)
    more = configure(Engine.TENSORRT_LLM, version, PrefixSettings(extra_arguments=("--a",)))
    with pytest.raises(InvalidInput, match="extraArgs"):
        settings_file(Engine.TENSORRT_LLM, version, more)


@pytest.mark.parametrize(
    ("engine", "version", "extra", "match"),
    [
        (Engine.VLLM, EngineVersion(0, 32), ("--seed", "1"), "--flag=value"),
        (Engine.SGLANG, EngineVersion(0, 4, 10), (), "reads no file"),
    ],
)
def test_what_cannot_stand_in_a_file_is_refused(
    engine: Engine, version: EngineVersion, extra: tuple[str, ...], match: str
) -> None:
    """A sentence says so before any engine fails to start."""
    configuration = configure(engine, version, PrefixSettings(extra_arguments=extra))
    with pytest.raises(InvalidInput, match=match):
        settings_file(engine, version, configuration)


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        ([pod("--config", PATH)], "True Ready: 1 of 1 pods"),
        ([pod(f"--config={PATH}"), pod("--config", PATH)], "True Ready: 2 of 2 pods"),
        ([pod("--config", "/cfg/engine.yaml", mount="/cfg/")], "True Ready"),
        ([], "Unknown NoPods"),
        ([pod()], "False FlagMissing: 1 of 1 pods of Deployment vllm do not read the file: mount"),
        ([pod("--config", PATH, mount="/etc/other")], "False FlagMissing"),
        ([pod("--config", PATH, mount="")], "False FlagMissing"),
        ([pod("--config", PATH), pod("--config", "/mine.yaml")], "False FlagMissing: 1 of 2"),
        (
            [pod("--config", PATH, "--no-enable-prefix-caching")],
            "False FlagContradicted: Pod vllm-1 has --no-enable-prefix-caching: it turns",
        ),
        ([pod("--config", PATH, created="2001-01-01T00:00:00Z")], "False WaitingForRollout: 1 of 1 pods"),
        ([pod("--config", PATH, more=1)], "False FlagMissing: Pod vllm-1 has several containers"),
    ],
)
def test_the_condition_tells_what_pods_run(pods: list[Document], said: str) -> None:
    """Whether each reads the file, since when, and whether an argument speaks against it."""
    assert told(prefix_cache(), *pods).startswith(said)


def test_what_the_engine_cannot_do_is_said_and_nothing_is_written() -> None:
    """A setting of another engine, a workload that is not there, a version from the future."""
    assert told(prefix_cache(eviction="TLRU"), pod()).startswith("False SettingUnsupported: layers.prefix:")
    assert told(prefix_cache(), problem="Deployment vllm does not exist") == (
        "False WorkloadNotFound: layers.prefix: Deployment vllm does not exist."
    )
    newer = told(prefix_cache(engineVersion="9.9"), pod("--config", PATH))
    assert newer.startswith("True EngineVersionUnknown: 1 of 1 pods")


def test_the_file_stays_as_it_is_until_settings_change_and_goes_with_the_layer() -> None:
    """Unchanged settings keep their date; a setting that cannot be leaves the file that is there."""
    passes = World(prefix_cache())
    passes.settle()
    identity = ("ConfigMap", "demo-prefix")
    first = passes.children[identity]
    assert "enable-prefix-caching: true" in first["data"]["engine.yaml"]
    assert yaml.safe_load(first["data"]["add-to-pod-template.yaml"])["containers"][0]["args"] == [
        "--config",
        PATH,
    ]
    passes.now = passes.now.replace(year=passes.now.year + 1)
    passes.settle()
    assert passes.children[identity] == first
    layers = {"exact": {}, "prefix": prefix_cache()["spec"]["layers"]["prefix"]}
    passes.change(layers={**layers, "prefix": {**layers["prefix"], "eviction": "TLRU"}})
    passes.settle()
    assert passes.children[identity] == first
    passes.change(layers={**layers, "prefix": {**layers["prefix"], "blockSize": 32}})
    passes.settle()
    assert passes.children[identity]["metadata"]["annotations"] != first["metadata"]["annotations"]
    passes.change(layers={"exact": {}})
    passes.settle()
    assert identity not in passes.children


def test_an_engine_that_heeds_no_salt_is_told() -> None:
    """Tenants would share its cache though the object wants them apart; saying so in it settles that."""
    old = {"engine": "SGLang", "engineVersion": "0.5.10"}
    assert told(prefix_cache(**old), pod("--config", PATH)).startswith("False TenantsNotApart: ")
    assert told(prefix_cache(**old, tenantSalt=False), pod("--config", PATH)).startswith("True Ready: ")


def test_what_somebody_must_mend_is_not_hidden_by_tenants_that_share() -> None:
    """The reason is the first that needs a person, and its sentence says both."""
    old = {"engine": "SGLang", "engineVersion": "0.5.10"}
    said = told(prefix_cache(**old), pod())
    assert said.startswith("False FlagMissing: ")
    assert "Also, layers.prefix: SGLang 0.5.10" in said
    shell = told(prefix.prefix_cache(**old, workloadRef={"name": "vllm"}), pod("sh", "-c", "sglang"))
    assert shell.startswith("False FlagNotInjectable: ")
    assert told(prefix_cache(**old)).startswith("False TenantsNotApart: ")
