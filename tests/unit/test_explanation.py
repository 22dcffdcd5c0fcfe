"""What a change of a spec does to each layer, and which field is told to be the cause."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cachewright.crd.validation import load
from cachewright.keys.record import Record
from cachewright.reconcile.explanation import ABSENT, Explanation, Fate, explain
from cachewright.reconcile.wanted_record import wanted_record
from cachewright.reconcile.workload import WorkloadSeen
from tests.support.caches import cache_document


def changed(**changes: Any) -> Explanation:
    """Explain a change of the smallest object; names are paths below spec with __ for the dots."""
    before = cache_document()
    after = deepcopy(before)
    for name, value in changes.items():
        *parents, last = name.split("__")
        place = after["spec"]
        for step in parents:
            place = place.setdefault(step, {})
        if value is ABSENT:
            del place[last]
        else:
            place[last] = value
    return explain(before, after)


def test_nothing_changes_for_the_same_object() -> None:
    """The same object, or one that only spells out a default, empties no layer."""
    told = explain(cache_document(), cache_document())
    assert told.changes == ()
    assert not told.costs
    assert [layer.fate for layer in told.layers] == [Fate.SURVIVES]
    assert not changed(suspend=False).changes


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"model__version": "2"}, "spec.model.version"),
        ({"model__name": "other"}, "spec.model.name"),
        ({"upstream__url": "http://other:8000/v1"}, "spec.upstream.url"),
        ({"upstream__varyHeaders": ["X-Region"]}, "spec.upstream.varyHeaders"),
        ({"tenancy__role": {"header": "X-Role"}}, "spec.tenancy.role"),
        ({"tenancy__user": {"bodyField": "User"}}, "spec.tenancy.user"),
    ],
)
def test_a_field_of_the_fingerprint_is_named_as_cause(changes: dict[str, Any], cause: str) -> None:
    """The layer starts empty, and the field that makes it do so is told."""
    told = changed(**changes)
    (layer,) = told.layers
    assert layer.fate is Fate.ROTATES
    assert told.costs
    assert [change.path for change in layer.causes] == [cause]


@pytest.mark.parametrize(
    "changes",
    [
        {"layers__exact__ttl": "5m"},
        {"gateway": {"replicas": 5}},
        {"model__aliases": ["alias"]},
        {"upstream__timeout": "9s"},
        {"limits": {"budget": {"exact": "9ms"}}},
    ],
)
def test_other_fields_empty_nothing(changes: dict[str, Any]) -> None:
    """A change that no entry depends on is told as a change and as no cause."""
    told = changed(**changes)
    assert told.changes
    assert not told.costs
    assert all(layer.causes == () for layer in told.layers)


def test_only_the_causes_among_many_changes_are_told() -> None:
    """Two of four changes empty the layer, each alone; the others are no causes."""
    told = changed(
        model__version="2", upstream__url="http://other:1/v1", suspend=True, gateway={"replicas": 1}
    )
    assert len(told.changes) == 4
    assert {change.path for change in told.layers[0].causes} == {"spec.model.version", "spec.upstream.url"}


def test_halves_of_a_change_are_told_together() -> None:
    """Where no change alone makes a valid object or moves the layer, those that it takes are told."""
    told = changed(
        tenancy__source__trustedHeader=ABSENT,
        tenancy__source__apiKeys={"secretRef": {"name": "keys", "key": "keys.yaml"}},
    )
    (layer,) = told.layers
    assert layer.fate is Fate.ROTATES
    assert {change.path for change in layer.causes} == {
        "spec.tenancy.source.trustedHeader",
        "spec.tenancy.source.apiKeys",
    }


def test_keys_with_dots_are_fields_too() -> None:
    """A node selector's key is one step of a path, so that it can be replayed alone."""
    told = changed(model__version="2", gateway={"nodeSelector": {"kubernetes.io/arch": "arm64"}})
    assert [change.path for change in told.layers[0].causes] == ["spec.model.version"]


def test_a_raised_epoch_revokes() -> None:
    """Nothing is retained, so undoing the change would not help; a lowered one does nothing."""
    told = changed(epoch=1)
    assert [layer.fate for layer in told.layers] == [Fate.REVOKED]
    assert [change.path for change in told.layers[0].causes] == ["spec.epoch"]
    before = cache_document(spec={"epoch": 3})
    assert not explain(before, cache_document(spec={"epoch": 1})).costs


def test_a_retained_keyspace_returns() -> None:
    """With the record of a cache that was bumped, setting the version back brings the old keyspace back."""
    now = datetime(2026, 11, 30, tzinfo=UTC)
    record = Record("0123456789abcdef", revision=0, incarnation=0)
    editions = []
    for version in ("1", "2"):
        document = cache_document()
        document["spec"]["model"]["version"] = version
        editions.append(document)
        record = wanted_record(load(document), record, "key", now)
    (layer,) = explain(editions[1], editions[0], record, "key", now).layers
    assert layer.fate is Fate.RETURNS
    assert layer.fate.costs
    assert str(layer.after).endswith("-1")
    (late,) = explain(editions[1], editions[0], record, "key", now + timedelta(days=2)).layers
    assert late.fate is Fate.ROTATES
    assert str(late.after).endswith("-3")


def test_a_shortened_retention_moves_no_layer() -> None:
    """How long the past is kept is no matter of the keyspace in use."""
    assert not changed(rotation={"retain": "1h", "maxRetained": 0}).costs


def test_the_record_in_use_names_the_keyspaces() -> None:
    """With a record, the next incarnation follows what it has given so far."""
    after = deepcopy(cache_document())
    after["spec"]["model"]["version"] = "2"
    record = Record("0123456789abcdef", revision=7, incarnation=41)
    (layer,) = explain(cache_document(), after, record, "key").layers
    assert layer.before is not None
    assert layer.after is not None
    assert (layer.before.incarnation, layer.after.incarnation) == (42, 43)


ENGINE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"}


def fenced(version: str, **model: Any) -> dict[str, Any]:
    """Build an object whose rotation waits for a Deployment."""
    parts = {"name": "demo-model", "version": version, "workloadRef": ENGINE, **model}
    return cache_document(spec={"model": parts})


def test_a_fenced_bump_is_told_as_what_it_leads_to() -> None:
    """The switch waits for the pods, which is told beside what it will do."""
    told = explain(fenced("1"), fenced("2"))
    assert [layer.fate for layer in told.layers] == [Fate.ROTATES]
    assert told.waits_for == "Deployment/vllm"
    assert explain(fenced("1"), fenced("1", aliases=["m"])).waits_for == ""


def test_following_the_workload_costs_nothing_by_itself() -> None:
    """To `Auto` and back to what it is at leaves the keyspace; another field moves it as ever."""
    now = datetime(2026, 11, 30, tzinfo=UTC)
    seen = WorkloadSeen({"0123456789abcdef": 3})
    record = wanted_record(load(fenced("1")), Record("0" * 16, 0, 0), "key", now, seen)
    assert not explain(fenced("1"), fenced("Auto"), record, "key", now).costs
    record = wanted_record(load(fenced("Auto")), record, "key", now, seen)
    assert not explain(fenced("Auto"), fenced("1"), record, "key", now).costs
    (layer,) = explain(fenced("Auto"), fenced("Auto", name="other"), record, "key", now).layers
    assert layer.fate is Fate.ROTATES
    assert layer.before == record.layers["Exact"].keyspace
