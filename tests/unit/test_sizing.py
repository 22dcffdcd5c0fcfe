"""From a spec and what it is to hold to what its stores need: arithmetic that no server is needed for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.semantic import HnswSpec
from cachewright.crd.validation import load as load_cache
from cachewright.errors import InvalidInput
from cachewright.keys.digest import EntryName
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.entry import Entry, encode_dependence, encode_entry
from cachewright.layers.ticket import encode_ticket
from cachewright.sizing.estimate import Estimate, estimate, quantity
from cachewright.sizing.load import ENTRY_HEAD_BYTES, MEBIBYTE, TICKET_BYTES, Load
from cachewright.sizing.postgres import graph_bytes, toast_bytes
from cachewright.sizing.qdrant import LOG_BYTES
from tests.support.caches import cache_document

LOAD = Load(entries=100_000, answer_bytes=2000, embeddings=50_000)
STORES = {
    "redis": {"managed": {"maxMemory": "64Mi"}},
    "qdrant": {"managed": {}},
    "postgres": {"managed": {"storage": {"size": "1Gi"}}},
}
SEMANTIC = {"store": "Qdrant", "ttl": "24h"}


def spec_of(semantic: dict[str, Any] | None = None, **layers: Any) -> InferenceCacheSpec:
    """Build a spec with every store and the layers that are given beside the exact one."""
    wanted: dict[str, Any] = {"exact": {}, **layers}
    if semantic is not None:
        wanted["semantic"] = SEMANTIC | semantic
    document = cache_document(spec={"stores": STORES, "embedder": {"builtin": {}}, "layers": wanted})
    return load_cache(document).spec


def sizes(told: Estimate, store: str) -> tuple[int, int]:
    """Return memory and disk of one store."""
    need = next(each.need for each in told.stores if each.need.store == store)
    return need.memory_bytes, need.disk_bytes


def entries(told: Estimate, store: str, what: str) -> int:
    """Return how many there are of one kind."""
    need = next(each.need for each in told.stores if each.need.store == store)
    return sum(part.entries for part in need.parts if part.what == what)


def test_only_stores_that_hold_something_are_told() -> None:
    """A declared store that no layer uses needs nothing."""
    assert [each.need.store for each in estimate(spec_of(), LOAD).stores] == ["redis"]
    told = estimate(spec_of({}, embedding={"cold": "Postgres"}), LOAD)
    assert [each.need.store for each in told.stores] == ["redis", "qdrant", "postgres"]
    assert [each.need.store for each in estimate(spec_of({"store": "Postgres"}), LOAD).stores] == [
        "redis",
        "postgres",
    ]


def test_what_is_retained_counts_for_layers_of_the_model_alone() -> None:
    """Another version of the model doubles answers; vectors of clients stay as they are."""
    spec = spec_of({}, embedding={"cold": "Postgres"})
    told, alone = estimate(spec, LOAD), estimate(spec, replace(LOAD, retained=0))
    assert entries(told, "redis", "exact answers") == 2 * entries(alone, "redis", "exact answers")
    assert entries(told, "redis", "tickets of similar answers") == 200_000
    for store, what in (("redis", "hot vectors"), ("postgres", "cold vectors")):
        assert entries(told, store, what) == entries(alone, store, what) == 50_000
    assert sizes(told, "qdrant") > sizes(alone, "qdrant")


def test_what_has_expired_lies_there_until_it_is_swept() -> None:
    """Stores without a TTL hold what expired within a sweep's interval, never more than as much again."""
    held = [
        entries(estimate(spec_of({"ttl": ttl}), replace(LOAD, retained=0)), "qdrant", "similar answers")
        for ttl in ("24h", "2h", "10m")
    ]
    assert held == [104_167, 150_000, 200_000]


def test_max_entries_bounds_the_semantic_layer() -> None:
    """With the twentieth above it that admission lets in; the exact layer has no such bound."""
    told = estimate(spec_of({"maxEntries": 1000}), replace(LOAD, retained=0))
    assert told.semantic_entries == 1050
    assert entries(told, "redis", "exact answers") == 100_000
    assert entries(told, "redis", "tickets of similar answers") == 1050


def test_a_log_of_qdrants_stops_growing() -> None:
    """However many points there are, each collection has two files of its log at most."""
    need = next(each.need for each in estimate(spec_of({}), LOAD).stores if each.need.store == "qdrant")
    assert next(part.disk_bytes for part in need.parts if part.what == "write-ahead log") == 2 * LOG_BYTES


def test_settings_say_what_to_write_and_whether_it_is_written() -> None:
    """A field that is large enough is left alone, one that is not says what to write."""
    told = estimate(spec_of({}, embedding={"cold": "Postgres"}), LOAD)
    settings = {each.path: each for store in told.stores for each in store.settings}
    memory = settings["spec.stores.redis.managed.maxMemory"]
    assert (memory.declared, memory.is_enough) == ("64Mi", False)
    assert settings["spec.stores.qdrant.managed.storage.size"].is_enough
    assert not told.is_enough
    assert estimate(spec_of(), Load(entries=1000)).is_enough


def test_what_contradicts_the_object_is_refused() -> None:
    """Other dimensions than the embedder's, or more keyspaces than are ever retained."""
    with pytest.raises(InvalidInput, match="embedder has 384"):
        estimate(spec_of({}), replace(LOAD, dimensions=1024))
    with pytest.raises(InvalidInput, match="maxRetained is 3"):
        estimate(spec_of(), replace(LOAD, retained=4))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1, "1Mi"),
        (15 * MEBIBYTE, "15Mi"),
        (17 * MEBIBYTE, "18Mi"),
        (1000 * MEBIBYTE, "1Gi"),
        (1025 * MEBIBYTE, "1152Mi"),
        (4096 * MEBIBYTE, "4Gi"),
        (33 * 1024 * MEBIBYTE, "36Gi"),
    ],
)
def test_quantities_are_round_and_never_less(size: int, text: str) -> None:
    """A person reads 36Gi; sixteen steps to each doubling lose little."""
    assert quantity(size) == text


def test_vectors_jump_where_a_page_holds_one_less() -> None:
    """A graph lies whole in pages: a few dimensions more may double it, and 16 bits halve it."""
    assert graph_bytes(1024, 16, rounded=False) == 2 * graph_bytes(900, 16, rounded=False) == 8192
    assert graph_bytes(900, 16, rounded=True) < graph_bytes(900, 16, rounded=False)
    assert graph_bytes(2100, 16, rounded=False) == graph_bytes(2100, 16, rounded=True) > 0
    assert graph_bytes(4001, 16, rounded=False) == graph_bytes(0, 16, rounded=False) == 0
    assert toast_bytes() == 0
    assert 2 * 1996 < toast_bytes(2 * 1996) < 2.1 * 1996 + 100


def test_heads_are_as_long_as_the_layers_make_them() -> None:
    """What stands before an answer, and what a ticket holds, is the layers' to say."""
    name = EntryName("ab" * 8, Keyspace("cd" * 8, 1), "t" * 43, "0" * 64)
    dependence = encode_dependence([f"t:{name.tenant_tag}", "l:Exact"], [0, 0])
    entry = Entry("application/json", b"", 1.8e9, 3600.0, dependence=dependence)
    assert len(encode_entry(entry, name, bytes(32))) == pytest.approx(ENTRY_HEAD_BYTES, abs=40)
    assert len(encode_ticket(bytes(16), dependence)) == TICKET_BYTES
    assert HnswSpec().payload_m == 16
