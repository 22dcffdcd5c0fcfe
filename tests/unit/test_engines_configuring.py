"""What each engine is started with, per version, and what is refused with a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cachewright.engines.configuration import UnsupportedSetting
from cachewright.engines.configuring import configure, is_known_version
from cachewright.engines.settings import Connector, Engine, Eviction, HashAlgorithm, PrefixSettings
from cachewright.engines.triton import check_model
from cachewright.engines.versions import EngineVersion
from cachewright.errors import InvalidInput
from e2e.parsers.__main__ import rendered
from tests.conftest import CompareGolden

PLAIN = PrefixSettings()
FULL = {
    Engine.VLLM: PrefixSettings(
        block_size=32,
        hash_algorithm=HashAlgorithm.XXHASH_CBOR,
        eviction=Eviction.LRU,
        gpu_memory_share=0.9,
        host_memory_bytes=64 * 1024**3,
        connector=Connector.LMCACHE,
        events_endpoint="tcp://*:5557",
        extra_arguments=("--max-num-seqs=64",),
    ),
    Engine.SGLANG: PrefixSettings(
        block_size=64,
        eviction=Eviction.PRIORITY,
        gpu_memory_share=0.85,
        host_memory_bytes=64 * 1000**3,
        connector=Connector.NATIVE,
        events_endpoint="tcp://*:5557",
    ),
    Engine.TENSORRT_LLM: PrefixSettings(
        block_size=32,
        eviction=Eviction.PRIORITY,
        gpu_memory_share=0.9,
        host_memory_bytes=64 * 1024**3,
        disk_bytes=500 * 1024**3,
        disk_path="/var/cache/kv",
        events_endpoint="tcp://*:5557",
    ),
    Engine.TRITON: PrefixSettings(response_cache_bytes=1024**3),
}
VERSIONS = {
    Engine.VLLM: ("0.10.2", "0.12.0", "0.32.0"),
    Engine.SGLANG: ("0.4.10", "0.5.3", "0.5.23"),
    Engine.TENSORRT_LLM: ("1.0.0", "1.3.0rc2"),
    Engine.TRITON: ("2.55.0",),
}


@pytest.mark.parametrize("engine", Engine)
def test_golden(engine: Engine, golden: CompareGolden) -> None:
    """Each engine, plain and with every setting, old and new; what a version lacks is a sentence."""
    told: dict[str, object] = {}
    for version in VERSIONS[engine]:
        for name, settings in (("plain", PLAIN), ("full", FULL[engine])):
            told[f"{version} {name}"] = shown(engine, version, settings)
    golden(f"engines/{engine}.yaml", yaml.safe_dump(told, sort_keys=True, width=100))


def shown(engine: Engine, version: str, settings: PrefixSettings) -> object:
    """Render a configuration, or why there is none."""
    try:
        configuration = configure(engine, EngineVersion.parse(version), settings)
    except UnsupportedSetting as e:
        return str(e)
    excluded = [exclusion.flag for exclusion in configuration.exclusions]
    return {
        "arguments": list(configuration.words),
        "excluded": excluded,
        "file": configuration.file_text(),
        "environment": configuration.environment,
    }


SETTINGS = st.builds(
    PrefixSettings,
    block_size=st.none() | st.integers(1, 512),
    hash_algorithm=st.none() | st.sampled_from(HashAlgorithm),
    eviction=st.none() | st.sampled_from(Eviction),
    gpu_memory_share=st.none() | st.floats(0.01, 1),
    host_memory_bytes=st.none() | st.integers(1, 2**50),
    connector=st.none() | st.sampled_from(Connector),
    disk_bytes=st.none() | st.integers(1, 2**50),
    disk_path=st.none() | st.text(max_size=8),
    events_endpoint=st.none() | st.text(max_size=8),
    report_cached_tokens=st.booleans(),
    response_cache_bytes=st.none() | st.integers(1, 2**50),
)
VERSION = st.builds(EngineVersion, st.integers(0, 3), st.integers(0, 60), st.integers(0, 30))


@given(st.sampled_from(Engine), VERSION, SETTINGS)
def test_rendering_is_pure_and_refuses_with_a_sentence(
    engine: Engine, version: EngineVersion, settings: PrefixSettings
) -> None:
    """Twice the same settings give the same bytes, or the same sentence; nothing else comes out."""
    assert shown(engine, str(version), settings) == shown(engine, str(version), settings)


@given(st.sampled_from(Engine), SETTINGS)
def test_no_value_can_be_taken_for_a_flag(engine: Engine, settings: PrefixSettings) -> None:
    """Every word of ours begins with a flag; values stand behind `=`."""
    try:
        configuration = configure(engine, EngineVersion.parse(VERSIONS[engine][-1]), settings)
    except UnsupportedSetting:
        return
    assert all(word.startswith("--") for word in configuration.words)


def test_vllm_states_its_switch_always() -> None:
    """Stacks that leave the switch to a default turn it off; so it is said."""
    assert "--enable-prefix-caching" in configure(Engine.VLLM, EngineVersion(0, 32), PLAIN).words


def test_a_suppressed_flag_is_left_out() -> None:
    """For an engine that differs from what is known, a person can drop one of our flags."""
    settings = replace(PLAIN, suppressed_arguments=frozenset({"--enable-prompt-tokens-details"}))
    assert configure(Engine.VLLM, EngineVersion(0, 32), settings).words == ("--enable-prefix-caching",)


@pytest.mark.parametrize(
    ("engine", "version", "settings", "words"),
    [
        (Engine.VLLM, "0.9.0", PLAIN, "older than 0.10.2"),
        (Engine.VLLM, "0.12.0", PrefixSettings(hash_algorithm=HashAlgorithm.XXHASH), "came with 0.13.0"),
        (Engine.VLLM, "0.11.0", PrefixSettings(host_memory_bytes=1), "came with 0.12.0"),
        (Engine.VLLM, "0.16.0", PrefixSettings(block_size=48), "block sizes of 1, 8"),
        (Engine.VLLM, "0.32.0", PrefixSettings(eviction=Eviction.LFU), "LRU only"),
        (Engine.VLLM, "0.32.0", PrefixSettings(connector=Connector.NATIVE), "hostMemory"),
        (Engine.SGLANG, "0.5.3", PrefixSettings(eviction=Eviction.SLRU), "came with 0.5.10"),
        (Engine.SGLANG, "0.5.23", PrefixSettings(hash_algorithm=HashAlgorithm.SHA256), "hashes nothing"),
        (Engine.SGLANG, "0.5.23", PrefixSettings(host_memory_bytes=1500), "whole gigabytes"),
        (Engine.TENSORRT_LLM, "1.3", PrefixSettings(disk_bytes=5), "size and a path"),
        (Engine.TRITON, "2.55", PLAIN, "size of its response cache"),
        (Engine.TRITON, "2.55", PrefixSettings(block_size=16), "a size only"),
    ],
)
def test_what_an_engine_cannot_do_is_said(
    engine: Engine, version: str, settings: PrefixSettings, words: str
) -> None:
    """The sentence names the flag or the setting, and what would do."""
    with pytest.raises(UnsupportedSetting, match=words):
        configure(engine, EngineVersion.parse(version), settings)


@pytest.mark.parametrize(
    "config",
    [
        {"sequence_batching": {}},
        {"model_transaction_policy": {"decoupled": True}},
        {"ensemble_scheduling": {"step": []}},
    ],
)
def test_triton_models_with_a_state_are_refused(config: dict[str, object]) -> None:
    """Sequences, streams and ensembles are not cached by Triton, so nobody is told they are."""
    with pytest.raises(UnsupportedSetting):
        check_model(config)
    check_model({"name": "stateless"})


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.32", EngineVersion(0, 32)),
        ("v0.5.3.post1", EngineVersion(0, 5, 3)),
        ("1.3.0rc2", EngineVersion(1, 3)),
        ("0.10.2+cu124", EngineVersion(0, 10, 2)),
    ],
)
def test_versions_are_read_as_people_write_them(text: str, version: EngineVersion) -> None:
    """A leading v, a release candidate, a build: the three numbers count."""
    assert EngineVersion.parse(text) == version


@pytest.mark.parametrize("text", ["", "latest", "0..1", "1.2.3.4.5"])
def test_what_is_no_version_is_refused(text: str) -> None:
    """The message shows what one looks like."""
    with pytest.raises(InvalidInput, match=r"0\.32\.0"):
        EngineVersion.parse(text)


def test_unknown_versions_are_told_from_known_ones() -> None:
    """A version of tomorrow is configured like the newest, and said not to be known."""
    assert is_known_version(Engine.VLLM, EngineVersion(0, 32, 1))
    assert not is_known_version(Engine.VLLM, EngineVersion(0, 99))
    assert not is_known_version(Engine.VLLM, EngineVersion(0, 1))


CHECKED = json.loads((Path(__file__).parents[2] / "e2e" / "parsers" / "checked.json").read_text())
"""What the engines' own parsers have taken; `make verify-engines` writes it."""


@pytest.mark.parametrize("engine", [Engine.VLLM, Engine.SGLANG])
def test_every_rendered_argument_was_read_by_the_engines_own_parser(engine: Engine) -> None:
    """What is rendered for the checked version is what that version's parser took, to the letter."""
    version = EngineVersion.parse(CHECKED[engine]["version"])
    assert rendered(engine, version) == CHECKED[engine]["taken"]
