"""What a pass writes: plan, driven by a world in memory."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cachewright.api.conditions import Reason
from cachewright.keys.record import Record
from cachewright.reconcile.plan import plan
from cachewright.reconcile.state import Foreign, SecretProblem, SecretState, SecretUse
from tests.support.caches import EXTERNAL_REDIS, UID, cache_document
from tests.support.passes import NOW, SETTINGS, World, observed

SECRETS = ("demo-keys", "demo-admin", "demo-redis")


@pytest.fixture
def world() -> World:
    """A settled object with a managed store."""
    made = World(cache_document())
    made.settle()
    return made


def test_a_new_object_gets_a_record_and_every_child_in_one_pass() -> None:
    """The first pass writes the record and all children, none half."""
    planned = plan(observed(cache_document()), SETTINGS, NOW)
    assert planned.record_write is not None
    assert planned.record_write.record.revision == 1
    assert planned.record_write.record.layers["Exact"].keyspace.incarnation == 1
    assert {(child["kind"], child["metadata"]["name"]) for child in planned.applies} == {
        ("Secret", "demo-keys"),
        ("Secret", "demo-admin"),
        ("Secret", "demo-redis"),
        ("ConfigMap", "demo-redis"),
        ("NetworkPolicy", "demo-redis"),
        ("Service", "demo-redis"),
        ("StatefulSet", "demo-redis"),
        ("ConfigMap", "demo-gateway"),
        ("Service", "demo-gateway"),
        ("Deployment", "demo-gateway"),
        ("PodDisruptionBudget", "demo-gateway"),
    }


def test_the_same_look_gives_the_same_plan() -> None:
    """Plan is a function of its arguments."""
    seen = observed(cache_document())
    assert plan(seen, SETTINGS, NOW) == plan(seen, SETTINGS, NOW)


def test_a_settled_object_is_left_alone_for_ever(world: World) -> None:
    """Twenty further passes, with time moving and fresh random values each, write nothing."""
    status = copy.deepcopy(world.document["status"])
    for _ in range(20):
        world.now += timedelta(minutes=5)
        assert not world.step().writes
        assert world.document["status"] == status


def test_fields_added_by_others_are_no_reason_to_write(world: World) -> None:
    """Defaults of the API server and labels or sidecars of others are left alone."""
    deployment = world.children["Deployment", "demo-gateway"]
    deployment["metadata"]["labels"]["team"] = "search"
    deployment["spec"]["progressDeadlineSeconds"] = 600
    containers = deployment["spec"]["template"]["spec"]["containers"]
    containers[0]["terminationMessagePath"] = "/dev/termination-log"
    containers.append({"name": "sidecar", "image": "mesh:1"})
    assert not world.step().writes


@pytest.mark.parametrize(
    "edit",
    [
        lambda child: child["spec"].update(replicas=7),
        lambda child: child["spec"]["template"]["spec"]["containers"][0].update(image="evil:1"),
        lambda child: child["spec"]["template"]["spec"]["containers"][0]["args"].append("--debug"),
        lambda child: child["metadata"]["labels"].pop("cachewright.dev/cache"),
        lambda child: child["metadata"]["annotations"].clear(),
    ],
)
def test_a_hand_edited_child_is_written_again(world: World, edit: Any) -> None:
    """Whatever of ours is changed by hand comes back."""
    edit(world.children["Deployment", "demo-gateway"])
    assert [child["kind"] for child in world.step().applies] == ["Deployment"]
    assert not world.step().writes


def test_every_deleted_child_comes_back(world: World) -> None:
    """Each child alone is written again after it was deleted; the generated ones with new values."""
    for identity in sorted(world.children):
        one = copy.deepcopy(world)
        del one.children[identity]
        assert one.step().writes, identity
        one.settle()
        assert identity in one.children


def test_generated_values_are_kept(world: World) -> None:
    """Passwords, the admin token and the digest key stay what they were, whatever a pass draws."""
    before = copy.deepcopy([world.children["Secret", name]["data"] for name in SECRETS])
    world.change(layers={"exact": {"ttl": "1h"}})
    world.settle()
    assert before == [world.children["Secret", name]["data"] for name in SECRETS]


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"name": "demo-model", "version": "2026-12-01"}},
        {"model": {"name": "other-model", "version": "2026-11-28"}},
        {"upstream": {"url": "http://other:8000/v1"}},
        {"tenancy": {"mode": "Required", "source": {"trustedHeader": {"name": "X-Org"}}}},
        {"tenancy": {"mode": "Single"}},
        {
            "tenancy": {
                "mode": "Required",
                "source": {"trustedHeader": {"name": "X-Tenant-Id"}},
                "role": {"header": "X-Role"},
            }
        },
    ],
)
def test_a_changed_fingerprint_moves_the_record_at_once(world: World, change: dict[str, Any]) -> None:
    """A new id, a new incarnation, revision +1; the old keyspace is retained."""
    before = world.record()
    world.change(**change)
    world.settle()
    after = world.record()
    assert after.revision == before.revision + 1
    assert after.layers["Exact"].keyspace.id != before.layers["Exact"].keyspace.id
    assert after.layers["Exact"].keyspace.incarnation == before.incarnation + 1
    assert [past.keyspace for past in after.past] == [before.layers["Exact"].keyspace]
    assert world.store_record == after


@pytest.mark.parametrize(
    "change",
    [
        {"layers": {"exact": {"ttl": "1h"}}},
        {"limits": {"budget": {"exact": "10ms"}}},
        {"gateway": {"replicas": 3}},
        {"model": {"name": "demo-model", "version": "2026-11-28", "aliases": ["demo"]}},
        {"routes": [{"name": "chat", "match": {"path": "/v1/chat/completions"}}]},
    ],
)
def test_what_entries_do_not_depend_on_rotates_nothing(world: World, change: dict[str, Any]) -> None:
    """TTLs, budgets, sizes and routes leave the keyspace as it is."""
    before = world.record()
    world.change(**change)
    world.settle()
    assert world.record() == before


def test_a_version_bump_rolls_no_gateway(world: World) -> None:
    """The model's version lives in the record alone, so a bump restarts nothing."""
    before = copy.deepcopy(world.children["Deployment", "demo-gateway"]["spec"]["template"])
    world.change(model={"name": "demo-model", "version": "2026-12-01"})
    world.settle()
    assert world.children["Deployment", "demo-gateway"]["spec"]["template"] == before


