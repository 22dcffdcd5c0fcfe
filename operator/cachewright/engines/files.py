"""From an engine's configuration to the file that its `--config` takes, and the words that name the file.

Called by `reconcile`. vLLM and SGLang read a file as if each entry stood before the arguments, so an argument
wins over the file. TensorRT-LLM has a file of its own shape, and no other way to be told.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from cachewright.engines.configuration import EngineConfiguration, UnsupportedSetting
from cachewright.engines.settings import Engine
from cachewright.engines.tensorrt_llm import FILE_PATH
from cachewright.engines.versions import EngineVersion

SGLANG_SINCE: Final = EngineVersion(0, 5, 3)
"""The first SGLang that is taken to read a file."""


def settings_file(engine: Engine, version: EngineVersion, configuration: EngineConfiguration) -> str:
    """Render the file as YAML with sorted keys; the same configuration gives the same text.

    Raises UnsupportedSetting, with a sentence, where the engine cannot be told by a file.
    """
    match engine:
        case Engine.TENSORRT_LLM:
            if configuration.extra_arguments:
                raise UnsupportedSetting("TensorRT-LLM's file holds no arguments; leave extraArgs out")
            return configuration.file_text()
        case Engine.TRITON:
            raise UnsupportedSetting("Triton reads no file of settings")
        case Engine.SGLANG if version < SGLANG_SINCE:
            raise UnsupportedSetting(f"SGLang {version} reads no file; it came with {SGLANG_SINCE}")
        case _:
            return yaml.safe_dump(_entries(configuration), sort_keys=True)


def file_words(engine: Engine, configuration: EngineConfiguration) -> tuple[str, str]:
    """Return flag and path, as two words: SGLang looks for `--config` as a word of its own."""
    flag = configuration.arguments[0].flag if engine is Engine.TENSORRT_LLM else "--config"
    return flag, FILE_PATH


def _entries(configuration: EngineConfiguration) -> dict[str, Any]:
    """Turn arguments into entries: a flag without a value is true."""
    found: dict[str, Any] = {}
    for word in configuration.words:
        flag, equals, value = word.partition("=")
        if not flag.startswith("--") or flag == "--":
            raise UnsupportedSetting(
                f"extraArgs: {word!r} cannot stand in a file; write each flag with its value as --flag=value"
            )
        found[flag.removeprefix("--")] = value if equals else True
    return found
