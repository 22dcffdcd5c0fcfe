"""Requests for embeddings, as they are read: inputs, form, length, and what may change a vector."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.embeddings import MOST_INPUTS, Input, read_request, shared_out

TEXTS_AND_TOKENS = st.lists(st.one_of(st.text(), st.lists(st.integers(0, 9), min_size=1)), min_size=1)


@pytest.mark.parametrize(
    ("given_input", "inputs"),
    [
        ("a", ("a",)),
        ("", ("",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ([1, 2],)),
        ([[1], [2, 3]], ([1], [2, 3])),
    ],
    ids=str,
)
def test_each_form_of_input_is_understood(given_input: Any, inputs: tuple[Input, ...]) -> None:
    """A text, texts, tokens of one text, tokens of several."""
    request = read_request({"model": "m", "input": given_input}, 8)
    assert request is not None
    assert request.inputs == inputs


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"input": None},
        {"input": []},
        {"input": [[]]},
        {"input": ["a", 1]},
        {"input": ["a", [1]]},
        {"input": [True]},
        {"input": [1.5]},
        {"input": {"text": "a"}},
        {"input": ["a"] * (MOST_INPUTS + 1)},
        {"input": "a", "encoding_format": "int8"},
        {"input": "a", "encoding_format": None},
        {"input": "a", "dimensions": 0},
        {"input": "a", "dimensions": "8"},
        {"input": "a", "dimensions": True},
    ],
    ids=lambda document: str(document)[:40],
)
def test_what_is_not_understood_is_not_cached(document: dict[str, Any]) -> None:
    """Better no part in a request than a wrong one."""
    assert read_request(document, 8) is None


def test_only_what_may_change_a_vector_is_in_the_key() -> None:
    """Unknown fields count; model, form and user do not, nor does the model's own length."""
    harmless = {"model": "m", "input": "a", "encoding_format": "base64", "user": "u", "dimensions": 8}
    request = read_request(harmless, 8)
    other = read_request({**harmless, "dimensions": 4, "input_type": "query"}, 8)
    assert request is not None
    assert other is not None
    assert (request.settings, request.dimensions) == ({}, 8)
    assert (other.settings, other.dimensions) == ({"dimensions": 4, "input_type": "query"}, 4)


def test_the_same_request_is_made_for_some_of_its_inputs() -> None:
    """Whatever else the client said is said to the embedder too."""
    request = read_request({"model": "m", "input": ["a", "b"], "user": "u", "truncate": True}, 8)
    assert request is not None
    assert request.for_inputs(["b"]) == {"model": "m", "input": ["b"], "user": "u", "truncate": True}


@given(st.integers(0, 100_000), TEXTS_AND_TOKENS)
def test_shared_out_tokens_add_up(tokens: int, inputs: list[Input]) -> None:
    """No token is lost or counted twice, and nobody has fewer than none."""
    shares = shared_out(tokens, inputs)
    assert len(shares) == len(inputs)
    assert all(share >= 0 for share in shares)
    assert sum(shares) == (tokens if any(len(each) for each in inputs) else 0)


def test_tokens_are_shared_out_by_size() -> None:
    """A longer text has the larger part."""
    assert shared_out(12, ["a" * 10, "a" * 20, "a" * 30]) == [2, 4, 6]