def test_setting_a_version_back_brings_its_keyspace_back(world: World) -> None:
    """Within the retention it is the same keyspace, entries included; the other one is retained in turn."""
    first = world.record().layers["Exact"].keyspace
    for version in ("2026-12-01", "2026-11-28"):
        world.change(model={"name": "demo-model", "version": version})
        world.settle()
    record = world.record()
    assert record.layers["Exact"].keyspace == first
    assert [(past.keyspace.incarnation, past.state) for past in record.past] == [(2, "retained")]


def test_a_wiped_record_is_restored_from_the_store(world: World) -> None:
    """The store's copy carries all over the loss of the ConfigMap; its counters go on above any seen."""
    before = world.record()
    del world.children["ConfigMap", "demo-record"]
    world.settle()
    record = world.record()
    assert replace(record, revision=before.revision, incarnation=before.incarnation) == before
    assert min(record.revision, record.incarnation) >= int(NOW.timestamp())
    assert world.store_record == record


def test_an_outdated_copy_of_a_wiped_record_gives_nothing_but_what_to_delete(world: World) -> None:
    """A store that failed over lacks what was decided last: status knows better which keyspaces there are."""
    outdated = world.record()
    world.change(model={"name": "demo-model", "version": "2026-12-01"})
    world.settle()
    latest = world.record()
    del world.children["ConfigMap", "demo-record"]
    world.store_record = outdated
    world.settle()
    record = world.record()
    assert {past.keyspace for past in record.past} == {*outdated.keyspaces(), *latest.keyspaces()}
    assert {past.state for past in record.past} == {"deleting"}
    assert record.layers["Exact"].keyspace.incarnation > int(NOW.timestamp())
    assert world.store_record == record


def test_a_wiped_record_without_a_store_goes_on_above_what_status_remembers(world: World) -> None:
    """An incarnation that was in use once is never handed out again."""
    before = world.record()
    del world.children["ConfigMap", "demo-record"]
    world.store_record, world.store_up = None, False
    world.step()
    assert world.record().layers["Exact"].keyspace.incarnation > before.incarnation


