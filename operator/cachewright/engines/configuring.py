"""From an engine, its version and settings to what it is started with. Called by reconcile and the CLI."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from cachewright.engines import sglang, tensorrt_llm, triton, vllm
from cachewright.engines.configuration import EngineConfiguration, UnsupportedSetting
from cachewright.engines.settings import Engine, PrefixSettings
from cachewright.engines.versions import EngineVersion


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    oldest: EngineVersion
    newest: EngineVersion
    configure: Callable[[EngineVersion, PrefixSettings], EngineConfiguration]


_KINDS: Final = {
    Engine.VLLM: _Kind(vllm.NAME, vllm.OLDEST, vllm.NEWEST, vllm.configure),
    Engine.SGLANG: _Kind(sglang.NAME, sglang.OLDEST, sglang.NEWEST, sglang.configure),
    Engine.TENSORRT_LLM: _Kind(
        tensorrt_llm.NAME, tensorrt_llm.OLDEST, tensorrt_llm.NEWEST, tensorrt_llm.configure
    ),
    Engine.TRITON: _Kind(triton.NAME, triton.OLDEST, triton.NEWEST, triton.configure),
}


def configure(engine: Engine, version: EngineVersion, settings: PrefixSettings) -> EngineConfiguration:
    """Render settings for an engine; the same input gives the same output.

    Raises UnsupportedSetting, with a sentence, for what the engine or its version cannot do. Versions newer
    than those we know are taken to know what the newest does; `is_known_version` tells.
    """
    kind = _KINDS[engine]
    if version < kind.oldest:
        raise UnsupportedSetting(
            f"{kind.name} {version} is older than {kind.oldest}, the oldest whose flags are known here"
        )
    rendered = kind.configure(version, settings)
    return replace(
        rendered,
        arguments=tuple(a for a in rendered.arguments if a.flag not in settings.suppressed_arguments),
        extra_arguments=settings.extra_arguments,
    )


def is_known_version(engine: Engine, version: EngineVersion) -> bool:
    """Tell whether the flags of this version are known, rather than taken from an older one."""
    kind = _KINDS[engine]
    newest = EngineVersion(kind.newest.major, kind.newest.minor, 999_999)
    return kind.oldest <= version <= newest
