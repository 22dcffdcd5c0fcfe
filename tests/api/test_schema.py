"""The CRD on a real API server, against the same table of objects as offline validation."""

from __future__ import annotations

import itertools
import json

import pytest

from cachewright.crd.defaulting import with_defaults
from cachewright.crd.schema import Schema, object_schema, properties_of
from cachewright.crd.validation import load
from e2e.cluster.apiserver import ApiServer
from tests.api.admin import Admin
from tests.api.cases import Case, every_case
from tests.api.documents import EXTERNAL, FULL, MINIMAL, Document, changed, steps

pytestmark = pytest.mark.api

CASES = every_case()
_names = itertools.count(1)


def kubernetes_path(path: str) -> str:
    """Return a path as the API server writes it: a map's key stands there like a field."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps(path))
    return text.removeprefix(".")


def renamed(document: Document, name: str) -> Document:
    """Return the same object under another name."""
    return {**document, "metadata": {**document["metadata"], "name": name}}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_api_server_agrees_with_offline_validation(case: Case, admin: Admin) -> None:
    """Good objects are taken, bad ones refused at the same place, when created and when changed."""
    if case.old is None:
        answer = admin.create(case.document, dry_run=True)
    else:
        name = f"change-{next(_names)}"
        assert admin.create(renamed(case.old, name)).accepted
        answer = admin.update(renamed(case.document, name), dry_run=True)
    if case.broken is None:
        assert answer.accepted, answer.message
    else:
        assert not answer.accepted
        assert kubernetes_path(case.broken) in answer.message


@pytest.mark.parametrize("case", [case for case in CASES if not case.broken], ids=lambda case: case.name)
def test_the_api_server_fills_in_the_models_defaults(case: Case, admin: Admin) -> None:
    """What is stored reads the same as what was sent, and is what offline defaulting makes of it."""
    answer = admin.create(renamed(case.document, f"default-{next(_names)}"), dry_run=True)
    # The two names that are cases themselves do not matter here: the spec is compared.
    assert answer.body["spec"] == with_defaults(case.document, object_schema())["spec"]
    assert load(answer.body).spec == load(case.document).spec


def test_removing_first_and_adding_again_ends_at_the_first_step(admin: Admin) -> None:
    """An immutable field cannot be changed in two updates either."""
    name = f"change-{next(_names)}"
    assert admin.create(renamed(FULL, name)).accepted
    path = "spec__stores__redis"
    external = EXTERNAL["spec"]["stores"]["redis"]
    ways = [
        [changed(FULL, **{path: {}}), changed(FULL, **{path: external})],
        [changed(FULL, **{path: None}), changed(FULL, **{path: external})],
        [changed(FULL, **{f"{path}__managed": {}}), changed(FULL, **{f"{path}__managed__flavor": "Valkey"})],
        [changed(FULL, spec__stores={}), changed(FULL, **{path: external})],
    ]
    for removed, added in ways:
        for step in (removed, added):
            assert not admin.update(renamed(step, name)).accepted


def filled(schema: Schema, name: str) -> object:
    """Return a value for one field of the status, with every field below it."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {key: filled(child, key) for key, child in properties_of(schema).items()}
        case "array":
            return [filled(schema["items"], name)]
        case "integer":
            return 7
        case "number":
            return 0.25
    return "2026-11-30T02:00:00Z" if "T[0-9]" in schema.get("pattern", "") else name.capitalize()


def test_every_status_key_survives(admin: Admin, namespace: str) -> None:
    """Nothing that the models can say in status is dropped by the API server."""
    document = changed(MINIMAL, metadata__namespace=namespace)
    assert admin.create(document).accepted
    status = filled(properties_of(object_schema())["status"], "status")
    assert isinstance(status, dict)
    answer = admin.write_status(document, status)
    assert answer.accepted, answer.message
    assert answer.body["status"] == status
    read = load(answer.body).status
    assert read is not None
    assert read.model_dump(mode="json") == status


def test_status_bounds_hold_too(admin: Admin, namespace: str) -> None:
    """A reason that is no word, a doubled condition and an unknown key are refused."""
    document = changed(MINIMAL, metadata__namespace=namespace)
    assert admin.create(document).accepted
    status = filled(properties_of(object_schema())["status"], "status")
    assert isinstance(status, dict)
    condition = status["conditions"][0]
    bad_ones: list[Document] = [
        {"conditions": [{**condition, "reason": "not a word"}]},
        {"conditions": [{**condition, "status": "true"}]},
        {"conditions": [{**condition, "lastTransitionTime": "yesterday"}]},
        {"conditions": [condition, condition]},
        {"conditionz": []},
    ]
    for bad in bad_ones:
        assert not admin.write_status(document, bad).accepted, bad


def test_a_user_cannot_write_status_with_the_object(admin: Admin, namespace: str) -> None:
    """Status is a subresource: what stands in a manifest is dropped, and offline it is no problem."""
    document = changed(MINIMAL, metadata__namespace=namespace, status={"endpoint": "http://elsewhere"})
    answer = admin.create(document)
    assert answer.accepted
    assert "endpoint" not in answer.body.get("status", {})


def test_columns(admin: Admin, api_server: ApiServer, namespace: str) -> None:
    """`kubectl get icache` shows Ready, Reason, Version, Endpoint and Age; wide adds the message."""
    document = changed(MINIMAL, metadata__namespace=namespace, metadata__name="bot")
    assert admin.create(document).accepted
    condition = {
        "type": "Ready",
        "status": "False",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-30T02:00:00Z",
        "reason": "SecretNotFound",
        "message": "Secret upstream does not exist.",
    }
    other = {**condition, "type": "GatewayReady", "status": "True", "reason": "Ready", "message": "2 of 2."}
    status = {"conditions": [other, condition], "endpoint": "http://bot-gateway:8080/v1"}
    assert admin.write_status(document, status).accepted
    header, row = api_server.kubectl("get", "icache", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "READY", "REASON", "VERSION", "ENDPOINT", "AGE"]
    assert row.split()[:5] == ["bot", "False", "SecretNotFound", "1", "http://bot-gateway:8080/v1"]
    wide = api_server.kubectl("get", "cachewright", "-n", namespace, "-o", "wide")
    assert "MESSAGE" in wide
    assert "Secret upstream does not exist." in wide


def test_an_unknown_field_is_refused_by_kubectl(api_server: ApiServer, admin: Admin) -> None:
    """Validation by kubectl is strict by default; without that, the field would be dropped with a warning."""
    document = changed(MINIMAL, spec__gateway__replica=3)
    answer = admin.create(document, dry_run=True)
    assert 'unknown field "spec.gateway.replica"' in answer.message
    loose = api_server.kubectl(
        "create", "--dry-run=server", "--validate=ignore", "-o", "json", "-f", "-", stdin=json.dumps(document)
    )
    assert json.loads(loose)["spec"]["gateway"] == {"replicas": 2}


def test_kubectl_explains_each_field(api_server: ApiServer, admin: Admin) -> None:
    """The docstring of a field is what `kubectl explain` shows."""
    del admin
    text = api_server.kubectl("explain", "icache.spec.layers.exact.ttl")
    assert "How long an answer is served" in text
