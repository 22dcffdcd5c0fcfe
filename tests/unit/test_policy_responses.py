"""`/v1/responses`: only what stands on its own is cached, and only whole answers are stored."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.cacheable import why_not_cached
from cachewright.policy.reasons import BypassReason, RefusalReason
from cachewright.policy.validate import Answer, storable_body
from tests.unit.test_policy_cacheable import ENVELOPE, POLICY, ROUTE

PATH = "/v1/responses"
HERE = replace(ENVELOPE, route=ROUTE.model_copy(update={"path": PATH}))
BODY: dict[str, Any] = {"model": "llama", "input": "Hello?", "temperature": 0, "store": False}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


def message(*content: object, **changes: Any) -> dict[str, Any]:
    """Return an item of output with this content."""
    return {"type": "message", "role": "assistant", "status": "completed", "content": content, **changes}


def text(words: object = "Hello.") -> dict[str, Any]:
    """Return a part of content."""
    return {"type": "output_text", "text": words, "annotations": []}


def verdict(output: object, request: dict[str, Any] = BODY, **changes: Any) -> bytes | RefusalReason:
    """Judge an answer with this output."""
    document = {"id": "resp_1", "object": "response", "status": "completed", "model": "llama"}
    body = json.dumps({**document, "error": None, "incomplete_details": None, "output": output, **changes})
    return storable_body(Answer(200, "application/json", "", body.encode()), request, PATH, POLICY)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"input": [{"role": "user", "content": "Hello?"}]},
        {"tools": []},
        {"tools": None},
        {"tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}]},
        {"previous_response_id": None, "conversation": None, "prompt": None, "background": False},
        {"instructions": "Be brief.", "text": {"format": {"type": "text"}}},
        {"stream": True},
        {"stream": True, "stream_options": None},
        {"stream": False, "stream_options": {"include_obfuscation": False}},
    ],
)
def test_what_stands_on_its_own_is_cached(fields: dict[str, Any]) -> None:
    """Nothing is kept, continued or run by the provider."""
    assert why_not_cached(HERE, {**BODY, **fields}, POLICY) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"store": True},
        {"store": None},
        {"store": 0},
        {"store": "false"},
        {"previous_response_id": "resp_1"},
        {"previous_response_id": ""},
        {"conversation": "conv_1"},
        {"conversation": {"id": "conv_1"}},
        {"prompt": {"id": "pmpt_1", "version": "2"}},
        {"background": True},
        {"background": 1},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"input": [{"role": "user", "content": "and?"}, {"id": "msg_1"}]},
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "function", "name": "f"}, {"type": "mcp", "server_url": "x"}]},
        {"tools": [{"type": "code_interpreter"}]},
        {"tools": ["web_search"]},
        {"tools": {"type": "function"}},
    ],
)
def test_what_has_state_is_not_cached(fields: dict[str, Any]) -> None:
    """Nor is what may have."""
    assert why_not_cached(HERE, {**BODY, **fields}, POLICY) is BypassReason.STATEFUL


def test_a_response_is_kept_unless_the_client_says_otherwise() -> None:
    """Leaving out `store` means true."""
    body = {name: value for name, value in BODY.items() if name != "store"}
    assert why_not_cached(HERE, body, POLICY) is BypassReason.STATEFUL


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stream": "yes"}, BypassReason.AMBIGUOUS_JSON),
        ({"temperature": 1}, BypassReason.SAMPLING),
        ({"model": "other"}, BypassReason.MODEL),
    ],
)
def test_the_rules_of_all_endpoints_hold(fields: dict[str, Any], reason: BypassReason) -> None:
    """Sampling, other models and what may be a stream or not are not cached here either."""
    assert why_not_cached(HERE, {**BODY, **fields}, POLICY) is reason


@pytest.mark.parametrize("options", [{"include_obfuscation": False}, {"include_usage": True}, "odd"])
def test_streams_with_options_are_passed_on(options: object) -> None:
    """A stored stream has the padding that its own request had."""
    body = {**BODY, "stream": True, "stream_options": options}
    assert why_not_cached(HERE, body, POLICY) is BypassReason.STREAM


@pytest.mark.parametrize(
    "output",
    [
        [message(text())],
        [REASONING, message(text())],
        [message(text("Hel"), text("lo."))],
    ],
)
def test_a_whole_answer_is_stored(output: object) -> None:
    """With or without the reasoning before it."""
    assert isinstance(verdict(output), bytes)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (None, RefusalReason.UNPARSABLE),
        ("text", RefusalReason.UNPARSABLE),
        (["text"], RefusalReason.UNPARSABLE),
        ([], RefusalReason.EMPTY),
        ([REASONING], RefusalReason.EMPTY),
        ([message()], RefusalReason.EMPTY),
        ([message(text("  "))], RefusalReason.EMPTY),
        ([message(text(None))], RefusalReason.UNPARSABLE),
        ([message("text")], RefusalReason.UNPARSABLE),
        ([message({"type": "output_audio"})], RefusalReason.UNPARSABLE),
        ([message({"type": "refusal", "refusal": "No."})], RefusalReason.REFUSAL),
        ([message(text()), {"type": "function_call", "name": "f"}], RefusalReason.TOOL_CALL),
        ([{"type": "web_search_call"}, message(text())], RefusalReason.TOOL_CALL),
        ([{"type": "custom_tool_call"}], RefusalReason.TOOL_CALL),
    ],
)
def test_what_is_not_stored(output: object, reason: RefusalReason) -> None:
    """Answers that call a tool, refuse, say nothing or have another form."""
    assert verdict(output) is reason


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "incomplete"},
        {"status": "in_progress"},
        {"status": "queued"},
        {"status": None},
        {"incomplete_details": {"reason": "max_output_tokens"}},
    ],
)
def test_what_did_not_end_is_not_stored(changes: dict[str, Any]) -> None:
    """Only a completed response is whole."""
    assert verdict([message(text())], **changes) is RefusalReason.FINISH_REASON


def test_errors_and_other_models_are_not_stored() -> None:
    """The rules for all endpoints hold here too."""
    assert verdict([message(text())], error={"code": "server_error"}) is RefusalReason.UNPARSABLE
    assert verdict([message(text())], model="fallback") is RefusalReason.MODEL


def test_json_that_was_asked_for_must_be_json() -> None:
    """The format stands in `text.format`."""
    asked = {**BODY, "text": {"format": {"type": "json_schema", "schema": {}}}}
    assert verdict([message(text("Sure!"))], asked) is RefusalReason.INVALID_FORMAT
    assert isinstance(verdict([message(text('{"a": 1}'))], asked), bytes)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["message", "output_text", "id"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["type", "content", "text", "id"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_no_shape_of_request_or_answer_raises(value: object) -> None:
    """Whatever is sent, the verdict is a reason or the body."""
    assert verdict(value) is not None
    for field in ("input", "tools", "prompt", "text"):
        request = {**BODY, field: value}
        assert why_not_cached(HERE, request, POLICY) in (None, BypassReason.STATEFUL)
        assert verdict([message(text())], request) is not None
