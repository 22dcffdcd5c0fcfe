"""What a pass tells: status, built from what was seen, planned and done."""

from __future__ import annotations

from datetime import timedelta

from cachewright.api.conditions import Reason
from cachewright.reconcile.plan import plan
from cachewright.reconcile.state import Applied, Finding, StoreState
from cachewright.reconcile.status import build_status, is_same_status
from tests.support.caches import cache_document
from tests.support.passes import NOW, SETTINGS, World, observed


def _conditions(status: dict[str, object]) -> dict[str, str]:
    conditions = status["conditions"]
    assert isinstance(conditions, list)
    return {condition["type"]: f"{condition['status']} {condition['reason']}" for condition in conditions}


def test_a_settled_object_is_ready() -> None:
    """Ready, stores and gateway are true; nothing is reconciling or stalled."""
    world = World(cache_document())
    world.settle()
    assert _conditions(world.document["status"]) == {
        "Ready": "True Ready",
        "StoresReady": "True Ready",
        "GatewayReady": "True Ready",
        "RotationComplete": "True Switched",
    }
    assert world.document["status"]["endpoint"] == "http://demo-gateway.ml.svc:8080/v1"
    assert world.document["status"]["observedGeneration"] == 1


def test_a_new_object_is_reconciling() -> None:
    """Kstatus shows a new object as in progress, with what it waits for."""
    world = World(cache_document())
    world.step()
    conditions = _conditions(world.document["status"])
    assert conditions["Ready"] == "False StoreUnready"
    assert conditions["Reconciling"] == "True StoreUnready"
    assert "Stalled" not in conditions


def test_a_rollout_that_still_serves_stays_ready() -> None:
    """With old pods available Ready stays true, and Reconciling tells of the rollout."""
    world = World(cache_document())
    world.settle()
    status = world.children["Deployment", "demo-gateway"]["status"]
    status.update(updatedReplicas=1, availableReplicas=2, replicas=3)
    world.step()
    conditions = _conditions(world.document["status"])
    assert conditions["Ready"] == "True Ready"
    assert conditions["Reconciling"] == "True Progressing"
    assert conditions["GatewayReady"] == "False Progressing"


def test_a_stopped_gateway_is_not_ready_and_not_reconciling() -> None:
    """Replicas 0 is what the user asked for: nothing is under way."""
    world = World(cache_document(spec={"gateway": {"replicas": 0}}))
    world.settle()
    conditions = _conditions(world.document["status"])
    assert conditions["Ready"] == "False GatewayStopped"
    assert "Reconciling" not in conditions


def test_a_silent_store_is_told_with_its_error() -> None:
    """StoresReady carries what the store's client said."""
    world = World(cache_document())
    world.settle()
    seen = world.look(store=StoreState(error="connection refused", asked=True))
    status = build_status(seen, plan(seen, SETTINGS, NOW), Applied(), NOW)
    assert _conditions(status)["StoresReady"] == "False StoreUnreachable"
    assert "connection refused" in status["conditions"][1]["message"]
    assert _conditions(status)["Ready"] == "False StoreUnreachable"


def test_a_failed_write_becomes_a_condition_in_the_same_pass() -> None:
    """An error of the API server is told as reason and sentence at once."""
    seen = observed(cache_document())
    error = Finding(Reason.FORBIDDEN, "The operator lacks a right: patch services", stalled=True)
    status = build_status(seen, plan(seen, SETTINGS, NOW), Applied(error=error), NOW)
    assert _conditions(status)["Ready"] == "False Forbidden"
    assert _conditions(status)["Stalled"] == "True Forbidden"


def test_transition_time_moves_only_with_the_status() -> None:
    """A later pass that finds the same keeps the time; one that finds otherwise moves it."""
    world = World(cache_document())
    world.settle()
    before = world.condition("Ready")["lastTransitionTime"]
    world.now = NOW + timedelta(hours=1)
    world.step()
    assert world.condition("Ready")["lastTransitionTime"] == before
    world.children["Deployment", "demo-gateway"]["status"]["availableReplicas"] = 0
    world.step()
    assert world.condition("Ready")["lastTransitionTime"] == "2026-11-30T13:00:00Z"


def test_equal_statuses_are_equal_whatever_their_key_order() -> None:
    """Comparison is semantic, and no status at all differs from any."""
    assert is_same_status({"a": 1, "b": [2]}, {"b": [2], "a": 1})
    assert not is_same_status({"a": 1, "b": [2]}, {"a": 1})
    assert not is_same_status(None, {})
