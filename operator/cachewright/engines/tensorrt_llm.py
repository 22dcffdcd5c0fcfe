"""TensorRT-LLM: from settings to the YAML file of `trtllm-serve`, and the flag that names it.

Keys as in the documentation of TensorRT-LLM 1.3; its package cannot be installed without NVIDIA's own index,
so nothing here was checked against its parser.
"""

from __future__ import annotations

from typing import Any, Final

from cachewright.engines.configuration import Argument, EngineConfiguration, UnsupportedSetting
from cachewright.engines.settings import Connector, Eviction, PrefixSettings
from cachewright.engines.versions import EngineVersion

NAME: Final = "TensorRT-LLM"
OLDEST: Final = EngineVersion(1, 0)
NEWEST: Final = EngineVersion(1, 4)

CONFIG_SINCE: Final = EngineVersion(1, 2)
"""Before, the flag was `--extra_llm_api_options`."""

FILE_PATH: Final = "/etc/cachewright/engine.yaml"
"""Where the file is mounted in the engine's container."""

EVENT_BUFFER: Final = 16_384
"""Events kept for whoever reads them late."""


def configure(version: EngineVersion, settings: PrefixSettings) -> EngineConfiguration:
    """Render settings for one version; raises UnsupportedSetting with a sentence."""
    _check(settings)
    cache: dict[str, Any] = {"enable_block_reuse": True}
    if settings.block_size is not None:
        cache["tokens_per_block"] = settings.block_size
    if settings.gpu_memory_share is not None:
        cache["free_gpu_memory_fraction"] = settings.gpu_memory_share
    if settings.host_memory_bytes is not None:
        cache["host_cache_size"] = settings.host_memory_bytes
    if settings.disk_bytes is not None and settings.disk_path is not None:
        cache |= {"disk_cache_size": settings.disk_bytes, "disk_cache_path": settings.disk_path}
    if settings.events_endpoint is not None:
        cache["event_buffer_max_size"] = EVENT_BUFFER
    flag = "--config" if version >= CONFIG_SINCE else "--extra_llm_api_options"
    return EngineConfiguration(
        arguments=(Argument(flag, FILE_PATH),),
        file={"kv_cache_config": cache},
    )


def _check(settings: PrefixSettings) -> None:
    if settings.hash_algorithm is not None:
        raise UnsupportedSetting("TensorRT-LLM has one way to hash blocks; leave hashAlgorithm out")
    if settings.eviction not in (None, Eviction.LRU, Eviction.PRIORITY):
        raise UnsupportedSetting(f"TensorRT-LLM evicts by priority, then LRU; it has no {settings.eviction}")
    if settings.connector is Connector.LMCACHE:
        raise UnsupportedSetting("TensorRT-LLM has no LMCache connector that can be set here")
    if (settings.disk_bytes is None) != (settings.disk_path is None):
        raise UnsupportedSetting("TensorRT-LLM's disk tier needs both a size and a path")
    if settings.response_cache_bytes is not None:
        raise UnsupportedSetting("only Triton has a response cache")
