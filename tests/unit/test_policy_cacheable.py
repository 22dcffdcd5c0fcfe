"""Cacheable, yes or no: each kind of request has its reason, and yes means nothing speaks against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.keys.canonical import parse_json
from cachewright.policy.cacheable import Envelope, find_route, is_json_type, why_not_cached
from cachewright.policy.document import ExactPolicy, GatewayPolicy, RoutePolicy, TenancyPolicy, UpstreamPolicy
from cachewright.policy.reasons import BypassReason

PATH = "/v1/chat/completions"
ROUTE = RoutePolicy(name="default", path=PATH, layers=("Exact",))
POLICY = GatewayPolicy(
    cache="ml/support-bot",
    cache_id="0" * 16,
    key_id="0",
    binding="b",
    model="llama",
    model_aliases=("llama-2026",),
    upstream=UpstreamPolicy(url="http://engine/v1", timeout_seconds=1),
    tenancy=TenancyPolicy(mode="Required", trusted_header="x-tenant-id"),
    routes=(ROUTE,),
    exact=ExactPolicy(ttl_seconds=60, budget_seconds=0.005, local_max_entries=0, local_ttl_seconds=30),
    total_budget_seconds=0.05,
    max_cacheable_body_bytes=1000,
    max_body_bytes=10_000,
)
ENVELOPE = Envelope(
    route=ROUTE,
    has_tenant=True,
    has_role=True,
    no_store=False,
    content_type="application/json",
    content_encoding="",
    content_length=100,
)
BODY: dict[str, Any] = {"model": "llama", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}


def test_a_plain_deterministic_request_is_cached() -> None:
    """Nothing speaks against it, before and after its body was read."""
    assert why_not_cached(ENVELOPE, None, POLICY) is None
    assert why_not_cached(ENVELOPE, BODY, POLICY) is None


@pytest.mark.parametrize(
    ("envelope", "reason"),
    [
        (replace(ENVELOPE, route=None), BypassReason.NO_ROUTE),
        (
            replace(ENVELOPE, route=ROUTE.model_copy(update={"path": "/v1/embeddings"})),
            BypassReason.UNSUPPORTED,
        ),
        (replace(ENVELOPE, route=ROUTE.model_copy(update={"layers": ()})), BypassReason.DISABLED),
        (replace(ENVELOPE, route=ROUTE.model_copy(update={"side_effects": True})), BypassReason.SIDE_EFFECTS),
        (replace(ENVELOPE, no_store=True), BypassReason.CLIENT),
        (replace(ENVELOPE, has_tenant=False), BypassReason.NO_TENANT),
        (replace(ENVELOPE, has_role=False), BypassReason.NO_ROLE),
        (replace(ENVELOPE, content_encoding="br"), BypassReason.ENCODED),
        (replace(ENVELOPE, content_encoding="gzip, gzip"), BypassReason.ENCODED),
        (replace(ENVELOPE, method="OPTIONS"), BypassReason.METHOD),
        (replace(ENVELOPE, is_cross_origin=True), BypassReason.CROSS_ORIGIN),
        (replace(ENVELOPE, method="GET"), BypassReason.METHOD),
        (replace(ENVELOPE, content_type=""), BypassReason.CONTENT_TYPE),
        (replace(ENVELOPE, content_type="text/plain"), BypassReason.CONTENT_TYPE),
        (replace(ENVELOPE, content_length=1001), BypassReason.TOO_LARGE),
        (replace(ENVELOPE, content_length=1000), None),
        (replace(ENVELOPE, content_length=None), None),
        (replace(ENVELOPE, content_encoding="identity"), None),
        (replace(ENVELOPE, content_encoding="gzip"), None),
        (replace(ENVELOPE, content_encoding="deflate"), None),
    ],
)
def test_what_is_known_before_the_body(envelope: Envelope, reason: BypassReason | None) -> None:
    """Each fact about the envelope has its reason, whatever the body says."""
    assert why_not_cached(envelope, None, POLICY) == reason
    assert why_not_cached(envelope, BODY, POLICY) == reason


def test_an_object_without_the_layer_caches_nothing() -> None:
    """Without an exact layer every request is passed on."""
    policy = POLICY.model_copy(update={"exact": None})
    assert why_not_cached(ENVELOPE, BODY, policy) is BypassReason.DISABLED


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ('"temperature": 0.0', None),
        ('"temperature": 0e5', None),
        ('"temperature": -0.0', None),
        ('"temperature": null', BypassReason.SAMPLING),
        ('"temperature": "0"', BypassReason.SAMPLING),
        ('"temperature": false', BypassReason.SAMPLING),
        ('"temperature": 0.0001', BypassReason.SAMPLING),
        ('"temperature": [0]', BypassReason.SAMPLING),
        ('"temperature": 1', BypassReason.SAMPLING),
        ('"temperature": 0, "top_p": 1', None),
        ('"temperature": 0, "top_p": 1.0', None),
        ('"temperature": 0, "top_p": null', BypassReason.SAMPLING),
        ('"temperature": 0, "top_p": 0.9', BypassReason.SAMPLING),
        ('"temperature": 0, "top_p": true', BypassReason.SAMPLING),
        ('"temperature": 0, "top_k": 1', BypassReason.SAMPLING),
        ('"temperature": 0, "min_p": 0', BypassReason.SAMPLING),
        ('"temperature": 0, "use_beam_search": true', BypassReason.SAMPLING),
        ('"temperature": 0, "best_of": 2', BypassReason.SAMPLING),
        ('"temperature": 0, "n": 1', None),
        ('"temperature": 0, "n": 2', BypassReason.N),
        ('"temperature": 0, "n": true', BypassReason.N),
        ('"temperature": 0, "n": null', BypassReason.N),
        ('"temperature": 0, "stream": false', None),
        ('"temperature": 0, "stream": null', None),
        ('"temperature": 0, "stream": true', None),
        ('"temperature": 0, "stream": 1', BypassReason.AMBIGUOUS_JSON),
        ('"temperature": 0, "stream": "true"', BypassReason.AMBIGUOUS_JSON),
        ('"temperature": 0, "stream": 0', BypassReason.AMBIGUOUS_JSON),
        ('"temperature": 0, "model": "other"', BypassReason.MODEL),
        ('"temperature": 0, "model": "llama-2026"', BypassReason.MODEL),
        ('"temperature": 0, "model": null', BypassReason.MODEL),
        ('"temperature": 0, "tools": [{"type": "function"}]', None),
        ('"temperature": 0, "seed": 5', None),
    ],
)
def test_what_the_body_says(field: str, reason: BypassReason | None) -> None:
    """Only an explicit temperature 0, one choice and one model are cached, as a stream or not."""
    parsed = parse_json(f"{{{field}}}".encode())
    assert isinstance(parsed, dict)
    body = {"model": "llama", "messages": [], **parsed}
    assert why_not_cached(ENVELOPE, body, POLICY) == reason


def test_an_omitted_temperature_means_sampled() -> None:
    """The default of an engine is not 0."""
    body = {name: value for name, value in BODY.items() if name != "temperature"}
    assert why_not_cached(ENVELOPE, body, POLICY) is BypassReason.SAMPLING


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_other_temperature_is_deterministic(temperature: float) -> None:
    """Of all numbers only 0 is."""
    reason = why_not_cached(ENVELOPE, {**BODY, "temperature": temperature}, POLICY)
    assert reason is (None if temperature == 0 else BypassReason.SAMPLING)


@pytest.mark.parametrize(
    ("content_type", "is_json"),
    [
        ("application/json", True),
        ("Application/JSON; charset=UTF-8", True),
        ('application/json;charset="utf-8"', True),
        ("application/json; charset=latin-1", False),
        ("application/json; charset=utf-16", False),
        ("application/jsonl", False),
        ("application/x-www-form-urlencoded", False),
        ("text/event-stream", False),
        ("", False),
    ],
)
def test_json_is_recognised_by_its_type(content_type: str, is_json: bool) -> None:
    """Only JSON in UTF-8 is parsed."""
    assert is_json_type(content_type) is is_json


def test_the_first_route_of_a_path_wins() -> None:
    """Paths match whole, and the order of routes counts."""
    second = RoutePolicy(name="second", path=ROUTE.path, layers=())
    policy = POLICY.model_copy(update={"routes": (ROUTE, second)})
    assert find_route("/v1/chat/completions", policy) is ROUTE
    assert find_route("/v1/chat", policy) is None
    assert find_route("/v1/chat/completions/", policy) is None
