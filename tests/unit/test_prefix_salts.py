"""Salts from the object to the gateway: which policy, which keyspace and which condition follow from it."""

from __future__ import annotations

from typing import Any

import pytest

from cachewright.api.inference_cache import InferenceCache
from cachewright.crd.validation import load
from cachewright.keys.prefix import PREFIX
from cachewright.policy.from_spec import build_policy
from cachewright.reconcile.layer_rows import layer_rows
from cachewright.reconcile.prefix.wish import prefix_wish
from tests.support.caches import cache_document

KEY_ID = "cafe0123"
MODEL = {"name": "m", "version": "1"}


def cache(model: dict[str, str] | None = None, **prefix: Any) -> InferenceCache:
    """Build an object whose engine's cache is looked after."""
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "engine"}
    layer = {"engine": "VLLM", "engineVersion": "0.32.0", "delivery": "ConfigMap", "workloadRef": ref}
    layers = {"exact": {}, "prefix": {**layer, **prefix}}
    return load(cache_document(spec={"model": model or MODEL, "layers": layers}))


def test_policy_and_record_agree_on_the_keyspace() -> None:
    """The gateway uses the row's keyspace, which moves with the model's version and is fenced like others."""
    spec = cache(sharedSaltFor=["default"])
    policy = build_policy(spec, "0123456789abcdef", KEY_ID).prefix
    row = next(row for row in layer_rows(spec.spec, KEY_ID) if row.name == PREFIX)
    assert policy is not None
    assert (policy.binding, policy.shared_routes) == (row.binding, ("default",))
    assert "/v1/completions" in policy.paths
    assert row.depends_on_model
    bumped = cache({**MODEL, "version": "2"})
    moved = next(row for row in layer_rows(bumped.spec, KEY_ID) if row.name == PREFIX)
    assert (moved.binding, moved.keyspace_id == row.keyspace_id) == (row.binding, False)


@pytest.mark.parametrize(
    "prefix",
    [
        {"tenantSalt": False},
        {"engine": "SGLang", "engineVersion": "0.5.10"},
        {"engine": "TensorRTLLM", "engineVersion": "1.0"},
    ],
    ids=["not-wanted", "not-heeded", "refused"],
)
def test_no_salt_goes_where_none_is_wanted_or_heeded(prefix: dict[str, Any]) -> None:
    """A field that an engine refuses would fail every request."""
    policy = build_policy(cache(**prefix), "0123456789abcdef", KEY_ID)
    assert policy.prefix is None
    assert '"prefix"' not in policy.to_json()


def test_without_salts_there_is_no_keyspace() -> None:
    """Nothing rotates that nobody uses."""
    assert [row.name for row in layer_rows(cache(tenantSalt=False).spec, KEY_ID)] == ["Exact"]


def test_salts_change_nothing_of_what_pods_carry() -> None:
    """Turning them off or on must roll no engine."""
    digests = {
        wish.digest
        for spec in (cache(), cache(tenantSalt=False), cache(sharedSaltFor=["default"]))
        if (wish := prefix_wish(spec.spec)) is not None
    }
    assert len(digests) == 1
