"""The condition `StoreUndersized`: a running store has less room than the object's limits ask for. Pure.

Called by status. Redis tells it by what it evicts; a volume by how many entries it has room for at the most,
which the package `sizing` knows. Present only while true, and always with a figure to set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cachewright.api.conditions import ConditionType, Reason
from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import postgres_name, qdrant_name
from cachewright.api.quantities import parse_bytes
from cachewright.reconcile.memory_told import is_short_of_memory
from cachewright.reconcile.readiness import Part
from cachewright.reconcile.sizes_told import capacity_of
from cachewright.reconcile.state import Observed
from cachewright.sizing.estimate import DISK_SHARE, MEMORY_SHARE, dimensions_of, estimate, quantity
from cachewright.sizing.load import Load, Need

EVICTED_SHARE: Final = 0.05
"""Of the keys that went by themselves: fewer are the slack of a store that is as large as it should be."""

USUAL_ANSWER_BYTES: Final = 2000
"""What a figure to set is reckoned with, where answers are not known."""

EMPTY: Final = Load(entries=0, answer_bytes=0, question_bytes=0, retained=0)
"""The least that an entry can be: vector, keys and times."""


def undersized_part(observed: Observed, cache: InferenceCache | None) -> Part | None:
    """Say which store is too small for what; None where all have the room, or nobody knows."""
    if cache is None:
        return None
    findings = [*_evicting(observed, cache), *_volumes(observed, cache)]
    if not findings:
        return None
    reason, _ = findings[0]
    message = " ".join(sentence for _, sentence in findings)
    return Part(ConditionType.STORE_UNDERSIZED, "True", reason, message)


def _evicting(observed: Observed, cache: InferenceCache) -> Iterator[tuple[Reason, str]]:
    """Redis is full, and entries go before their ttl is over."""
    server = observed.store.server
    if server is None or not is_short_of_memory(observed) or server.evicted_share < EVICTED_SHARE:
        return
    # Rounded, so that status is not written each time the store is looked at.
    share = min(95, round(20 * server.evicted_share) * 5)
    wanted = quantity(server.max_bytes / (1 - share / 100) / MEMORY_SHARE)
    managed = cache.spec.stores.redis.managed
    field = "stores.redis.managed.maxMemory" if managed is not None else "the server's maxmemory"
    message = (
        f"Redis evicted about {share} % of the entries that went since it was started, before their ttl was"
        f" over: set {field} to {wanted}, or a shorter ttl."
    )
    yield Reason.ENTRIES_EVICTED, message


def _volumes(observed: Observed, cache: InferenceCache) -> Iterator[tuple[Reason, str]]:
    """A volume has no room for `maxEntries`, however short the answers are."""
    semantic = cache.spec.layers.semantic
    if semantic is None:
        return
    store = "qdrant" if semantic.store == "Qdrant" else "postgres"
    name_of = qdrant_name if store == "qdrant" else postgres_name
    claim = observed.children.get(("PersistentVolumeClaim", name_of(observed.name)))
    if store == "postgres" and observed.cluster is not None:
        claim = next(iter(observed.cluster.volumes), None)
    if claim is None or not capacity_of(claim):
        return
    capacity = parse_bytes(capacity_of(claim))
    wanted = replace(EMPTY, entries=semantic.max_entries)
    least = _need(cache, store, wanted).disk_bytes
    if least <= capacity:
        return
    fixed = _need(cache, store, replace(EMPTY, entries=1)).disk_bytes
    room = max(0, capacity - fixed) / (least - fixed)
    usual = _need(cache, store, replace(wanted, answer_bytes=USUAL_ANSWER_BYTES)).disk_bytes
    message = (
        f"A volume of {capacity_of(claim)} holds at most {_rounded(room * semantic.max_entries):,} of the"
        f" {semantic.max_entries:,} entries that layers.semantic.maxEntries allows, with vectors of"
        f" {dimensions_of(cache.spec)} dimensions: set stores.{store}.managed.storage.size to"
        f" {quantity(usual / DISK_SHARE)}, or maxEntries to what the volume holds."
    )
    yield Reason.VOLUME_TOO_SMALL, message


def _need(cache: InferenceCache, store: str, load: Load) -> Need:
    return next(each.need for each in estimate(cache.spec, load).stores if each.need.store == store)


def _rounded(number: float) -> int:
    """Keep two digits, rounding down."""
    step = int(10 ** max(0, len(str(int(number))) - 2))
    return int(number) // step * step
