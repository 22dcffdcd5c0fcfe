"""From a spec and what it is to hold to what each of its stores needs. Pure.

And to the fields of the object that give it. Called by `cli.size`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from cachewright.api.durations import parse_duration_seconds
from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.quantities import parse_bytes
from cachewright.api.semantic import HnswSpec
from cachewright.errors import InvalidInput
from cachewright.keys.embedding_identity import BUILTIN
from cachewright.sizing.load import KIBIBYTE, MEBIBYTE, Load, Need
from cachewright.sizing.postgres import postgres_need
from cachewright.sizing.qdrant import qdrant_need
from cachewright.sizing.redis import redis_need

MEMORY_SHARE: Final = 0.8
"""Of what a store may use: beyond it Redis gives up what is retained, and others have no room for a peak."""

DISK_SHARE: Final = 0.8

OVERFLOW: Final = 1.05
"""Share of `maxEntries` up to which the semantic layer takes entries in."""

GIBIBYTE: Final = 1024 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the object that says how large a store is."""

    path: str
    """Such as `spec.stores.redis.managed.maxMemory`."""
    wanted: str
    """What it should be at least, as a quantity."""
    declared: str | None
    """What the object says, defaults included; None for a store that somebody else runs."""

    @property
    def is_enough(self) -> bool:
        """False where the object gives less."""
        return self.declared is None or parse_bytes(self.declared) >= parse_bytes(self.wanted)


@dataclass(frozen=True, slots=True)
class StoreSize:
    """What one store needs, and the fields that give it."""

    need: Need
    is_managed: bool
    settings: tuple[Setting, ...]
    """For a store of somebody else's: what to give it, in the words of a managed one."""
    instances: int = 1
    """Servers that hold all of it each: replicas count as much as the first."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a cache needs."""

    load: Load
    semantic_entries: int
    """In one keyspace: `entries`, or what `maxEntries` lets in."""
    stores: tuple[StoreSize, ...]

    @property
    def is_enough(self) -> bool:
        """False where a managed store is declared too small."""
        return all(setting.is_enough for store in self.stores for setting in store.settings)


def estimate(spec: InferenceCacheSpec, load: Load) -> Estimate:
    """Work out every store that a layer uses; raises InvalidInput where `load` does not go with the spec."""
    load = _completed(spec, load)
    semantic, embedding = spec.layers.semantic, spec.layers.embedding
    held = min(load.entries, round(OVERFLOW * semantic.max_entries)) if semantic else 0
    needs = {
        "redis": redis_need(
            load, exact=spec.layers.exact is not None, semantic=held, hot=embedding is not None
        )
    }
    if semantic is not None and semantic.store == "Qdrant":
        needs["qdrant"] = qdrant_need(
            load,
            semantic=held,
            expired_share=_expired_share(spec),
            hnsw=semantic.hnsw,
            quantized=semantic.quantization == "Scalar",
        )
    in_postgres = semantic is not None and semantic.store == "Postgres"
    is_cold = embedding is not None and embedding.cold is not None
    if in_postgres or is_cold:
        needs["postgres"] = postgres_need(
            load,
            semantic=held if in_postgres else 0,
            expired_share=_expired_share(spec),
            cold=is_cold,
            hnsw=semantic.hnsw if semantic else HnswSpec(),
            rounded=semantic is not None and semantic.quantization == "Scalar",
        )
    sizes = tuple(_sized(spec, need) for need in needs.values())
    return Estimate(load, held, sizes)


def dimensions_of(spec: InferenceCacheSpec) -> int:
    """Return the length of the embedder's vectors; 0 where there is none."""
    if spec.embedder is None:
        return 0
    return BUILTIN.dimensions if spec.embedder.builtin is not None else spec.embedder.dimensions or 0


def _completed(spec: InferenceCacheSpec, load: Load) -> Load:
    dimensions = dimensions_of(spec)
    if load.dimensions not in (0, dimensions):
        told = f"the object's embedder has {dimensions}" if dimensions else "the object has no embedder"
        raise InvalidInput(f"{load.dimensions} dimensions were given, and {told}")
    if load.retained > spec.rotation.max_retained:
        raise InvalidInput(
            f"{load.retained} keyspaces cannot be retained: rotation.maxRetained is"
            f" {spec.rotation.max_retained}"
        )
    has_vectors = spec.layers.embedding is not None
    return replace(load, dimensions=dimensions, embeddings=load.embeddings if has_vectors else 0)


def _expired_share(spec: InferenceCacheSpec) -> float:
    """Share of entries that have expired and wait for the sweep, where stores know no TTL."""
    semantic = spec.layers.semantic
    if semantic is None:
        return 0.0
    interval = parse_duration_seconds(spec.sweep.interval)
    return min(1.0, interval / parse_duration_seconds(semantic.ttl))


def _sized(spec: InferenceCacheSpec, need: Need) -> StoreSize:
    settings = tuple(_settings(spec, need))
    is_managed = all(setting.declared is not None for setting in settings)
    postgres, instances = spec.stores.postgres, 1
    if need.store == "postgres" and postgres is not None and postgres.managed is not None:
        instances = postgres.managed.instances
    return StoreSize(need, is_managed, settings, instances)


def _settings(spec: InferenceCacheSpec, need: Need) -> Iterator[Setting]:
    memory, disk = need.memory_bytes / MEMORY_SHARE, need.disk_bytes / DISK_SHARE
    stores, path = spec.stores, f"spec.stores.{need.store}.managed"
    if need.store == "redis":
        redis = stores.redis.managed
        yield Setting(f"{path}.maxMemory", quantity(memory), redis.max_memory if redis else None)
        return
    store = stores.qdrant if need.store == "qdrant" else stores.postgres
    managed = store.managed if store is not None else None
    yield Setting(f"{path}.memory", quantity(memory), managed.memory if managed else None)
    yield Setting(f"{path}.storage.size", quantity(disk), managed.storage.size if managed else None)


def quantity(size: float) -> str:
    """Round up to a quantity that a person would write, such as `384Mi` or `20Gi`."""
    unit, name = (GIBIBYTE, "Gi") if size >= 4 * GIBIBYTE else (MEBIBYTE, "Mi")
    number = max(1, -(-int(size) // unit))
    step = 1
    while number > 16 * step:
        step *= 2
    number = -(-number // step) * step
    if name == "Mi" and number % KIBIBYTE == 0:
        return f"{number // KIBIBYTE}Gi"
    return f"{number}{name}"
