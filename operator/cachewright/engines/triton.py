"""Triton: its response cache for stateless models. It keeps whole answers by a hash of the inputs.

It is no prefix cache, and it knows no tenant: two requests with the same inputs share an answer. So it is for
models whose answers everybody may see, and its hash has 64 bits, so that two inputs can meet.
"""

from __future__ import annotations

from typing import Any, Final

from cachewright.engines.configuration import Argument, EngineConfiguration, UnsupportedSetting
from cachewright.engines.settings import PrefixSettings
from cachewright.engines.versions import EngineVersion

NAME: Final = "Triton"
OLDEST: Final = EngineVersion(2, 30)
NEWEST: Final = EngineVersion(2, 60)

RESPONSE_CACHE: Final = "response_cache { enable: true }"
"""The line that a model's config.pbtxt needs."""


def configure(version: EngineVersion, settings: PrefixSettings) -> EngineConfiguration:  # noqa: ARG001 - one shape
    """Render settings; raises UnsupportedSetting with a sentence."""
    others = (
        settings.block_size,
        settings.hash_algorithm,
        settings.eviction,
        settings.gpu_memory_share,
        settings.host_memory_bytes,
        settings.connector,
        settings.disk_bytes,
        settings.disk_path,
        settings.events_endpoint,
    )
    if any(value is not None for value in others):
        raise UnsupportedSetting("Triton's response cache has a size only; leave the other settings out")
    if settings.response_cache_bytes is None:
        raise UnsupportedSetting("Triton needs the size of its response cache")
    return EngineConfiguration(
        arguments=(Argument("--cache-config", f"local,size={settings.response_cache_bytes}"),),
    )


def check_model(config: dict[str, Any]) -> None:
    """Refuse a model whose answers Triton cannot cache; `config` as its HTTP API gives it.

    Raises UnsupportedSetting: stateful models, streaming ones and ensembles are not cached.
    """
    if "sequence_batching" in config:
        raise UnsupportedSetting(
            "this model keeps a state between requests (sequence batcher); not cacheable"
        )
    if config.get("model_transaction_policy", {}).get("decoupled"):
        raise UnsupportedSetting("this model answers in parts (decoupled); its answers cannot be cached")
    if "ensemble_scheduling" in config:
        raise UnsupportedSetting("an ensemble itself is not cached; turn the cache on in the models within")
