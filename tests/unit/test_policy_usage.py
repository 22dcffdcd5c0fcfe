"""Tokens that a hit saves, read from the answer as it is kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.answers import KeptAnswer
from cachewright.policy.usage import Tokens, tokens_of

COUNTED = {"prompt_tokens": 8, "completion_tokens": 11, "total_tokens": 19}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", " :\n")])
@pytest.mark.parametrize(
    "document",
    [
        {"choices": [], "usage": COUNTED},
        {"usage": COUNTED, "choices": [{"text": 'he said "usage": {"prompt_tokens": 5}'}]},
        {"usage": {**COUNTED, "prompt_tokens_details": {"cached_tokens": 4}}, "system_fingerprint": "x"},
        {"output": [], "usage": {"input_tokens": 8, "output_tokens": 11}},
    ],
)
def test_whole_answers(document: object, separators: tuple[str, str]) -> None:
    """Wherever it stands, however it is written, under the names of each endpoint."""
    body = json.dumps(document, separators=separators).encode()
    assert tokens_of(KeptAnswer("application/json", body)) == Tokens(8, 11)


def test_streams() -> None:
    """It is kept apart from the other events."""
    event = b"data: " + json.dumps({"choices": [], "usage": COUNTED}).encode() + b"\n\n"
    assert tokens_of(KeptAnswer("text/event-stream", b"data: {}\n\n", event)) == Tokens(8, 11)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"usage": null}',
        b'{"usage": [1]}',
        b'{"usage": {"prompt_tokens": "8", "completion_tokens": -1}}',
        b'{"usage": {"prompt_tokens": true}}',
        b'{"usage": {"prompt_tokens"',
        b'{"usage"',
    ],
)
def test_what_says_nothing_counts_nothing(body: bytes) -> None:
    """No answer makes a hit fail."""
    assert tokens_of(KeptAnswer("application/json", body)) == Tokens()


@given(st.binary(max_size=60))
def test_no_bytes_raise(rest: bytes) -> None:
    """Whatever stands there."""
    for body in (b'{"usage":' + rest, rest + b'"usage"' + rest):
        assert tokens_of(KeptAnswer("application/json", body)).prompt >= 0
