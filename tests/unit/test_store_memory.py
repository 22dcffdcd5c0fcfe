"""A store that runs out of memory: what was retained longest goes first, and status says so."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest

from cachewright.keys.record import KeyspaceState
from cachewright.reconcile.announcements import announcements
from cachewright.reconcile.memory_told import is_short_of_memory, memory_part
from cachewright.reconcile.state import StoreState
from cachewright.stores.protocols import ServerFacts
from cachewright.stores.reclaim import ReclaimReport, ReclaimState
from tests.support.caches import cache_document
from tests.support.passes import World, observed

LIMIT = 64 * 1024 * 1024


def filled(share: float) -> ServerFacts:
    """Return a store of 64 MiB, so much of it in use."""
    return ServerFacts(used_bytes=ceil(LIMIT * share), max_bytes=LIMIT)


def bumped(versions: int) -> World:
    """Return a settled cache with all but the last of its versions retained."""
    world = World(cache_document(spec={"rotation": {"maxRetained": 8}}))
    world.settle()
    for version in range(2, versions + 1):
        world.change(model={"name": "demo-model", "version": str(version)})
        world.step()
    return world


def incarnations(world: World, state: KeyspaceState) -> list[int]:
    """Return what the record names in one state."""
    return [past.keyspace.incarnation for past in world.record().in_state(state)]


def reclaim(world: World) -> None:
    """Report all done that is being deleted."""
    done = ReclaimReport(ReclaimState.DONE)
    world.reclaims = {past.keyspace: done for past in world.record().in_state(KeyspaceState.DELETING)}


def test_the_longest_retained_goes_first_and_the_latest_stays() -> None:
    """The next one only when the space of the last is free and that was not enough."""
    world = bumped(4)
    world.server = filled(0.95)
    for given_up in (1, 2):
        world.step()
        assert incarnations(world, KeyspaceState.DELETING) == [given_up]
        assert not world.step().writes
        reclaim(world)
    world.step()
    assert incarnations(world, KeyspaceState.DELETING) == []
    assert incarnations(world, KeyspaceState.RETAINED) == [3]
    assert world.condition("MemoryPressure")["reason"] == "StoreNearlyFull"
    assert world.condition("Ready")["status"] == "True"


def test_room_that_one_keyspace_gave_is_enough() -> None:
    """The others stay, and the condition goes once there is room, not at the bound itself."""
    world = bumped(4)
    world.server = filled(0.91)
    world.step()
    reclaim(world)
    world.server = filled(0.79)
    world.step()
    assert incarnations(world, KeyspaceState.RETAINED) == [2, 3]
    assert not world.condition("MemoryPressure")


@pytest.mark.parametrize(
    ("shares", "short"),
    [
        ((0.89,), [False]),
        ((0.9, 0.85, 0.8, 0.79, 0.85), [True, True, True, False, False]),
    ],
)
def test_between_the_bounds_what_was_said_counts(shares: tuple[float, ...], short: list[bool]) -> None:
    """So that status does not say one thing and the other in turns."""
    world = bumped(1)
    told = []
    for share in shares:
        world.server = filled(share)
        world.step()
        told.append(bool(world.condition("MemoryPressure")))
    assert told == short


def test_what_is_told_changes_in_steps_alone() -> None:
    """A few entries more or less write no status."""
    world = bumped(1)
    world.server = filled(0.9501)
    world.step()
    before = world.document["status"]
    world.server = filled(0.9602)
    world.step()
    assert world.document["status"] == before
    assert "about 95 % of its 64 MiB" in world.condition("MemoryPressure")["message"]


def test_a_store_that_does_not_answer_changes_nothing() -> None:
    """Nothing is given up by an old figure, and what was told stands."""
    world = bumped(1)
    world.server = filled(0.95)
    world.step()
    told = world.condition("MemoryPressure")
    silent = replace(world.look(), store=StoreState(asked=True, error="no answer within 3 s"))
    assert not is_short_of_memory(silent)
    part = memory_part(silent)
    assert part is not None
    assert part.message == told["message"]


def test_a_store_without_a_limit_is_never_short() -> None:
    """Nor one that does not tell."""
    for server in (None, ServerFacts(used_bytes=LIMIT)):
        seen = observed(cache_document(), store=StoreState(asked=True, server=server))
        assert not is_short_of_memory(seen)
        assert memory_part(seen) is None


def test_its_begin_is_an_event_and_its_end_a_line_in_the_log() -> None:
    """Once each."""
    full = {"conditions": [{"type": "MemoryPressure", "reason": "StoreNearlyFull", "message": "Full."}]}
    ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]}
    begin = [each for each in announcements(ready, _both(ready, full)) if "memory" in each.log_event]
    end = [each for each in announcements(_both(ready, full), ready) if "memory" in each.log_event]
    assert [(each.event, each.reason, each.message) for each in begin] == [
        ("Warning", "StoreNearlyFull", "Full.")
    ]
    assert [(each.event, each.log_fields["short"]) for each in end] == [("", False)]
    assert not list(announcements(_both(ready, full), _both(ready, full)))


def _both(
    first: dict[str, list[dict[str, str]]], second: dict[str, list[dict[str, str]]]
) -> dict[str, object]:
    return {"conditions": [*first["conditions"], *second["conditions"]]}