def test_after_the_loss_of_record_and_copy_no_number_is_given_twice(world: World) -> None:
    """Revision and incarnation go on from the time; what status remembers is to be deleted."""
    world.change(model={"name": "demo-model", "version": "2026-12-01"})
    world.settle()
    before = world.record()
    del world.children["ConfigMap", "demo-record"]
    world.store_record, world.store_up = None, False
    world.step()
    record = world.record()
    assert record.revision > int(NOW.timestamp())
    assert record.layers["Exact"].keyspace.incarnation > int(NOW.timestamp())
    assert {past.keyspace for past in record.past} == set(before.keyspaces())
    assert {past.state for past in record.past} == {"deleting"}
    world.settle()
    assert not world.step().writes


def test_a_record_brought_back_by_a_backup_yields_to_the_newer_copy_in_the_store(world: World) -> None:
    """What was decided since the backup stays decided; the ConfigMap follows."""
    old = copy.deepcopy(world.children["ConfigMap", "demo-record"])
    world.change(epoch=1)
    world.settle()
    newer = world.record()
    world.children["ConfigMap", "demo-record"]["data"] = old["data"]
    assert world.record() != newer
    world.settle()
    assert world.record() == newer


def test_a_plan_says_when_a_retention_ends(world: World) -> None:
    """So that a pass comes by then although nothing will have happened."""
    assert world.step().due is None
    world.change(model={"name": "demo-model", "version": "2026-12-01"}, rotation={"retain": "90m"})
    world.settle()
    assert world.step().due == NOW + timedelta(minutes=90)
    assert world.document["status"]["retained"] == [
        {
            "layer": "Exact",
            "keyspace": str(world.record().past[0].keyspace),
            "state": "Retained",
            "modelVersion": "2026-11-28",
            "until": "2026-11-30T13:30:00Z",
        }
    ]
    world.now += timedelta(minutes=90)
    world.settle()
    assert world.step().due is None
    assert world.document["status"]["retained"][0]["state"] == "Deleting"


def test_a_damaged_record_is_replaced(world: World) -> None:
    """Unreadable JSON in the ConfigMap counts as no record, and its version is still the one replaced."""
    child = world.children["ConfigMap", "demo-record"]
    child["data"]["record.json"] = "{"
    planned = world.step()
    assert planned.record_write is not None
    version = planned.record_write.manifest["metadata"]["resourceVersion"]
    assert version == child["metadata"]["resourceVersion"]


def test_a_damaged_layer_memory_in_status_fails_no_pass() -> None:
    """A status somebody edited by hand cannot stop the operator."""
    document = cache_document()
    document["status"] = {"layers": [{"name": "Exact", "keyspace": "nonsense", "since": "x"}, {}]}
    planned = plan(observed(document), SETTINGS, NOW)
    assert planned.record_write is not None


def test_a_store_behind_gets_the_record(world: World) -> None:
    """An emptied or restored-from-old store is brought up to the record."""
    record = world.record()
    for copy_in_store in (None, Record(record.cache_id, 0, 0)):
        world.store_record = copy_in_store
        assert world.step().publish == record


def test_suspend_changes_nothing(world: World) -> None:
    """Under suspend even a bump and a deleted child wait, and status says so."""
    world.change(suspend=True, model={"name": "demo-model", "version": "2027-01-01"})
    del world.children["PodDisruptionBudget", "demo-gateway"]
    planned = world.step()
    assert not planned.writes
    assert world.condition("Ready")["reason"] == "Suspended"
    assert world.condition("Ready")["status"] == "True"
    assert world.document["status"]["layers"][0]["keyspace"].endswith("-1")
    world.change(suspend=False)
    world.settle()
    assert world.record().layers["Exact"].keyspace.incarnation == 2


def test_an_invalid_spec_leaves_the_last_good_state_running(world: World) -> None:
    """An older CRD may let nonsense through: nothing is written, and status says what to mend."""
    world.change(layers={})
    planned = world.step()
    assert not planned.writes
    assert world.condition("Ready")["reason"] == "InvalidSpec"
    assert "layers" in world.condition("Ready")["message"]
    assert world.condition("Stalled")["status"] == "True"
    assert not world.condition("Reconciling")


def test_an_immutable_choice_is_checked_against_the_record(world: World) -> None:
    """What CEL should have refused is refused again, and nothing is deleted."""
    world.change(stores={"redis": {"managed": {"flavor": "Redis"}}})
    assert not world.step().writes
    assert world.condition("Ready")["reason"] == "ImmutableField"


