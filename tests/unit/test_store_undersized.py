"""`StoreUndersized`: what a running store shows of being too small, and the figure to set."""

from __future__ import annotations

from typing import Any

import pytest

from cachewright.crd.validation import load
from cachewright.reconcile.announcements import announcements
from cachewright.reconcile.state import StoreState
from cachewright.reconcile.undersized_told import undersized_part
from cachewright.stores.protocols import ServerFacts
from tests.support.caches import EXTERNAL_REDIS, cache_document
from tests.support.passes import World, observed

LIMIT = 64 * 1024 * 1024


def facts(evicted: int, expired: int, filled: float = 0.97) -> ServerFacts:
    """Say what a server of 64 MiB did since it was started."""
    return ServerFacts(
        used_bytes=int(LIMIT * filled), max_bytes=LIMIT, evicted_keys=evicted, expired_keys=expired
    )


def settled(**spec: Any) -> World:
    """Give an object at rest."""
    world = World(cache_document(spec=spec))
    world.settle()
    for (kind, _), child in world.children.items():
        if kind == "PersistentVolumeClaim":
            child["status"] = {"phase": "Bound", "capacity": child["spec"]["resources"]["requests"]}
    world.step()
    return world


def told_with(world: World, server: ServerFacts | None) -> str:
    """Run a pass that sees such a server, and return what the condition says; empty where it is not there."""
    world.server = server
    world.step()
    found = world.condition("StoreUndersized")
    return str(found["message"]) if found else ""


def test_a_store_that_evicts_early_is_told_with_what_would_be_enough() -> None:
    """Half of what went was evicted: twice the memory, and a fifth of it free, would have kept it."""
    told = told_with(settled(), facts(evicted=5000, expired=5000))
    assert "evicted about 50 %" in told
    assert "set stores.redis.managed.maxMemory to 160Mi, or a shorter ttl" in told


@pytest.mark.parametrize(
    "server",
    [
        None,
        facts(evicted=0, expired=0),
        facts(evicted=40, expired=1000),
        facts(evicted=5000, expired=5000, filled=0.5),
        ServerFacts(used_bytes=LIMIT, evicted_keys=9),
    ],
    ids=["unknown", "at rest", "slack", "grown since", "no limit"],
)
def test_a_store_with_room_is_not_told(server: ServerFacts | None) -> None:
    """A few evictions, or such as were before the limit was raised, are nothing to act on."""
    assert told_with(settled(), server) == ""


def test_a_store_that_goes_on_evicting_is_told_once() -> None:
    """The sentence is rounded, so no pass writes another while little changes, and it goes with its cause."""
    world = settled()
    first = told_with(world, facts(evicted=5000, expired=5000))
    assert told_with(world, facts(evicted=5100, expired=5200)) == first
    assert told_with(world, facts(evicted=5100, expired=5200, filled=0.3)) == ""


def test_the_limit_of_somebody_elses_server_is_named_as_such() -> None:
    """Nobody finds `managed` in an object whose Redis is external."""
    document = cache_document(spec={"stores": EXTERNAL_REDIS})
    store = StoreState(server=facts(evicted=900, expired=100), asked=True)
    part = undersized_part(observed(document, store=store), load(document))
    assert part is not None
    assert "set the server's maxmemory to 832Mi" in part.message


def semantic(store: str, size: str, **layer: Any) -> dict[str, Any]:
    """Build a spec whose semantic layer lies on a managed volume of this size."""
    managed = {"managed": {"storage": {"size": size}}}
    return {
        "embedder": {"builtin": {}},
        "stores": {"redis": {"managed": {}}, store.lower(): managed},
        "layers": {"exact": {}, "semantic": {"store": store, **layer}},
    }


@pytest.mark.parametrize(
    ("store", "field"),
    [("Qdrant", "stores.qdrant.managed.storage.size"), ("Postgres", "stores.postgres.managed.storage.size")],
)
def test_a_volume_that_cannot_hold_max_entries_is_told(store: str, field: str) -> None:
    """As soon as it is bound, with what it holds at most, a size to set, and the other way out."""
    world = settled(**semantic(store, "10Gi", maxEntries=20_000_000))
    told = told_with(world, None)
    assert told.startswith("A volume of 10Gi holds at most ")
    assert "of the 20,000,000 entries that layers.semantic.maxEntries allows, with vectors of 384" in told
    assert f"set {field} to " in told
    wanted = told.split(f"{field} to ")[1].split(",")[0]
    assert told_with(settled(**semantic(store, wanted, maxEntries=20_000_000)), None) == ""


@pytest.mark.parametrize("store", ["Qdrant", "Postgres"])
def test_what_is_usual_fits(store: str) -> None:
    """Defaults do not contradict each other."""
    assert told_with(settled(**semantic(store, "10Gi")), None) == ""


def test_both_troubles_are_told_and_announced_once() -> None:
    """Redis' comes first; an Event of type Warning comes with the condition, a log line when it goes too."""
    world = settled(**semantic("Qdrant", "30Gi", maxEntries=20_000_000))
    roomy = world.document["status"]
    told = told_with(world, facts(evicted=1, expired=0))
    assert told.index("Redis evicted about 95 %") < told.index("A volume of 30Gi")
    assert said_of(roomy, world.document["status"]) == []  # the volume was too small before
    world.change(**semantic("Qdrant", "30Gi", maxEntries=1000))
    before = world.document["status"]
    assert told_with(world, None) == ""
    assert said_of(world.document["status"], before) == [("Warning", "EntriesEvicted")]
    assert said_of(before, world.document["status"]) == [("", "")]


def said_of(before: dict[str, Any], status: dict[str, Any]) -> list[tuple[str, str]]:
    """Return type and reason of what is said about this condition."""
    said = announcements(before, status)
    return [(each.event, each.reason) for each in said if each.log_event == "store_undersized_changed"]
