"""Salts by engine and version."""

from __future__ import annotations

import pytest

from cachewright.engines.salts import salt_paths, why_no_salt
from cachewright.engines.settings import Engine
from cachewright.engines.versions import EngineVersion


@pytest.mark.parametrize(
    ("engine", "version", "why"),
    [
        (Engine.VLLM, "0.10.2", ""),
        (Engine.SGLANG, "0.5.11", ""),
        (Engine.SGLANG, "0.5.10", "does not heed cache_salt"),
        (Engine.TENSORRT_LLM, "1.1.0rc2", ""),
        (Engine.TENSORRT_LLM, "1.0", "does not heed cache_salt"),
        (Engine.TRITON, "2.60", "does not keep tenants apart"),
    ],
)
def test_old_versions_are_told(engine: Engine, version: str, why: str) -> None:
    """A version that takes the field and does nothing with it counts as one that does not know it."""
    said = why_no_salt(engine, EngineVersion.parse(version))
    assert why in said
    assert bool(said) == bool(why)


def test_no_engine_is_sent_a_field_that_it_refuses() -> None:
    """TensorRT-LLM takes the field on one path only, and Triton on none."""
    assert salt_paths(Engine.TENSORRT_LLM) == ("/v1/chat/completions",)
    assert salt_paths(Engine.TRITON) == ()
