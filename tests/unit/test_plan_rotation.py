"""What a pass writes about keyspaces: fence, heartbeat, templates, adopted ids, reports of reclaiming."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cachewright.api.conditions import Reason
from cachewright.keys.record import KeyspaceState, Record
from cachewright.reconcile.plan import plan
from cachewright.reconcile.state import Plan, StoreState
from cachewright.reconcile.workload import WorkloadSeen
from cachewright.stores.reclaim import ReclaimReport, ReclaimState
from tests.support.caches import cache_document
from tests.support.passes import NOW, SETTINGS, World, observed

ADOPTED = "0123456789abcdef"


def fenced_world() -> World:
    """Return a settled cache in front of a workload whose pods run A."""
    model = {"name": "demo-model", "version": "1", "workloadRef": {"name": "engine"}}
    world = World(cache_document(spec={"model": model}))
    world.pods = {"A": 2}
    world.settle()
    return world


def step(world: World, **pods: int) -> Plan:
    """Let the pods be these, and run one pass."""
    world.pods = pods
    return world.step()


def test_a_lost_permission_is_published_in_the_pass_that_sees_the_pod() -> None:
    """Record, copy and heartbeat say it at once, and Ready stays as it is."""
    world = fenced_world()
    planned = step(world, A=2, B=1)
    assert planned.publish is not None
    assert planned.publish.layers["Exact"].state is KeyspaceState.READONLY
    assert planned.beat == planned.publish
    assert not planned.applies
    assert world.condition("Ready")["status"] == "True"
    assert not world.condition("Reconciling")
    assert world.condition("RotationComplete")["reason"] == "WaitingForWorkload"
    assert "2 run A, 1 run B" in world.condition("RotationComplete")["message"]


def test_a_bump_is_told_until_it_is_done() -> None:
    """First waiting, after the deadline with the way out, then switched."""
    world = fenced_world()
    world.document["spec"]["model"]["version"] = "2"
    assert step(world, A=2).due == NOW + timedelta(minutes=30)
    assert world.condition("RotationComplete")["reason"] == "WaitingForWorkload"
    world.now += timedelta(minutes=30)
    step(world, A=2)
    told = world.condition("RotationComplete")
    assert (told["status"], told["reason"]) == ("False", "RolloutNotSeen")
    assert "annotate --overwrite icache demo cachewright.dev/workload-serves=A/2" in told["message"]
    world.document["metadata"]["annotations"] = {"cachewright.dev/workload-serves": "A/2"}
    step(world, A=2)
    assert world.condition("RotationComplete")["reason"] == "Switched"


def test_a_changed_workload_is_told_with_both_ways_out() -> None:
    """Name a new version, or say that it is the same."""
    world = fenced_world()
    step(world, B=2)
    told = world.condition("RotationComplete")
    assert (told["status"], told["reason"]) == ("False", "WorkloadChanged")
    assert "spec.model.version" in told["message"]
    assert "cachewright.dev/workload-serves=B/1" in told["message"]


@pytest.mark.parametrize(
    "trouble",
    [
        {"suspend": True},
        {"layers": {}},
        {"stores": {"redis": {"managed": {"flavor": "Redis"}}}},
    ],
    ids=["suspended", "invalid", "immutable"],
)
def test_whatever_blocks_a_pass_permission_follows_the_pods(trouble: dict[str, Any]) -> None:
    """Nothing else is written: neither a bump nor a child."""
    world = fenced_world()
    before = world.record()
    world.change(**trouble)
    world.document["spec"]["model"]["version"] = "2"
    del world.children["Service", "demo-gateway"]
    planned = step(world, A=1, B=1)
    assert planned.blocked is not None
    assert not planned.applies
    after = world.record()
    assert after.layers["Exact"].state is KeyspaceState.READONLY
    assert after.layers["Exact"].keyspace == before.layers["Exact"].keyspace
    assert world.store_record == after
    planned = step(world, A=1)
    assert world.record().layers["Exact"].state is KeyspaceState.ACTIVE
    assert planned.beat == world.record()


def test_pods_that_cannot_be_seen_get_no_heartbeat() -> None:
    """A spec that cannot be read names no pods: nothing is written then."""
    world = fenced_world()
    world.pods = None
    world.change(layers={})
    planned = world.step()
    assert planned.beat is None
    assert world.record().layers["Exact"].state is KeyspaceState.READONLY


def test_a_reclaimed_keyspace_is_forgotten() -> None:
    """Once the report says done; a failure is told, and what it is about stays listed."""
    world = World(cache_document(spec={"rotation": {"maxRetained": 0}}))
    world.settle()
    world.change(model={"name": "demo-model", "version": "2"})
    world.settle()
    (past,) = world.record().past
    report = ReclaimReport(ReclaimState.FAILED, problem="a table is locked.")
    world.reclaims = {past.keyspace: report}
    world.step()
    told = world.condition("RotationComplete")
    assert (told["status"], told["reason"]) == ("False", "ReclaimFailed")
    assert told["message"] == f"The space of {past.keyspace} is not free: a table is locked."
    assert world.record().past == (past,)
    revision = world.record().revision
    world.reclaims = {past.keyspace: replace(report, state=ReclaimState.DONE)}
    world.step()
    assert world.record().past == ()
    assert world.record().revision == revision + 1
    assert "retained" not in world.document["status"]


def test_a_template_in_a_config_map_counts_by_its_content() -> None:
    """A changed content is another keyspace, the former one brings the keyspace back, and none blocks."""
    source = {"fromConfigMap": {"name": "prompts", "key": "system"}}
    world = World(cache_document(spec={"promptTemplate": source}))
    world.template = "aa"
    world.settle()
    first = world.record().layers["Exact"].keyspace
    world.template = "bb"
    world.settle()
    assert world.record().layers["Exact"].keyspace != first
    world.template = ""
    assert not world.step().writes
    assert world.condition("Ready")["reason"] == "TemplateNotFound"
    world.template = "aa"
    world.settle()
    assert world.record().layers["Exact"].keyspace == first


def test_an_adopted_id_goes_on_from_the_copy_in_the_store() -> None:
    """Numbers go on above any ever seen; what was in use or retained is looked after, but not served."""
    left = Record(ADOPTED, 7, 3).with_layer("Exact", "f" * 16, "old binding", "2026-11-29T00:00:00Z")
    document = cache_document(spec={"cacheID": ADOPTED})
    planned = plan(observed(document, store=StoreState(record=left, asked=True)), SETTINGS, NOW)
    assert planned.record is not None
    assert planned.record.cache_id == ADOPTED
    assert planned.record.revision > int(NOW.timestamp()) > left.revision
    assert planned.record.layers["Exact"].keyspace.incarnation > int(NOW.timestamp())
    assert [past.keyspace for past in planned.record.past] == [left.layers["Exact"].keyspace]


def test_an_adopted_id_without_a_copy_begins_above_all_numbers() -> None:
    """Nobody knows which incarnations were given."""
    planned = plan(observed(cache_document(spec={"cacheID": ADOPTED})), SETTINGS, NOW)
    assert planned.record is not None
    assert planned.record.layers["Exact"].keyspace.incarnation > int(NOW.timestamp())


def test_an_id_that_another_object_holds_is_refused() -> None:
    """Nothing is written until the other one is gone."""
    document = cache_document(spec={"cacheID": ADOPTED})
    planned = plan(observed(document, rivals=("ml/elder",)), SETTINGS, NOW)
    assert planned.blocked is not None
    assert planned.blocked.reason is Reason.CACHE_ID_IN_USE
    assert not planned.writes


def test_an_id_may_be_named_later_if_it_is_the_one_in_use() -> None:
    """Another one is refused: keys cannot be renamed."""
    world = World(cache_document())
    world.settle()
    world.change(cacheID=world.document["status"]["cacheID"])
    assert not world.step().writes
    assert world.condition("Ready")["status"] == "True"
    world.change(cacheID=ADOPTED)
    assert not world.step().writes
    assert world.condition("Ready")["reason"] == "ImmutableField"


def test_a_record_that_a_backup_brought_back_keeps_the_fence() -> None:
    """The copy in the store is newer, also while nothing else may be written."""
    world = fenced_world()
    old = copy.deepcopy(world.children["ConfigMap", "demo-record"])
    step(world, A=1, B=1)
    world.children["ConfigMap", "demo-record"]["data"] = old["data"]
    world.change(suspend=True)
    step(world, A=1, B=1)
    assert world.record() == world.store_record
    assert world.record().layers["Exact"].state is KeyspaceState.READONLY


def test_pods_of_none_are_told() -> None:
    """Also why they could not be looked for."""
    world = fenced_world()
    step(world)
    assert "there is no pod of it" in world.condition("RotationComplete")["message"]
    world.problem = "Deployment engine does not exist"
    world.step()
    assert world.problem in world.condition("RotationComplete")["message"]
    assert world.workload() == WorkloadSeen({}, problem=world.problem)
