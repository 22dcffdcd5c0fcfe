"""Controls of other gateways: each is understood as far as it narrows, and none widens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.compat import (
    BODY_CONTROLS,
    HEADER_CONTROLS,
    NOTHING,
    Effect,
    Narrowing,
    read_body,
    read_headers,
)
from cachewright.policy.wishes import Wishes

REFRESH = Narrowing(Wishes(refresh=True))
NO_STORE = Narrowing(Wishes(no_store=True))


def live(seconds: float) -> Narrowing:
    """Return a narrowing of the answer's life."""
    return Narrowing(ttl_seconds=seconds)


def partition(name: str, value: str) -> Narrowing:
    """Return a narrowing of who shares the answer."""
    return Narrowing(partition=((name, (value,)),))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("x-portkey-cache-force-refresh", "true", REFRESH),
        ("x-portkey-cache-force-refresh", "True", REFRESH),
        ("x-portkey-cache-force-refresh", "yes please", REFRESH),
        ("x-portkey-cache-force-refresh", "false", NOTHING),
        ("x-portkey-cache-namespace", "a", partition("x-portkey-cache-namespace", "a")),
        ("cf-aig-skip-cache", "true", NO_STORE),
        ("cf-aig-skip-cache", "false", NOTHING),
        ("cf-skip-cache", "true", NO_STORE),
        ("cf-aig-cache-ttl", "3600", live(3600)),
        ("cf-aig-cache-ttl", "0", NO_STORE),
        ("cf-aig-cache-ttl", "-5", NO_STORE),
        ("cf-aig-cache-ttl", "for ever", NO_STORE),
        ("cf-aig-cache-key", "k", partition("cf-aig-cache-key", "k")),
        ("x-bf-cache-no-store", "true", NO_STORE),
        ("x-bf-cache-ttl", "30s", live(30)),
        ("x-bf-cache-ttl", "1h30m", live(5400)),
        ("x-bf-cache-ttl", "1500ms", live(1.5)),
        ("x-bf-cache-ttl", "300", live(300)),
        ("x-bf-cache-ttl", "1d", NO_STORE),
        ("x-bf-cache-ttl", "9" * 30, NO_STORE),
        ("x-bf-cache-key", "session", partition("x-bf-cache-key", "session")),
        ("x-bf-cache-type", "semantic", REFRESH),
        ("x-bf-cache-type", "direct", NOTHING),
        ("x-bf-cache-threshold", "0.1", Narrowing(threshold=0.1)),
        ("cachewright-threshold", "1", Narrowing(threshold=1.0)),
        ("cachewright-threshold", "1.1", Narrowing(threshold=2.0)),
        ("cachewright-threshold", "much", Narrowing(threshold=2.0)),
        ("cachewright-layers", "Exact", Narrowing(threshold=2.0)),
        ("cachewright-layers", "exact, semantic", NOTHING),
        ("x-unknown-cache", "true", NOTHING),
    ],
)
def test_headers(name: str, value: str, expected: Narrowing) -> None:
    """What each means here."""
    assert read_headers([(name.encode(), value.encode())]) == expected


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        ({}, NOTHING),
        ({"no-cache": True}, REFRESH),
        ({"no-cache": False}, NOTHING),
        ({"no-cache": None}, NOTHING),
        ({"no-store": True}, NO_STORE),
        ({"no-store": "true"}, NO_STORE),
        ({"s-maxage": 60}, Narrowing(Wishes(max_age_seconds=60))),
        ({"s-max-age": 60}, Narrowing(Wishes(max_age_seconds=60))),
        ({"s-maxage": 0}, Narrowing(Wishes(refresh=True, max_age_seconds=0))),
        ({"s-maxage": "soon"}, Narrowing(Wishes(refresh=True, max_age_seconds=0))),
        ({"ttl": 300}, live(300)),
        ({"ttl": 0}, NO_STORE),
        ({"ttl": True}, NO_STORE),
        ({"ttl": [1]}, NO_STORE),
        ({"namespace": "a"}, partition("namespace", "a")),
        ({"use-cache": True}, NOTHING),
        ({"unknown": 1}, NOTHING),
        ({"ttl": 300, "no-cache": True}, Narrowing(Wishes(refresh=True), 300)),
    ],
)
def test_the_object_in_the_body(cache: dict[str, Any], expected: Narrowing) -> None:
    """What LiteLLM's clients send is understood and taken out of the request."""
    request = {"model": "llama", "messages": [], "cache": cache}
    assert read_body(request) == (expected, {"model": "llama", "messages": []})
    assert "cache" in request


@pytest.mark.parametrize("value", [True, None, "no-cache", 5, [{"no-cache": True}]])
def test_another_field_of_that_name_is_left_alone(value: object) -> None:
    """It is no object of controls, so it is the upstream's, and part of the key."""
    assert read_body({"cache": value}) == (NOTHING, None)


def test_several_controls_add_up() -> None:
    """To the narrowest of all, whoever's they are, in any order."""
    headers = [
        (b"x-bf-cache-ttl", b"1h"),
        (b"cf-aig-cache-ttl", b"60"),
        (b"x-portkey-cache-namespace", b"a"),
        (b"x-portkey-cache-force-refresh", b"true"),
    ]
    expected = Narrowing(Wishes(refresh=True), 60, (("x-portkey-cache-namespace", ("a",)),))
    assert read_headers(headers) == read_headers(headers[::-1]) == expected


CONTROLS = [*HEADER_CONTROLS, *BODY_CONTROLS]
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)


@given(st.sampled_from(CONTROLS), values, st.integers(0, 10**6), st.booleans())
def test_none_widens(control: Any, value: object, age_seconds: int, no_store: bool) -> None:
    """Whatever its value, what was forbidden stays so, and nothing is allowed that was not."""
    given_before = Narrowing(Wishes(no_store=no_store, max_age_seconds=60), 30, (("a", ("b",)),))
    if control in HEADER_CONTROLS:
        read = read_headers([(control.name.encode(), str(value).encode("utf-8", "replace"))])
    else:
        read, _ = read_body({"cache": {control.name: value}})
    after = given_before.and_(read)
    assert after.wishes.no_store >= no_store
    assert after.wishes.allow(age_seconds) <= given_before.wishes.allow(age_seconds)
    assert after.ttl_seconds is not None
    assert 0 < after.ttl_seconds <= 30
    assert set(given_before.partition) <= set(after.partition)
    if control.effect is Effect.NOTHING:
        assert after == given_before
