"""From an object to what gateways enact: each field of a route and of a tenancy source arrives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from cachewright.api.guard import GuardCheck
from cachewright.crd.validation import load
from cachewright.keys.fingerprints import semantic_binding
from cachewright.policy.document import GatewayPolicy, RoutePolicy, SemanticPolicy, SweepPolicy, TenancyPolicy
from cachewright.policy.from_spec import DEFAULT_ROUTE, build_policy
from cachewright.policy.thresholds import UNCALIBRATED
from tests.api.documents import CREDENTIAL, EXTERNAL, FULL, GONE, MINIMAL, Document, changed
from tests.api.random_objects import valid_objects


def policy_of(document: Document) -> GatewayPolicy:
    """Build the policy of an object."""
    return build_policy(load(document), "0123456789abcdef", "cafe0123")


def test_every_field_of_a_route_arrives() -> None:
    """With header names in lower case, as they are compared."""
    route = {
        "name": "rag",
        "match": {"path": "/v1/responses"},
        "layers": ["Exact", "Semantic"],
        "question": {"between": {"start": "<q>", "end": "</q>"}},
        "threshold": 0.97,
        "sampling": "ForceZero",
        "promptTemplate": {"version": "v7"},
        "experiment": {"armHeader": "X-Arm"},
        "documents": "Required",
        "extractDocuments": {"between": {"start": "<doc>", "end": "</doc>"}},
        "sideEffects": True,
    }
    assert policy_of(changed(FULL, spec__routes=[route])).routes == (
        RoutePolicy(
            name="rag",
            path="/v1/responses",
            layers=("Exact", "Semantic"),
            question_between=("<q>", "</q>"),
            threshold=0.97,
            sampling="ForceZero",
            side_effects=True,
            prompt_template="v7",
            arm_header="x-arm",
            documents_required=True,
            documents_between=("<doc>", "</doc>"),
        ),
    )


def test_a_bare_route_asks_for_nothing() -> None:
    """What a route leaves out changes no key."""
    bare = policy_of(changed(FULL, spec__routes=[{"name": "default"}]))
    assert bare.routes == (DEFAULT_ROUTE,)
    assert policy_of(MINIMAL).routes == (DEFAULT_ROUTE,)


def test_every_field_of_the_semantic_layer_arrives() -> None:
    """None of them is read by nobody."""
    semantic = {
        "mode": "Shadow",
        "store": "Postgres",
        "threshold": 0.9,
        "ttl": "2h",
        "maxEntries": 50,
        "maxEntriesPerTenant": 5,
        "maxTurns": 3,
        "guard": ["Names"],
        "otherLanguages": "Unguarded",
        "admission": {"minSeen": 2},
        "exposeSimilarity": True,
        "hnsw": {"m": 8, "efConstruct": 64, "payloadM": 12},
        "quantization": "Scalar",
    }
    document = changed(FULL, spec__layers__semantic=semantic)
    assert policy_of(document).semantic == SemanticPolicy(
        binding=semantic_binding(load(document).spec, "cafe0123"),
        mode="Shadow",
        store="Postgres",
        threshold=0.9,
        ttl_seconds=7200,
        max_entries=50,
        max_entries_per_tenant=5,
        min_seen=2,
        max_turns=3,
        guard=(GuardCheck.NAMES,),
        other_languages=True,
        expose_similarity=True,
        hnsw_m=8,
        hnsw_ef_construct=64,
        hnsw_payload_m=12,
        quantization="Scalar",
    )


@pytest.mark.parametrize(
    ("changes", "threshold"),
    [
        ({"threshold": 0.5, "profile": "Legal"}, 0.5),
        ({"profile": "Legal"}, 0.95),
        ({"profile": "Support"}, 0.88),
        ({}, UNCALIBRATED),
    ],
)
def test_a_threshold_wins_over_a_profile_and_that_over_the_default(
    changes: dict[str, Any], threshold: float
) -> None:
    """What the user says himself counts most."""
    document = changed(FULL, spec__layers__semantic={"store": "Qdrant", **changes})
    policy = policy_of(document).semantic
    assert policy is not None
    assert policy.threshold == threshold


def test_without_routes_the_default_route_has_all_layers() -> None:
    """Whoever declares the semantic layer wants it used."""
    (route,) = policy_of(changed(FULL, spec__routes=GONE)).routes
    assert route.layers == ("Exact", "Semantic")


_APART = {"mode": "Required", "role_header": "x-role"}


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        (FULL, {**_APART, "trusted_header": "x-tenant-id", "user_header": "x-user"}),
        (EXTERNAL, {**_APART, "api_keys": True, "user_field": "safety_identifier"}),
        (CREDENTIAL, {**_APART, "client_credential_ttl_seconds": 300, "user_header": "x-user"}),
        (MINIMAL, {"mode": "Single"}),
    ],
    ids=["header", "api-keys", "credential", "no-source"],
)
def test_each_source_of_tenants_arrives_alone(document: Document, fields: dict[str, Any]) -> None:
    """And excludes the others."""
    assert policy_of(document).tenancy == TenancyPolicy.model_validate(fields)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(valid_objects())
def test_every_valid_object_has_a_policy_that_survives_its_file(document: Document) -> None:
    """What the operator writes is what a gateway reads."""
    policy = policy_of(document)
    assert GatewayPolicy.from_json(policy.to_json()) == policy


def test_a_sweep_is_told_where_it_is_not_the_usual_one() -> None:
    """In seconds; as its defaults say, the policy is the text that it always was."""
    assert policy_of(FULL).sweep is None
    assert policy_of(changed(FULL, spec__sweep={"interval": "2h"})).sweep == SweepPolicy(
        interval_seconds=7200, keys_per_second=10_000
    )
    assert policy_of(changed(FULL, spec__sweep={"reclaimRate": 500})).sweep == SweepPolicy(
        interval_seconds=3600, keys_per_second=500
    )
