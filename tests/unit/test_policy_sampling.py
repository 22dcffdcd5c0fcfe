"""Sampling: which requests each rule of a route takes, and what ForceZero makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from cachewright.policy.sampling import SAMPLING_FIELDS, Sampling, forced, is_interchangeable

EVERY: tuple[Sampling, ...] = ("Strict", "ForceZero", "AssumeDeterministic")


@pytest.mark.parametrize(
    ("fields", "taken_by"),
    [
        ({"temperature": 0}, "Strict ForceZero AssumeDeterministic"),
        ({"temperature": 0.0, "top_p": 1.0}, "Strict ForceZero AssumeDeterministic"),
        ({"temperature": 0, "top_p": 0.9}, "ForceZero"),
        ({"temperature": 0, "top_p": None}, "ForceZero"),
        ({}, "ForceZero AssumeDeterministic"),
        ({"temperature": None, "top_p": None}, "ForceZero AssumeDeterministic"),
        ({"top_p": 1}, "ForceZero AssumeDeterministic"),
        ({"top_p": 0.5}, "ForceZero"),
        ({"temperature": 0.7}, "ForceZero"),
        ({"temperature": 1}, "ForceZero"),
        ({"temperature": 1, "top_p": 1}, "ForceZero"),
        ({"temperature": "0"}, ""),
        ({"temperature": False}, ""),
        ({"temperature": 0, "top_p": True}, ""),
        ({"top_p": [1]}, ""),
    ],
)
def test_each_rule_takes_what_it_says(fields: dict[str, Any], taken_by: str) -> None:
    """Whatever else a request holds."""
    taken = [rule for rule in EVERY if is_interchangeable({"model": "m", **fields}, rule)]
    assert taken == [rule for rule in EVERY if rule in taken_by.split()]


@pytest.mark.parametrize("name", SAMPLING_FIELDS)
@pytest.mark.parametrize("rule", EVERY)
def test_another_way_to_choose_tokens_is_never_taken(name: str, rule: Sampling) -> None:
    """Even where it is named without a value."""
    assert not is_interchangeable({"temperature": 0, name: None}, rule)


def test_forced_requests_ask_for_no_sampling_and_keep_the_rest() -> None:
    """In their order, so that the upstream builds the same prompt; the client's own is left as it was."""
    request = {"b": 1, "temperature": 0.7, "a": {"z": 1, "y": 2}}
    made = forced(request)
    assert list(made.items()) == [("b", 1), ("temperature", 0), ("a", {"z": 1, "y": 2}), ("top_p", 1)]
    assert request["temperature"] == 0.7
    assert is_interchangeable(made, "Strict")
    assert forced(made) == made
