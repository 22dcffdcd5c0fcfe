"""vLLM: from settings to arguments of `vllm serve`.

The table was read from the argument parsers of vLLM 0.10.2, 0.11.0, 0.12.0, 0.13.0, 0.14.0, 0.16.0, 0.20.0,
0.24.0 and 0.32.0. A flag that the oldest of them knows counts as known since then.
"""

from __future__ import annotations

from typing import Final

import orjson

from cachewright.engines.configuration import (
    Argument,
    EngineConfiguration,
    Exclusion,
    Known,
    UnsupportedSetting,
)
from cachewright.engines.settings import Connector, Eviction, HashAlgorithm, PrefixSettings
from cachewright.engines.versions import EngineVersion

NAME: Final = "vLLM"
OLDEST: Final = EngineVersion(0, 10, 2)
NEWEST: Final = EngineVersion(0, 33, 0)
"""Newer ones are taken to know what this one knows."""

GIBIBYTE: Final = 1024**3

HASHES: Final = {
    HashAlgorithm.SHA256: "sha256",
    HashAlgorithm.SHA256_CBOR: "sha256_cbor",
    HashAlgorithm.XXHASH: "xxhash",
    HashAlgorithm.XXHASH_CBOR: "xxhash_cbor",
}
CONNECTORS: Final = {Connector.NATIVE: "native", Connector.LMCACHE: "lmcache"}

SWITCH: Final = Known("--enable-prefix-caching", OLDEST)
HASH: Final = Known(
    "--prefix-caching-hash-algo",
    OLDEST,
    (("xxhash", EngineVersion(0, 13)), ("xxhash_cbor", EngineVersion(0, 13))),
)
BLOCK_SIZE: Final = Known("--block-size", OLDEST, (("256", EngineVersion(0, 12)),))
MEMORY: Final = Known("--gpu-memory-utilization", OLDEST)
OFFLOADING_SIZE: Final = Known("--kv-offloading-size", EngineVersion(0, 12))
OFFLOADING_BACKEND: Final = Known("--kv-offloading-backend", EngineVersion(0, 12))
EVENTS: Final = Known("--kv-events-config", OLDEST)
CACHED_TOKENS: Final = Known("--enable-prompt-tokens-details", OLDEST)

FREE_BLOCK_SIZE_SINCE: Final = EngineVersion(0, 20)
"""Before, only powers of two from a list."""
BLOCK_SIZES: Final = (1, 8, 16, 32, 64, 128, 256)


def configure(version: EngineVersion, settings: PrefixSettings) -> EngineConfiguration:
    """Render settings for one version; raises UnsupportedSetting with a sentence."""
    _check(version, settings)
    arguments = [SWITCH.argument(NAME, version)]
    if settings.block_size is not None:
        arguments.append(BLOCK_SIZE.argument(NAME, version, str(settings.block_size)))
    if settings.hash_algorithm is not None:
        arguments.append(HASH.argument(NAME, version, HASHES[settings.hash_algorithm]))
    if settings.gpu_memory_share is not None:
        arguments.append(MEMORY.argument(NAME, version, f"{settings.gpu_memory_share:g}"))
    arguments += _host_tier(version, settings)
    if settings.events_endpoint is not None:
        arguments.append(EVENTS.argument(NAME, version, _events(settings.events_endpoint)))
    if settings.report_cached_tokens:
        arguments.append(CACHED_TOKENS.argument(NAME, version))
    return EngineConfiguration(
        arguments=tuple(arguments),
        exclusions=(Exclusion("--no-enable-prefix-caching", "it turns prefix caching off"),),
    )


def _check(version: EngineVersion, settings: PrefixSettings) -> None:
    if settings.eviction not in (None, Eviction.LRU):
        raise UnsupportedSetting(f"vLLM evicts by LRU only; leave eviction out (it says {settings.eviction})")
    if settings.disk_bytes is not None or settings.disk_path is not None:
        raise UnsupportedSetting(
            "vLLM has no disk tier of its own; use the LMCache connector's configuration"
        )
    if settings.response_cache_bytes is not None:
        raise UnsupportedSetting("only Triton has a response cache")
    size = settings.block_size
    if size is not None and version < FREE_BLOCK_SIZE_SINCE and size not in BLOCK_SIZES:
        raise UnsupportedSetting(
            f"vLLM {version} takes block sizes of {', '.join(map(str, BLOCK_SIZES))}, not {size}"
        )


def _host_tier(version: EngineVersion, settings: PrefixSettings) -> list[Argument]:
    if settings.host_memory_bytes is None:
        if settings.connector is not None:
            raise UnsupportedSetting("a connector needs the size of the host tier (hostMemory)")
        return []
    size = f"{settings.host_memory_bytes / GIBIBYTE:g}"
    arguments = [OFFLOADING_SIZE.argument(NAME, version, size)]
    if settings.connector is not None:
        arguments.append(OFFLOADING_BACKEND.argument(NAME, version, CONNECTORS[settings.connector]))
    return arguments


def _events(endpoint: str) -> str:
    document = {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": endpoint}
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()
