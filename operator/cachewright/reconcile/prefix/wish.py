"""From `layers.prefix` to what its engine is to be told. Pure; called by plan, by observe and for status."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import orjson

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.model import WorkloadRef
from cachewright.api.prefix import PrefixLayer
from cachewright.api.quantities import parse_bytes
from cachewright.engines.configuration import EngineConfiguration
from cachewright.engines.configuring import configure, is_known_version
from cachewright.engines.files import settings_file
from cachewright.engines.settings import Connector, Engine, Eviction, HashAlgorithm, PrefixSettings
from cachewright.engines.versions import EngineVersion
from cachewright.errors import InvalidInput

DIGEST_LENGTH: Final = 10
"""Hex digits that name settings; they are told apart within one object only."""

NOT_THE_ENGINES: Final = frozenset(
    {"workload_ref", "delivery", "rollout", "tenant_salt", "shared_salt_for", "flush", "metrics"}
)
"""Fields that change nothing of what the engine is told."""


@dataclass(frozen=True, slots=True)
class PrefixWish:
    """What one object wants of one engine."""

    layer: PrefixLayer
    ref: WorkloadRef
    engine: Engine
    version: EngineVersion
    configuration: EngineConfiguration | None
    """None where the engine cannot be told so."""
    file: str = ""
    """Content of the file that tells the engine, where it is told by one."""
    problem: str = ""
    """Why it cannot be told, as a sentence."""

    @property
    def workload(self) -> str:
        """Name the workload as people do."""
        return f"{self.ref.kind} {self.ref.name}"

    @property
    def is_known_version(self) -> bool:
        """Tell whether the version's flags are known, rather than taken from the newest known."""
        return is_known_version(self.engine, self.version)

    @property
    def said(self) -> dict[str, Any]:
        """What the user says of the engine, without what is a default."""
        return self.layer.model_dump(mode="json", exclude_defaults=True, exclude=set(NOT_THE_ENGINES))

    @property
    def digest(self) -> str:
        """Name the settings as the user wrote them."""
        text = orjson.dumps(self.said, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(b"cachewright/prefix/settings\0" + text).hexdigest()[:DIGEST_LENGTH]


def prefix_wish(spec: InferenceCacheSpec | None) -> PrefixWish | None:
    """Return what the spec wants; None without the layer."""
    layer = spec.layers.prefix if spec is not None else None
    ref = (layer.workload_ref or spec.model.workload_ref) if spec is not None and layer is not None else None
    if layer is None or ref is None:
        return None
    engine, version = Engine(layer.engine), EngineVersion.parse(layer.engine_version)
    try:
        configuration = configure(engine, version, settings_of(layer))
        file = _file(layer, engine, version, configuration)
    except InvalidInput as e:
        return PrefixWish(layer, ref, engine, version, None, problem=str(e))
    return PrefixWish(layer, ref, engine, version, configuration, file)


def _file(layer: PrefixLayer, engine: Engine, version: EngineVersion, config: EngineConfiguration) -> str:
    """Render the file, where the engine is to read one."""
    if layer.delivery == "ConfigMap" or config.file:
        return settings_file(engine, version, config)
    return ""


def settings_of(layer: PrefixLayer) -> PrefixSettings:
    """Return the settings in the words that are the same for all engines."""
    return PrefixSettings(
        block_size=layer.block_size,
        hash_algorithm=HashAlgorithm(layer.hash_algorithm) if layer.hash_algorithm else None,
        eviction=Eviction(layer.eviction) if layer.eviction else None,
        gpu_memory_share=layer.gpu_memory_share,
        host_memory_bytes=parse_bytes(layer.host_memory) if layer.host_memory else None,
        connector=Connector(layer.connector) if layer.connector else None,
        disk_bytes=parse_bytes(layer.disk.size) if layer.disk else None,
        disk_path=layer.disk.path if layer.disk else None,
        events_endpoint=layer.events.endpoint if layer.events else None,
        report_cached_tokens=layer.report_cached_tokens,
        response_cache_bytes=parse_bytes(layer.response_cache) if layer.response_cache else None,
        extra_arguments=tuple(layer.extra_args),
        suppressed_arguments=frozenset(layer.suppress_args),
    )
