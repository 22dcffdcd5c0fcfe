"""Streams and whole answers: each made from the other with every field of every delta."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.answers import Delivery, KeptAnswer, deliver
from cachewright.policy.reasons import RefusalReason
from cachewright.policy.sse import Event, read_events, write_event
from cachewright.policy.stream_assemble import MOST_INDEXED, Assembled, assemble_chat, assemble_completion
from cachewright.policy.stream_replay import replay_chat, replay_completion, without_null_usage
from cachewright.policy.stream_request import asking_for_usage
from cachewright.policy.validate import Judgement, judge_stream
from tests.unit.test_policy_cacheable import BODY, POLICY

PATH = "/v1/chat/completions"
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "completion_tokens_details": {"r": 1}}
DONE = b"[DONE]"


def chunk(*choices: dict[str, Any], **fields: Any) -> bytes:
    """Return one chunk as its payload."""
    envelope = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "llama"}
    return json.dumps({**envelope, "choices": list(choices), **fields}).encode()


def delta(index: int = 0, reason: str | None = None, logprobs: Any = None, **fields: Any) -> dict[str, Any]:
    """Return one choice of a chunk."""
    return {"index": index, "delta": fields, "logprobs": logprobs, "finish_reason": reason}


def whole(*payloads: bytes) -> Assembled:
    """Assemble what can be."""
    assembled = assemble_chat(payloads)
    assert assembled is not None
    return assembled


HELLO = [
    chunk(delta(role="assistant", content="")),
    chunk(delta(reasoning_content="Let me ", content=None)),
    chunk(delta(reasoning_content="think.")),
    chunk(delta(content="Hel", logprobs={"content": [{"token": "Hel", "logprob": -0.25}], "refusal": None})),
    chunk(delta(content="lo.", logprobs={"content": [{"token": "lo.", "logprob": -1e-05}]})),
    chunk(delta(reason="stop"), system_fingerprint="fp"),
    chunk(usage=USAGE),
    DONE,
]


def test_every_field_is_assembled() -> None:
    """Texts are joined, lists go on, names are said once, usage and fingerprint are kept."""
    assembled = whole(*HELLO)
    assert assembled.is_done
    (choice,) = assembled.document.pop("choices")
    assert assembled.document == {
        "id": "c1",
        "object": "chat.completion",
        "created": 7,
        "model": "llama",
        "system_fingerprint": "fp",
        "usage": USAGE,
    }
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "Hello.", "reasoning_content": "Let me think."},
        "logprobs": {
            "content": [{"token": "Hel", "logprob": -0.25}, {"token": "lo.", "logprob": -1e-05}],
            "refusal": None,
        },
        "finish_reason": "stop",
    }


def test_tool_calls_are_joined_by_their_index() -> None:
    """Arguments grow, ids and names are said once even where an engine repeats them."""
    calls = [
        [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
        [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{"}}],
        [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":'}}],
        [{"index": 1, "function": {"arguments": "}"}}, {"index": 0, "function": {"arguments": "1}"}}],
    ]
    chunks = [chunk(delta(tool_calls=part)) for part in calls]
    (choice,) = whole(*chunks, chunk(delta(reason="tool_calls")), DONE).document["choices"]
    assert choice["message"]["tool_calls"] == [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]


def test_choices_are_told_apart() -> None:
    """Each has its own text and end, in the order of their numbers."""
    chunks = [chunk(delta(1, content="b")), chunk(delta(0, content="a"), delta(1, content="B"))]
    assembled = whole(*chunks, chunk(delta(0, "stop")), DONE)
    assert not assembled.is_done  # the second never said why it ended
    assembled = whole(*chunks, chunk(delta(0, "stop")), chunk(delta(1, "stop")), DONE)
    assert [choice["message"]["content"] for choice in assembled.document["choices"]] == ["a", "bB"]
    assert assembled.is_done


DEEP: dict[str, Any] = json.loads('{"a":' * 40 + "1" + "}" * 40)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"error": {"message": "x"}}',
        b'{"choices": {}}',
        b'{"choices": [1]}',
        b'{"choices": [{"index": "0", "delta": {}}]}',
        b'{"choices": [{"index": 0, "delta": "x"}]}',
        chunk(delta(x=DEEP)),
        chunk(delta(content=["a"])),
        chunk(error="late"),
    ],
)
def test_what_is_no_chunk_is_refused(bad: bytes) -> None:
    """One of them spoils the stream; so does anything after its end."""
    first = chunk(delta(content="a"))
    assert assemble_chat([first, bad, DONE]) is None
    assert assemble_chat([first, DONE, first]) is None


def test_a_list_does_not_grow_without_bound() -> None:
    """Numbered items cost a search each, so there is a most."""
    calls = [{"index": number} for number in range(MOST_INDEXED + 1)]
    assert assemble_chat([chunk(delta(tool_calls=calls))]) is None


def judge(payloads: list[bytes]) -> Judgement:
    """Judge a stream."""
    events = [Event(write_event(payload), payload) for payload in payloads]
    return judge_stream("text/event-stream", events, BODY, PATH, POLICY)


@pytest.mark.parametrize(
    ("payloads", "reason", "is_shared"),
    [
        (HELLO, None, True),
        (HELLO[:-1], RefusalReason.INCOMPLETE, False),
        ([HELLO[3], HELLO[4], DONE], RefusalReason.INCOMPLETE, False),
        ([DONE], RefusalReason.INCOMPLETE, False),
        ([], RefusalReason.INCOMPLETE, False),
        ([HELLO[3], b"broken", HELLO[5], DONE], RefusalReason.UNPARSABLE, False),
        ([HELLO[0], HELLO[5], DONE], RefusalReason.EMPTY, False),
        ([HELLO[3], chunk(delta(reason="length")), DONE], RefusalReason.FINISH_REASON, True),
        ([chunk(delta(refusal="No.")), HELLO[5], DONE], RefusalReason.REFUSAL, True),
        ([chunk(delta(tool_calls=[{"index": 0}])), HELLO[5], DONE], RefusalReason.TOOL_CALL, True),
        ([HELLO[3], chunk(delta(reason="stop"), model="fallback"), DONE], RefusalReason.MODEL, False),
        ([chunk(delta(content="x", reason="stop"), model="fallback"), DONE], RefusalReason.MODEL, False),
    ],
)
def test_a_stream_is_kept_only_when_it_ended_well(
    payloads: list[bytes], reason: RefusalReason | None, is_shared: bool
) -> None:
    """Cut off, failed, empty and foreign ones are for their own client alone."""
    judgement = judge(payloads)
    assert judgement.refusal == reason
    assert (judgement.kept is not None) == is_shared


def test_a_replay_is_the_original() -> None:
    """Byte for byte, its usage for those who ask for it, and its end."""
    kept = judge(HELLO).kept
    assert kept is not None
    for usage, wanted in ((True, HELLO), (False, [*HELLO[:-2], DONE])):
        delivered = deliver(kept, Delivery(stream=True, usage=usage), PATH)
        assert delivered is not None
        assert [event.data for event in read_events(delivered.body)] == wanted
    as_json = deliver(kept, Delivery(stream=False, usage=False), PATH)
    assert as_json is not None
    assert as_json.content_type == "application/json"
    assert json.loads(as_json.body) == whole(*HELLO).document


def test_what_cannot_be_written_has_no_other_form() -> None:
    """An answer nested beyond what is ever written is given as it is, and to nobody in another form."""
    deep = '{"a":' * 500 + "1" + "}" * 500
    choice = f'{{"index": 0, "message": {{"content": "x"}}, "finish_reason": "stop", "x": {deep}}}'
    whole_answer = KeptAnswer("application/json", f'{{"choices": [{choice}]}}'.encode())
    assert deliver(whole_answer, Delivery(stream=True, usage=False), PATH) is None
    assert deliver(whole_answer, Delivery(stream=False, usage=False), PATH) is not None
    chunks = f'data: {{"choices": [{choice.replace("message", "delta")}]}}\n\n'
    stream = KeptAnswer("text/event-stream", chunks.encode())
    assert deliver(stream, Delivery(stream=False, usage=False), PATH) is None
    assert deliver(stream, Delivery(stream=True, usage=False), PATH) is not None


def test_the_null_usage_of_other_chunks_goes() -> None:
    """The rest of the chunk keeps its bytes; a text that looks like it stays."""
    tricky = json.dumps(',"usage":null,').encode()
    assert without_null_usage(b'{"a":' + tricky + b', "usage" : null }') == b'{"a":' + tricky + b" }"
    assert without_null_usage(b'{"usage":{"a":null}}') == b'{"usage":{"a":null}}'


TEXTS = st.text(max_size=30)
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": TEXTS},
    optional={
        "reasoning_content": TEXTS.filter(bool),
        "refusal": TEXTS.filter(bool),
        "annotations": st.lists(st.dictionaries(TEXTS, TEXTS, max_size=2), min_size=1, max_size=3),
        "audio": st.fixed_dictionaries({"id": TEXTS.filter(bool), "data": TEXTS.filter(bool)}),
    },
)


@given(MESSAGES, st.sampled_from(["stop", "length"]), st.none() | st.just(USAGE))
def test_a_whole_answer_survives_its_replay(
    message: dict[str, Any], reason: str, usage: dict[str, Any] | None
) -> None:
    """Cut into chunks and assembled again it is the same answer."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason, "stop_reason": 5}
    document = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    document |= {"usage": usage} if usage else {}
    events, last = replay_chat(document)
    payloads = [event.data for event in read_events(events + last) if event.data is not None]
    assert len(payloads) >= 2
    assert whole(*payloads, DONE).document == document


