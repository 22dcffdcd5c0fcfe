"""SGLang: from settings to arguments of `sglang.launch_server`.

Its radix cache is on unless it is turned off, so "on" means that one flag is absent. The table was read from
the argument parsers of SGLang 0.4.10, 0.5.3, 0.5.10 and 0.5.23; a flag counts as known since the oldest of
them that has it.
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
from cachewright.engines.settings import Connector, Eviction, PrefixSettings
from cachewright.engines.versions import EngineVersion

NAME: Final = "SGLang"
OLDEST: Final = EngineVersion(0, 4, 10)
NEWEST: Final = EngineVersion(0, 5, 23)

GIGABYTE: Final = 1000**3
"""SGLang's `--hicache-size` is in gigabytes, whole ones."""

EVICTIONS: Final = {
    Eviction.LRU: "lru",
    Eviction.LFU: "lfu",
    Eviction.SLRU: "slru",
    Eviction.PRIORITY: "priority",
    Eviction.TLRU: "tlru",
}

PAGE_SIZE: Final = Known("--page-size", OLDEST)
EVICTION: Final = Known(
    "--radix-eviction-policy",
    EngineVersion(0, 5, 3),
    (
        ("slru", EngineVersion(0, 5, 10)),
        ("priority", EngineVersion(0, 5, 23)),
        ("tlru", EngineVersion(0, 5, 23)),
    ),
)
MEMORY: Final = Known("--mem-fraction-static", OLDEST)
HOST_TIER: Final = Known("--enable-hierarchical-cache", OLDEST)
HOST_SIZE: Final = Known("--hicache-size", OLDEST)
LMCACHE: Final = Known("--enable-lmcache", EngineVersion(0, 5, 3))
EVENTS: Final = Known("--kv-events-config", OLDEST)
CACHED_TOKENS: Final = Known("--enable-cache-report", OLDEST)
METRICS: Final = Known("--enable-metrics", OLDEST)


def configure(version: EngineVersion, settings: PrefixSettings) -> EngineConfiguration:
    """Render settings for one version; raises UnsupportedSetting with a sentence."""
    _check(settings)
    arguments: list[Argument] = []
    if settings.block_size is not None:
        arguments.append(PAGE_SIZE.argument(NAME, version, str(settings.block_size)))
    if settings.eviction is not None:
        arguments.append(EVICTION.argument(NAME, version, EVICTIONS[settings.eviction]))
    if settings.gpu_memory_share is not None:
        arguments.append(MEMORY.argument(NAME, version, f"{settings.gpu_memory_share:g}"))
    arguments += _host_tier(version, settings)
    if settings.events_endpoint is not None:
        document = {"publisher": "zmq", "endpoint": settings.events_endpoint}
        text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()
        arguments.append(EVENTS.argument(NAME, version, text))
    if settings.report_cached_tokens:
        arguments.append(CACHED_TOKENS.argument(NAME, version))
    arguments.append(METRICS.argument(NAME, version))  # its hit rate is told nowhere else
    return EngineConfiguration(
        arguments=tuple(arguments),
        exclusions=(Exclusion("--disable-radix-cache", "it turns prefix caching off"),),
    )


def _check(settings: PrefixSettings) -> None:
    if settings.hash_algorithm is not None:
        raise UnsupportedSetting("SGLang finds prefixes in a tree of token ids and hashes nothing")
    if settings.disk_bytes is not None or settings.disk_path is not None:
        raise UnsupportedSetting(
            "SGLang's disk tier is one of its storage backends; set --hicache-storage-backend in extraArgs"
        )
    if settings.response_cache_bytes is not None:
        raise UnsupportedSetting("only Triton has a response cache")


def _host_tier(version: EngineVersion, settings: PrefixSettings) -> list[Argument]:
    if settings.connector is Connector.LMCACHE:
        if settings.host_memory_bytes is not None:
            raise UnsupportedSetting(
                "with LMCache the size of the host tier stands in LMCache's own configuration"
            )
        return [LMCACHE.argument(NAME, version)]
    if settings.host_memory_bytes is None:
        if settings.connector is not None:
            raise UnsupportedSetting("the native connector needs the size of the host tier (hostMemory)")
        return []
    gigabytes, rest = divmod(settings.host_memory_bytes, GIGABYTE)
    if rest or not gigabytes:
        raise UnsupportedSetting(
            "SGLang takes the host tier in whole gigabytes, such as 64G,"
            f" not {settings.host_memory_bytes} bytes"
        )
    return [HOST_TIER.argument(NAME, version), HOST_SIZE.argument(NAME, version, str(gigabytes))]
