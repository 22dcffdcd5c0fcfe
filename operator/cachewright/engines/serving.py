"""Where an engine is asked for its metrics, by its command line, and its version, by its image. Pure.

Defaults as of vLLM 0.32, SGLang 0.5, TensorRT-LLM 1.x (`trtllm-serve`) and Triton 2.x; called by reconcile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cachewright.engines.settings import Engine
from cachewright.engines.versions import EngineVersion
from cachewright.errors import InvalidInput

HIGHEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class MetricsPlace:
    """A port and a path of an engine's pod."""

    port: int
    path: str


@dataclass(frozen=True, slots=True)
class _Habit:
    flag: str
    """What sets the port."""
    port: int
    path: str
    flush: str
    """Endpoint that empties the prefix cache; empty where there is none."""
    images: tuple[str, ...]
    """How the repositories end whose tags are versions of the engine; others' tags may count anything."""


_HABITS: Final = {
    Engine.VLLM: _Habit("--port", 8000, "/metrics", "/reset_prefix_cache", ("vllm/vllm-openai",)),
    Engine.SGLANG: _Habit("--port", 30000, "/metrics", "/flush_cache", ("lmsysorg/sglang",)),
    Engine.TENSORRT_LLM: _Habit("--port", 8000, "/prometheus/metrics", "", ("nvidia/tensorrt-llm/release",)),
    # Triton's images are tagged by the month (25.09-py3), which is no version of its server.
    Engine.TRITON: _Habit("--metrics-port", 8002, "/metrics", "", ()),
}

_TAG: Final = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+([-.+]?[A-Za-z][-.+_0-9A-Za-z]*)?")


def metrics_place(engine: Engine, words: Sequence[str], port: int | None = None) -> MetricsPlace:
    """Return where the engine tells its metrics: at `port` where that is given, else where its words say."""
    habit = _HABITS[engine]
    return MetricsPlace(port or _told(words, habit.flag) or habit.port, habit.path)


def flush_path(engine: Engine) -> str:
    """Return the endpoint that empties the prefix cache; empty where the engine has none."""
    return _HABITS[engine].flush


def version_of_image(engine: Engine, image: str) -> EngineVersion | None:
    """Return the version that an image of the engine's own makers is tagged with; None for any other."""
    name, _, _ = image.partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag or not repository.endswith(_HABITS[engine].images or ("\0",)):
        return None
    if _TAG.fullmatch(tag) is None:
        return None
    try:
        return EngineVersion.parse(tag)
    except InvalidInput:
        return None


def is_same_version(engine: Engine, one: EngineVersion, other: EngineVersion) -> bool:
    """Tell whether two versions take the same flags by their numbers; SGLang changes flags in patches."""
    return one == other if engine is Engine.SGLANG else (one.major, one.minor) == (other.major, other.minor)


def _told(words: Sequence[str], flag: str) -> int | None:
    """Return the last port that a flag names, as argument parsers take it."""
    found = [word.partition("=")[2] for word in words if word.startswith(f"{flag}=")]
    found += [value for word, value in pairwise(words) if word == flag]
    ports = [int(each) for each in found if each.isascii() and each.isdecimal() and len(each) <= 5]
    return next((each for each in reversed(ports) if 0 < each <= HIGHEST_PORT), None)