def test_a_foreign_object_under_our_name_is_refused_not_taken_over() -> None:
    """Nothing at all is written while somebody else's object stands in the way."""
    foreign = {("Service", "demo-gateway"): Foreign("belongs to Service app")}
    planned = plan(observed(cache_document(), foreign=foreign), SETTINGS, NOW)
    assert planned.blocked is not None
    assert planned.blocked.reason is Reason.NAME_CONFLICT
    assert not planned.writes


def _secret(problem: SecretProblem | None, value: bytes = b"") -> tuple[SecretState, ...]:
    use = SecretUse("spec.stores.redis.external.urlSecretRef", "redis", "my-redis", "url")
    return (SecretState(use, problem, value),)


@pytest.mark.parametrize(
    ("problem", "reason", "words"),
    [
        (SecretProblem.MISSING, Reason.SECRET_NOT_FOUND, "does not exist"),
        (SecretProblem.KEY_MISSING, Reason.SECRET_NOT_FOUND, "no key url"),
        (SecretProblem.EMPTY, Reason.SECRET_NOT_FOUND, "empty key url"),
        (
            SecretProblem.UNLABELLED,
            Reason.SECRET_UNLABELLED,
            "kubectl -n ml label secret my-redis cachewright.dev/use=true",
        ),
    ],
)
def test_an_unusable_secret_keeps_the_last_good(problem: SecretProblem, reason: Reason, words: str) -> None:
    """A Secret that vanishes or loses its label changes nothing that runs; the message says what to do."""
    world = World(cache_document(spec={"stores": EXTERNAL_REDIS}))
    world.step(secrets=_secret(None, b"redis://one"))
    before = copy.deepcopy(world.children)
    planned = world.step(secrets=_secret(problem))
    assert planned.blocked is not None
    assert planned.blocked.reason is reason
    assert words in planned.blocked.message
    assert not planned.writes
    assert world.children == before


def test_a_late_secret_gives_one_revision() -> None:
    """Nothing is rendered without the Secret, so its arrival is the first and only rendering."""
    world = World(cache_document(spec={"stores": EXTERNAL_REDIS}))
    world.step(secrets=_secret(SecretProblem.MISSING))
    assert world.children == {}
    world.step(secrets=_secret(None, b"redis://one"))
    template = copy.deepcopy(world.children["Deployment", "demo-gateway"]["spec"]["template"])
    assert not world.step(secrets=_secret(None, b"redis://one")).applies
    assert world.children["Deployment", "demo-gateway"]["spec"]["template"] == template


def test_a_changed_secret_rolls_the_gateway_and_shows_nothing_of_itself() -> None:
    """The checksum moves with the value and contains neither it nor its plain hash."""
    world = World(cache_document(spec={"stores": EXTERNAL_REDIS}))
    world.step(secrets=_secret(None, b"redis://:hunter2@one"))
    planned = world.step(secrets=_secret(None, b"redis://:hunter3@one"))
    assert [child["kind"] for child in planned.applies] == ["Deployment"]
    assert "hunter" not in json.dumps(planned.applies)


def test_a_child_that_is_no_longer_wanted_is_deleted(world: World) -> None:
    """One replica needs no disruption budget."""
    world.change(gateway={"replicas": 1})
    assert [child["kind"] for child in world.step().deletes] == ["PodDisruptionBudget"]


def test_integer_and_text_quantities_are_the_same(world: World) -> None:
    """`cpu: 1` is stored as "1" and `1000m` as `1`; neither is a reason to write for ever."""
    world.change(gateway={"replicas": 2, "resources": {"requests": {"cpu": 1}, "limits": {"cpu": "2000m"}}})
    world.settle()
    resources = world.children["Deployment", "demo-gateway"]["spec"]["template"]["spec"]["containers"][0][
        "resources"
    ]
    resources["requests"]["cpu"], resources["limits"]["cpu"] = "1", "2"
    assert not world.step().writes


def test_the_cache_id_comes_from_the_uid() -> None:
    """Two objects never share keys in one store, also under one name one after the other."""
    one = plan(observed(cache_document()), SETTINGS, NOW)
    other = plan(observed(cache_document(uid=UID.replace("1", "9"))), SETTINGS, NOW)
    assert one.record is not None
    assert other.record is not None
    assert one.record.cache_id != other.record.cache_id
