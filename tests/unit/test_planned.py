"""What a pass is about to change of what runs: live, by a roll, made or removed, and which fields differ."""

from __future__ import annotations

from typing import Any

import pytest

from cachewright.api.conditions import Reason
from cachewright.reconcile.plan import plan
from cachewright.reconcile.planned import planned_sentence, planned_status
from cachewright.reconcile.state import Applied, Finding, PlannedChange
from cachewright.reconcile.status import build_status
from tests.support.caches import cache_document
from tests.support.passes import NOW, SETTINGS, World

MANAGED: dict[str, Any] = {
    "embedder": {"builtin": {}},
    "stores": {"redis": {"managed": {}}, "qdrant": {"managed": {"storage": {"size": "10Gi"}}}},
    "layers": {"exact": {}, "semantic": {"store": "Qdrant"}},
}


@pytest.fixture
def world() -> World:
    """An object with a managed Qdrant, at rest."""
    world = World(cache_document(spec=MANAGED))
    world.settle()
    return world


def changed(world: World, **spec: Any) -> dict[str, PlannedChange]:
    """Edit the spec and return what the next pass is about to change, by kind and name."""
    world.change(**spec)
    changes = plan(world.look(), SETTINGS, NOW).changes
    return {f"{change.kind}/{change.name}": change for change in changes}


def qdrant(**managed: Any) -> dict[str, Any]:
    """Edit the managed Qdrant."""
    return {**MANAGED["stores"], "qdrant": {"managed": managed}}


def test_nothing_is_planned_of_a_new_object_or_of_one_at_rest(world: World) -> None:
    """There is nothing yet that could be changed, or nothing to change."""
    assert plan(World(cache_document()).look(), SETTINGS, NOW).changes == ()
    assert changed(world) == {}
    assert "planned" not in world.document["status"]


def test_a_setting_of_a_pod_rolls_it(world: World) -> None:
    """With the path of what differs, and not of our own notes on the child."""
    change = changed(world, stores=qdrant(memory="2Gi"))["StatefulSet/demo-qdrant"]
    assert change.effect == "Roll"
    container = "spec.template.spec.containers[qdrant].resources"
    assert change.fields == (f"{container}.requests.memory", f"{container}.limits.memory")


def test_what_needs_no_restart_changes_live(world: World) -> None:
    """A volume grows under its pod, and gateways are scaled."""
    assert changed(world, stores=qdrant(storage={"size": "20Gi"})) == {
        "PersistentVolumeClaim/demo-qdrant": PlannedChange(
            "PersistentVolumeClaim", "demo-qdrant", "Live", ("spec.resources.requests.storage",)
        )
    }
    world.step()
    scaled = changed(world, gateway={"replicas": 5})
    assert scaled["Deployment/demo-gateway"] == PlannedChange(
        "Deployment", "demo-gateway", "Live", ("spec.replicas",)
    )


def test_a_store_that_comes_or_goes_is_told_with_its_volume(world: World) -> None:
    """Its data goes with the volume, so this above all is to be read beforehand."""
    gone = changed(world, stores={"redis": {"managed": {}}}, layers={"exact": {}})
    for child in ("StatefulSet/demo-qdrant", "PersistentVolumeClaim/demo-qdrant"):
        assert gone[child].effect == "Remove"
    world.step()
    come = changed(world, stores=MANAGED["stores"], layers=MANAGED["layers"])
    for child in ("StatefulSet/demo-qdrant", "PersistentVolumeClaim/demo-qdrant"):
        assert come[child].effect == "Create"


def test_a_field_that_is_only_taken_out_is_told_as_the_worst(world: World) -> None:
    """Nobody can tell from the wanted manifest what is no longer in it."""
    changed(world, stores=qdrant(nodeSelector={"disk": "fast"}))
    world.step()
    change = changed(world, stores=qdrant())["StatefulSet/demo-qdrant"]
    assert (change.effect, change.fields) == ("Roll", ())


def test_a_suspended_object_shows_what_would_be_changed(world: World) -> None:
    """Pass after pass the same, and nothing is written; once it goes on, it is done and no longer told."""
    world.change(suspend=True)
    world.step()
    assert "planned" not in world.document["status"]
    world.change(stores=qdrant(memory="2Gi"))
    assert not world.step().writes
    told = world.document["status"]["planned"]
    assert [(each["kind"], each["name"], each["effect"]) for each in told] == [
        ("StatefulSet", "demo-qdrant", "Roll")
    ]
    world.step()
    assert world.document["status"]["planned"] == told
    world.change(suspend=False)
    assert world.step().applies
    assert "planned" not in world.document["status"]


def test_what_the_api_server_refused_stays_planned(world: World) -> None:
    """It has not happened, and is tried again."""
    world.change(stores=qdrant(storage={"size": "20Gi"}))
    seen = world.look()
    planned = plan(seen, SETTINGS, NOW)
    refused = Applied(error=Finding(Reason.VOLUME_NOT_EXPANDABLE, "no", stalled=True))
    status = build_status(seen, planned, refused, NOW)
    assert status["planned"] == planned_status(planned.changes)


def test_sentences_name_child_effect_and_fields() -> None:
    """One for each change, for the Event."""
    changes = (
        PlannedChange("Deployment", "a", "Create"),
        PlannedChange("Deployment", "b", "Live", ("spec.replicas",)),
        PlannedChange("StatefulSet", "c", "Roll"),
        PlannedChange("PersistentVolumeClaim", "d", "Remove"),
    )
    assert planned_sentence(changes) == (
        "Deployment a is going to be made. Deployment b changes without a restart: spec.replicas."
        " StatefulSet c is rolled. PersistentVolumeClaim d is going to be removed."
    )
