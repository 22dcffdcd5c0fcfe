"""May words be added to a container's command line without breaking it, and what goes where? Pure.

The admission policy of the chart decides the same in CEL, when a pod is made; this is asked before, of the
pod template, so that a person can be told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cachewright.engines.configuration import EngineConfiguration
from cachewright.engines.settings import Engine

SHELL: Final = re.compile(r"(^|/)(ba|da|a|z|k|fi)?sh$")
"""A word that names a shell."""


def refusal(command: Sequence[str], args: Sequence[str], engine: Engine, config: EngineConfiguration) -> str:
    """Say why nothing may be added to this command line; empty where it may."""
    words = [*command, *args]
    if not words:
        return "has neither command nor args, and args would replace those of its image; write them out"
    if any(word == "-c" or SHELL.search(word) for word in words):
        return f"runs a shell, which passes no arguments on; add to its line: {' '.join(config.words)}"
    blocking = blocking_flags(engine, config)
    taken = next((word for word in words if normal_flag(word) in blocking), "")
    if taken:
        return f"has a file of its own ({taken}), which would be replaced; put into it: {config.file}"
    return ""


def unwanted_flags(engine: Engine, configuration: EngineConfiguration) -> tuple[str, ...]:
    """Name the flags that go, ours included, since they are appended anew."""
    blocking = blocking_flags(engine, configuration)
    flags = [each.flag for each in configuration.exclusions]
    flags += [each.flag for each in configuration.arguments if normal_flag(each.flag) not in blocking]
    return tuple(normal_flag(flag) for flag in flags)


def valued_flags(configuration: EngineConfiguration) -> tuple[str, ...]:
    """Name those of ours whose value may stand in the next word."""
    return tuple(normal_flag(each.flag) for each in configuration.arguments if each.value is not None)


def blocking_flags(engine: Engine, configuration: EngineConfiguration) -> tuple[str, ...]:
    """Name the flags of a file of the user's, where the engine reads one file alone and we bring ours."""
    if engine is not Engine.TENSORRT_LLM or not configuration.file:
        return ()
    return ("--config", "--extra-llm-api-options")


def normal_flag(word: str) -> str:
    """Return the flag of a word as we write it."""
    return word.partition("=")[0].replace("_", "-")