def test_a_json_answer_is_replayed_as_chunks() -> None:
    """Well-formed ones of the same id, with usage only for those who ask."""
    message = {"role": "assistant", "content": "Hi.", "tool_calls": [{"id": "a", "function": {"name": "f"}}]}
    choice = {"index": 0, "message": message, "logprobs": {"content": []}, "finish_reason": "stop"}
    document = {"id": "c", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    kept = KeptAnswer("application/json", json.dumps(document).encode())
    for usage in (True, False):
        delivered = deliver(kept, Delivery(stream=True, usage=usage), PATH)
        assert delivered is not None
        assert delivered.content_type == "text/event-stream"
        *chunks, end = [event.data for event in read_events(delivered.body) if event.data is not None]
        parsed = [json.loads(part) for part in chunks]
        assert end == DONE
        assert {(part["id"], part["object"]) for part in parsed} == {("c", "chat.completion.chunk")}
        assert [part["usage"] for part in parsed if "usage" in part] == ([USAGE] if usage else [])
        calls = [c["delta"]["tool_calls"] for p in parsed for c in p["choices"] if "tool_calls" in c["delta"]]
        assert calls == [[{"index": 0, "id": "a", "function": {"name": "f"}}]]


def test_a_text_completion_is_assembled_and_replayed() -> None:
    """Text, log probabilities and what else its choices say, in both directions."""
    logprobs = {"tokens": ["Hel"], "token_logprobs": [-0.5], "text_offset": [0]}
    chunks = [
        chunk({"index": 0, "text": "Hel", "logprobs": logprobs, "finish_reason": None}),
        chunk({"index": 0, "text": "lo.", "logprobs": {"tokens": ["lo."]}, "finish_reason": None}),
        chunk({"index": 0, "text": "", "logprobs": None, "finish_reason": "stop", "stop_reason": 2}),
        chunk(usage=USAGE),
    ]
    assembled = assemble_completion([*chunks, DONE])
    assert assembled is not None
    assert assembled.is_done
    (choice,) = assembled.document["choices"]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("Hello.", "stop", 2)
    assert choice["logprobs"] == {**logprobs, "tokens": ["Hel", "lo."]}
    assert (assembled.document["object"], assembled.document["usage"]) == ("text_completion", USAGE)
    events, usage = replay_completion(assembled.document)
    payloads = [event.data for event in read_events(events + usage) if event.data is not None]
    again = assemble_completion([*payloads, DONE])
    assert again == assembled
    assert assemble_completion([chunk({"index": 0, "text": 5})]) is None


@pytest.mark.parametrize(
    "options", [None, {}, {"include_usage": False, "x": 1}, {"include_usage": True}, "odd"]
)
def test_the_usage_is_asked_for(options: Any) -> None:
    """Whatever the client says of it, and nothing else of its request changes; oddities stay as they are."""
    request = {"model": "llama", "stream": True, "stream_options": options}
    sent = json.loads(asking_for_usage(json.dumps(request).encode(), request))
    wanted = options if options == "odd" else {**(options or {}), "include_usage": True}
    assert sent == {**request, "stream_options": wanted}


def test_a_request_without_options_keeps_its_bytes() -> None:
    """The wish is put before them."""
    raw = b' \n{ "model":"llama",  "temperature":0.0}'
    assert asking_for_usage(raw, {"model": "llama", "temperature": 0}) == (
        b'{"stream_options":{"include_usage":true}, "model":"llama",  "temperature":0.0}'
    )


@given(st.lists(st.binary(max_size=60), max_size=10))
def test_foreign_payloads_never_crash(payloads: list[bytes]) -> None:
    """Whatever an upstream sends, it is judged."""
    assert judge(payloads).kept is None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["index", "a", "id"]), inner),
    max_leaves=8,
)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "x"]), JSON_VALUES), max_size=5
    )
)
def test_odd_deltas_never_crash(deltas: list[dict[str, Any]]) -> None:
    """Fields of changing kinds are merged or refused."""
    payloads = [chunk({"index": 0, "delta": part}) for part in deltas]
    judgement = judge([*payloads, chunk(delta(reason="stop")), DONE])
    if judgement.kept is not None:
        assert deliver(judgement.kept, Delivery(stream=False, usage=False), PATH) is not None
