"""Validate before store: truncated, empty, failed, tool-calling and foreign answers are never stored."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.content_encoding import decode_content
from cachewright.policy.reasons import RefusalReason
from cachewright.policy.validate import Answer, storable_body
from tests.unit.test_policy_cacheable import BODY, PATH, POLICY


def document(**changes: Any) -> dict[str, Any]:
    """Return a complete answer with some fields changed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "model": "llama", "choices": [choice], **changes}


def choice(finish_reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    """Return a choice with some fields of its message changed."""
    text = {"role": "assistant", "content": "Hello.", **message}
    return {"index": 0, "message": text, "finish_reason": finish_reason}


def answer(value: object) -> Answer:
    """Return an answer with this document as its body."""
    return Answer(200, "application/json", "", json.dumps(value).encode())


WHOLE = answer(document())


@pytest.mark.parametrize(
    "good",
    [
        WHOLE,
        replace(WHOLE, content_type="application/json; charset=utf-8"),
        answer(document(model="llama-2026")),
        answer(document(choices=[choice(), choice()])),
        answer(document(choices=[choice(tool_calls=[], refusal=None, function_call=None)])),
        answer(document(choices=[choice(reasoning_content="because")])),
        answer(document(error=None)),
    ],
)
def test_a_whole_answer_is_stored_as_it_is(good: Answer) -> None:
    """Answers of the model or one of its aliases, ended by themselves, keep every byte."""
    assert storable_body(good, BODY, PATH, POLICY) == good.body


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (replace(WHOLE, status=500), RefusalReason.STATUS),
        (replace(WHOLE, status=201), RefusalReason.STATUS),
        (replace(WHOLE, content_type="text/event-stream"), RefusalReason.CONTENT_TYPE),
        (replace(WHOLE, content_type=""), RefusalReason.CONTENT_TYPE),
        (replace(WHOLE, content_encoding="br"), RefusalReason.ENCODED),
        (replace(WHOLE, content_encoding="gzip"), RefusalReason.ENCODED),
        (replace(WHOLE, body=b" " * 1001), RefusalReason.TOO_LARGE),
        (replace(WHOLE, body=WHOLE.body[:-1]), RefusalReason.UNPARSABLE),
        (replace(WHOLE, body=b""), RefusalReason.UNPARSABLE),
        (answer([document()]), RefusalReason.UNPARSABLE),
        (answer({"error": {"message": "overloaded"}}), RefusalReason.UNPARSABLE),
        (answer(document(error={"message": "overloaded"})), RefusalReason.UNPARSABLE),
        (answer(document(choices=[])), RefusalReason.UNPARSABLE),
        (answer(document(choices=["Hello."])), RefusalReason.UNPARSABLE),
        (answer(document(choices=[{"text": "Hello.", "finish_reason": "stop"}])), RefusalReason.UNPARSABLE),
        (answer(document(model="fallback")), RefusalReason.MODEL),
        (answer(document(model=None)), RefusalReason.MODEL),
        (answer(document(choices=[choice("length")])), RefusalReason.FINISH_REASON),
        (answer(document(choices=[choice("content_filter")])), RefusalReason.FINISH_REASON),
        (answer(document(choices=[choice(None)])), RefusalReason.FINISH_REASON),
        (answer(document(choices=[choice(), choice("length")])), RefusalReason.FINISH_REASON),
        (answer(document(choices=[choice("tool_calls", tool_calls=[{"id": "1"}])])), RefusalReason.TOOL_CALL),
        (answer(document(choices=[choice(tool_calls=[{"id": "1"}])])), RefusalReason.TOOL_CALL),
        (answer(document(choices=[choice(function_call={"name": "f"})])), RefusalReason.TOOL_CALL),
        (answer(document(choices=[choice(refusal="I cannot.")])), RefusalReason.REFUSAL),
        (answer(document(choices=[choice(content="")])), RefusalReason.EMPTY),
        (answer(document(choices=[choice(content=" \n")])), RefusalReason.EMPTY),
        (answer(document(choices=[choice(content=None)])), RefusalReason.EMPTY),
        (answer(document(choices=[choice(content=[{"type": "text"}])])), RefusalReason.EMPTY),
    ],
)
def test_anything_less_is_not(bad: Answer, reason: RefusalReason) -> None:
    """Each defect of an answer has its reason."""
    assert storable_body(bad, BODY, PATH, POLICY) is reason


@pytest.mark.parametrize(
    ("wanted", "text", "is_stored"),
    [
        ({"type": "json_object"}, '{"a": 1}', True),
        ({"type": "json_object"}, '{"a": 1', False),
        ({"type": "json_object"}, "1", False),
        ({"type": "json_schema", "json_schema": {}}, "[1]", True),
        ({"type": "json_schema", "json_schema": {}}, "Sure! [1]", False),
        ({"type": "text"}, "Sure!", True),
        (None, "Sure!", True),
        ("json_object", "Sure!", True),
    ],
)
def test_json_that_was_asked_for_must_be_json(wanted: object, text: str, is_stored: bool) -> None:
    """A text that is cut off in the middle of its JSON is not stored."""
    got = storable_body(
        answer(document(choices=[choice(content=text)])), {**BODY, "response_format": wanted}, PATH, POLICY
    )
    assert isinstance(got, bytes) if is_stored else got is RefusalReason.INVALID_FORMAT


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_compressed_answers_are_stored_plain(encoding: str, compress: Any) -> None:
    """What is replayed needs no client that can decompress."""
    packed = replace(WHOLE, content_encoding=encoding, body=compress(WHOLE.body))
    assert storable_body(packed, BODY, PATH, POLICY) == WHOLE.body


def test_a_bomb_is_not_unpacked() -> None:
    """Decompression stops at the limit."""
    assert decode_content(gzip.compress(b" " * 5_000_000), "gzip", 1000) is None
    assert decode_content(gzip.compress(b" " * 1000), "gzip", 1000) == b" " * 1000


def test_broken_compression_is_refused() -> None:
    """Truncated streams and bytes behind the end are no whole answer."""
    packed = gzip.compress(b"abc" * 50)
    assert decode_content(packed[:-1], "gzip", 1000) is None
    assert decode_content(packed + b"x", "gzip", 1000) is None


@given(st.binary(max_size=300), st.sampled_from(["", "gzip", "deflate"]))
def test_no_answer_raises(body: bytes, encoding: str) -> None:
    """Whatever an upstream sends, the verdict is a reason or the body."""
    assert storable_body(Answer(200, "application/json", encoding, body), BODY, PATH, POLICY) is not None
