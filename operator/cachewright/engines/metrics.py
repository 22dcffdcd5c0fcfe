"""What engines say of their prefix cache at `/metrics`: from Prometheus' text to counts and a hit rate. Pure.

Names as of vLLM 0.10 to 0.32, SGLang 0.5, TensorRT-LLM 1.x and Triton 2.x; an engine that counts under
several names, as its versions did, is read by the first pair that it has. Called by the operator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cachewright.engines.settings import Engine

ENOUGH_TOKENS: Final = 20_000
"""Tokens of prompts from which on a cache without a single hit is not a matter of chance."""

ENOUGH_REQUESTS: Final = 100
"""The same for Triton, which counts requests."""

_SAMPLE: Final = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)", re.MULTILINE)
_SWITCH: Final = re.compile(r'(?:^|,)enable_prefix_caching="(\w*)"')


@dataclass(frozen=True, slots=True)
class Counters:
    """Names under which an engine counts."""

    known: str
    """Tokens found in the cache."""
    asked: str
    """Tokens looked up; or, where `is_rest`, those not found."""
    is_rest: bool = False


COUNTERS: Final = {
    Engine.VLLM: (
        Counters("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
        Counters("vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total"),
    ),
    Engine.SGLANG: (Counters("sglang:cached_tokens_total", "sglang:prompt_tokens_total"),),
    Engine.TENSORRT_LLM: (
        Counters("trtllm_prompt_cached_tokens_total", "trtllm_prompt_tokens_total"),
        Counters("trtllm_kv_cache_reused_blocks_total", "trtllm_kv_cache_missed_blocks_total", is_rest=True),
    ),
    Engine.TRITON: (Counters("nv_cache_num_hits_per_model", "nv_cache_num_misses_per_model", is_rest=True),),
}
RATES: Final = {Engine.SGLANG: "sglang:cache_hit_rate", Engine.TENSORRT_LLM: "trtllm_kv_cache_hit_rate"}
"""Gauges of engines, or versions of them, that count nothing."""

SWITCH: Final = "vllm:cache_config_info"


@dataclass(frozen=True, slots=True)
class PrefixCounts:
    """What one engine, or several together, counted since they started."""

    known: float = 0.0
    """Tokens of prompts that were in the cache; requests for Triton."""
    asked: float = 0.0
    """Tokens of prompts in all."""
    gauge: float | None = None
    """A rate that the engine itself tells, where it counts nothing."""
    is_on: bool | None = None
    """Whether the engine says that its prefix cache is on; None where it does not say."""

    @property
    def rate(self) -> float | None:
        """The share that was known, 0 to 1; None while nothing was asked."""
        return min(1.0, self.known / self.asked) if self.asked > 0 else self.gauge

    def since(self, earlier: PrefixCounts) -> PrefixCounts:
        """Return what was counted since; all of it where the engine started anew."""
        known, asked = self.known - earlier.known, self.asked - earlier.asked
        if known < 0 or asked < 0:
            return self
        return PrefixCounts(known, asked, self.gauge, self.is_on)

    def __add__(self, other: PrefixCounts) -> PrefixCounts:
        """Count two engines together; off where one is off."""
        told = [is_on for is_on in (self.is_on, other.is_on) if is_on is not None]
        gauges = [gauge for gauge in (self.gauge, other.gauge) if gauge is not None]
        return PrefixCounts(
            self.known + other.known,
            self.asked + other.asked,
            sum(gauges) / len(gauges) if gauges else None,
            all(told) if told else None,
        )


def read_counts(engine: Engine, text: str) -> PrefixCounts | None:
    """Read what an engine answers at `/metrics`; None where it says nothing of a prefix cache."""
    sums: dict[str, float] = {}
    is_on: bool | None = None
    for name, labels, value in _samples(text):
        sums[name] = sums.get(name, 0.0) + value
        if name == SWITCH and engine is Engine.VLLM and (switch := _SWITCH.search(labels)):
            is_on = switch[1] == "True" and is_on is not False
    for names in COUNTERS[engine]:
        if names.asked in sums:
            known, rest = sums.get(names.known, 0.0), sums[names.asked]
            return PrefixCounts(known, known + rest if names.is_rest else rest, is_on=is_on)
    gauge = sums.get(RATES.get(engine, ""))
    if gauge is None and is_on is None:
        return None
    return PrefixCounts(gauge=None if gauge is None else min(1.0, max(0.0, gauge)), is_on=is_on)


def has_no_hits(engine: Engine, counts: PrefixCounts) -> bool:
    """Tell whether so much was asked that a cache without one hit does not work."""
    enough = ENOUGH_REQUESTS if engine is Engine.TRITON else ENOUGH_TOKENS
    return counts.asked >= enough and counts.known == 0


def _samples(text: str) -> Iterator[tuple[str, str, float]]:
    for match in _SAMPLE.finditer(text):
        try:
            value = float(match[3])
        except ValueError:
            continue
        if math.isfinite(value):
            yield match[1], match[2] or "", value
