"""An estimate as text for people, as JSON, and as a patch of the object. Pure.

Costs are told where prices are given. Called by `cli.size`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cachewright.api.quantities import parse_bytes
from cachewright.sizing.estimate import GIBIBYTE, Estimate, StoreSize
from cachewright.sizing.load import MEBIBYTE
from cachewright.sizing.redis import container_memory_mebibytes


@dataclass(frozen=True, slots=True)
class Prices:
    """What a GiB costs in a month, in whatever money; for Redis that of its container."""

    memory: float
    disk: float

    def of(self, store: StoreSize) -> float:
        """Return what a store of the wanted size costs in a month, with all its instances."""
        memory, *disk = (parse_bytes(setting.wanted) for setting in store.settings)
        if store.need.store == "redis":
            memory = container_memory_mebibytes(memory) * MEBIBYTE
        return store.instances * (self.memory * memory + self.disk * sum(disk)) / GIBIBYTE


def as_text(cache: str, told: Estimate, prices: Prices | None) -> str:
    """Render for people."""
    return "\n".join([f"{cache}: {_assumed(told)}", *_stores(told, prices), *_verdict(told)])


def as_json(cache: str, told: Estimate, prices: Prices | None) -> dict[str, Any]:
    """Return all of it as JSON values; sizes in bytes."""
    load = told.load
    return {
        "cache": cache,
        "entries": load.entries,
        "semanticEntries": told.semantic_entries,
        "answerBytes": load.answer_bytes,
        "questionBytes": load.question_bytes,
        "dimensions": load.dimensions,
        "embeddings": load.embeddings,
        "retained": load.retained,
        "isEnough": told.is_enough,
        "stores": [_store_json(store, prices) for store in told.stores],
        "costPerMonth": round(sum(map(prices.of, told.stores)), 2) if prices else None,
    }


def patch(told: Estimate) -> dict[str, Any]:
    """Return a merge patch that makes managed stores as large as they need to be; empty where they are."""
    merged: dict[str, Any] = {}
    for store in told.stores:
        for setting in store.settings:
            if setting.is_enough:
                continue
            *above, last = setting.path.split(".")
            place = merged
            for step in above:
                place = place.setdefault(step, {})
            place[last] = setting.wanted
    return merged


def _assumed(told: Estimate) -> str:
    load = told.load
    text = f"{load.entries:,} answers of {load.answer_bytes:,} bytes"
    if told.semantic_entries and told.semantic_entries < load.entries:
        text += f", {told.semantic_entries:,} of them for similar questions (maxEntries)"
    if load.dimensions:
        text += f", vectors of {load.dimensions} dimensions"
    if load.embeddings:
        text += f", {load.embeddings:,} vectors for clients"
    return f"{text}; {load.retained} retained beside the keyspace in use"


def _stores(told: Estimate, prices: Prices | None) -> Iterator[str]:
    for store in told.stores:
        need = store.need
        yield f"  {need.store}{_servers(store)}"
        yield f"    {'':34}{'entries':>14}{'memory':>12}{'disk':>12}"
        for part in need.parts:
            entries = f"{part.entries:,}" if part.entries > 1 else ""
            yield f"    {part.what:34}{entries:>14}{_size(part.memory_bytes):>12}{_size(part.disk_bytes):>12}"
        yield f"    {'together':34}{'':14}{_size(need.memory_bytes):>12}{_size(need.disk_bytes):>12}"
        for setting in store.settings:
            if store.is_managed:
                verdict = "enough" if setting.is_enough else f"write {setting.wanted}"
                yield f"    {setting.path} is {setting.declared}: {verdict}"
            else:
                yield f"    give it {setting.wanted} of {_plainly(setting.path)}"
        if prices is not None:
            yield f"    cost of that: {prices.of(store):,.2f} a month"


def _servers(store: StoreSize) -> str:
    if not store.is_managed:
        return " (external)"
    return f", each of {store.instances} instances" if store.instances > 1 else ""


def _verdict(told: Estimate) -> Iterator[str]:
    yield "every managed store is large enough" if told.is_enough else "a managed store is too small"


def _plainly(path: str) -> str:
    return "disk" if path.endswith(".size") else "memory"


def _size(size: int) -> str:
    if not size:
        return "-"
    if size >= 10 * GIBIBYTE:
        return f"{size / GIBIBYTE:,.0f} GiB"
    if size >= GIBIBYTE:
        return f"{size / GIBIBYTE:.1f} GiB"
    return f"{max(1, round(size / MEBIBYTE)):,} MiB"


def _store_json(store: StoreSize, prices: Prices | None) -> dict[str, Any]:
    return {
        "store": store.need.store,
        "managed": store.is_managed,
        "instances": store.instances,
        "memoryBytes": store.need.memory_bytes,
        "diskBytes": store.need.disk_bytes,
        "parts": [
            {
                "what": part.what,
                "entries": part.entries,
                "memoryBytes": part.memory_bytes,
                "diskBytes": part.disk_bytes,
            }
            for part in store.need.parts
        ],
        "settings": [
            {
                "path": setting.path,
                "wanted": setting.wanted,
                "declared": setting.declared,
                "isEnough": setting.is_enough,
            }
            for setting in store.settings
        ],
        "costPerMonth": round(prices.of(store), 2) if prices else None,
    }
