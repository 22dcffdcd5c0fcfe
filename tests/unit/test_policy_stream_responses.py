"""Streams of `/v1/responses`: the response out of its events, and events out of a response."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.answers import Delivered, Delivery, KeptAnswer, deliver
from cachewright.policy.reasons import RefusalReason
from cachewright.policy.sse import Event, read_events, write_event
from cachewright.policy.stream_responses import assemble_response, is_completed_event, replay_response
from cachewright.policy.usage import tokens_of
from cachewright.policy.validate import Judgement, judge_stream
from tests.unit.test_policy_cacheable import POLICY
from tests.unit.test_policy_responses import BODY, PATH

Json = dict[str, Any]
STREAM = Delivery(stream=True, usage=False)
WHOLE = Delivery(stream=False, usage=False)
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "output_tokens_details": {"r": 1}}


def text(words: str = "Hello.", **fields: Any) -> Json:
    """Return a part of a message."""
    return {"type": "output_text", "text": words, "annotations": [], **fields}


def message(*parts: Json, **fields: Any) -> Json:
    """Return a message of these parts."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    return {**head, "content": list(parts), **fields}


def response(*output: Json, **fields: Any) -> Json:
    """Return a whole response with this output."""
    head = {"id": "resp_1", "object": "response", "created_at": 7, "status": "completed", "error": None}
    rest = {"incomplete_details": None, "model": "llama", "output": list(output), "usage": USAGE}
    return {**head, **rest, **fields}


def event(kind: str, **fields: Any) -> Event:
    """Return one event as it comes in, with spaces that we would not write."""
    data = json.dumps({"type": kind, "sequence_number": 0, **fields}).encode()
    return Event(write_event(data, kind.encode()), data, kind.encode())


def delta(words: str) -> Event:
    """Return a part of the text."""
    return event("response.output_text.delta", delta=words, obfuscation="xyz")


HELLO = response(message(text()))
CREATED = event("response.created", response={**HELLO, "status": "in_progress", "output": [], "usage": None})
COMPLETED = event("response.completed", response=HELLO)
STREAMED = [CREATED, delta("Hel"), delta("lo."), event("response.output_text.done", text="Hello."), COMPLETED]
DONE = Event(b"data: [DONE]\n\n", b"[DONE]")


def judge(*events: Event) -> Judgement:
    """Judge a stream."""
    return judge_stream("text/event-stream", events, BODY, PATH, POLICY)


def parsed(delivered: Delivered | None) -> list[Json]:
    """Return the events of a stream, each of which is named by its type."""
    assert delivered is not None
    assert delivered.content_type == "text/event-stream"
    events = read_events(delivered.body)
    documents = [json.loads(event.data or b"") for event in events]
    assert [event.name.decode() for event in events] == [document["type"] for document in documents]
    return documents


def replayed(document: Json) -> list[Json]:
    """Return the events that a whole response is replayed as."""
    return parsed(deliver(KeptAnswer("application/json", json.dumps(document).encode()), STREAM, PATH))


@pytest.mark.parametrize("end", [[], [DONE]])
def test_a_replay_is_the_original(end: list[Event]) -> None:
    """Data and names byte for byte, an end that the server added too, and the whole response for others."""
    kept = judge(Event(b": a comment\n\n", None), *STREAMED, *end).kept
    assert kept is not None
    delivered = deliver(kept, STREAM, PATH)
    assert delivered is not None
    wanted = [(event.name, event.data) for event in (*STREAMED, *end)]
    assert [(event.name, event.data) for event in read_events(delivered.body)] == wanted
    whole = deliver(kept, WHOLE, PATH)
    assert whole is not None
    assert (whole.content_type, json.loads(whole.body)) == ("application/json", HELLO)
    assert (tokens_of(kept).prompt, tokens_of(kept).completion) == (3, 2)


def test_an_event_without_a_name_stays_without() -> None:
    """As some servers send them; the type is in the data too."""
    kept = judge(*(Event(event.raw, event.data) for event in STREAMED)).kept
    assert kept is not None
    assert b"event:" not in kept.body


INCOMPLETE = response(
    message(text()), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
)
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
REFUSED = response(message({"type": "refusal", "refusal": "No."}))


@pytest.mark.parametrize(
    ("events", "reason", "is_shared"),
    [
        (STREAMED, None, True),
        ([CREATED, delta("\n\nHello. "), COMPLETED], None, True),
        ([], RefusalReason.INCOMPLETE, False),
        ([DONE], RefusalReason.INCOMPLETE, False),
        (STREAMED[:-1], RefusalReason.INCOMPLETE, False),
        ([*STREAMED[:-1], DONE], RefusalReason.INCOMPLETE, False),
        ([CREATED, delta("Hel"), COMPLETED], RefusalReason.INCOMPLETE, False),
        ([*STREAMED, delta("!")], RefusalReason.UNPARSABLE, False),
        ([*STREAMED[:-1], DONE, COMPLETED], RefusalReason.UNPARSABLE, False),
        ([CREATED, event("error", message="x"), COMPLETED], RefusalReason.UNPARSABLE, False),
        (
            [CREATED, event("response.failed", response=response(status="failed"))],
            RefusalReason.UNPARSABLE,
            False,
        ),
        ([CREATED, event("response.completed")], RefusalReason.UNPARSABLE, False),
        ([CREATED, event("response.completed", response={"output": [1]})], RefusalReason.UNPARSABLE, False),
        ([CREATED, Event(b"", b"{broken"), COMPLETED], RefusalReason.UNPARSABLE, False),
        ([CREATED, Event(b"", b'{"error": {}}'), COMPLETED], RefusalReason.UNPARSABLE, False),
        (
            [CREATED, delta("Hello."), event("response.incomplete", response=INCOMPLETE)],
            RefusalReason.FINISH_REASON,
            True,
        ),
        ([CREATED, event("response.completed", response=response(CALL))], RefusalReason.TOOL_CALL, True),
        ([CREATED, event("response.completed", response=REFUSED)], RefusalReason.REFUSAL, True),
        ([CREATED, event("response.completed", response=response())], RefusalReason.EMPTY, False),
        (
            [CREATED, delta("Hello."), event("response.completed", response={**HELLO, "model": "b"})],
            RefusalReason.MODEL,
            False,
        ),
        (
            [delta("Hello."), event("response.completed", response={**HELLO, "model": "b"})],
            RefusalReason.MODEL,
            False,
        ),
    ],
)
def test_a_stream_is_kept_only_when_it_ended_well(
    events: list[Event], reason: RefusalReason | None, is_shared: bool
) -> None:
    """With all of a response that might be stored if it had come whole, and that the deltas have said."""
    judgement = judge(*events)
    assert judgement.refusal == reason
    assert (judgement.kept is not None) == is_shared


def test_clients_may_leave_after_the_completed_response() -> None:
    """Not after an event whose text only speaks of it."""
    assert is_completed_event(COMPLETED.data or b"")
    assert not is_completed_event(CREATED.data or b"")
    assert not is_completed_event(delta('"response.completed"').data or b"")
    assert not is_completed_event(b'{"type": "x", "y": "response.completed"}')
    assert not is_completed_event(b'"response.completed"')


def test_a_whole_answer_is_replayed_as_events() -> None:
    """In the order, with the fields and with the numbers of the API's own streams."""
    first, second = {"type": "url_citation", "url": "u"}, {"type": "url_citation", "url": "v"}
    document = response(
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        message(text("Hi"), text("Yes.", annotations=[first, second]), phase="final_answer"),
        completed_at=9,
        output_text="HiYes.",
    )
    events = replayed(document)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.annotation.added",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    begun = {**document, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    assert events[0]["response"] == events[1]["response"] == {**begun, "output_text": ""}
    assert events[-1]["response"] == document
    assert events[9]["item"] == {**document["output"][1], "content": [], "status": "in_progress"}
    at = {"item_id": "msg_1", "output_index": 1, "content_index": 1}
    assert events[15] == {
        "type": "response.content_part.added",
        "sequence_number": 15,
        **at,
        "part": text(""),
    }
    assert events[17] == {
        "type": "response.output_text.delta",
        "sequence_number": 17,
        **at,
        "delta": "s.",
        "logprobs": [],
    }
    assert (events[19]["annotation_index"], events[19]["annotation"]) == (1, second)


def test_log_probabilities_stay_with_their_tokens() -> None:
    """A text is cut between tokens; where tokens are no text of their own, it is not cut."""
    logprobs = [{"token": token, "logprob": -0.5} for token in ("Hel", "lo", ".")]
    for tokens, deltas in (
        (logprobs, [("Hel", logprobs[:1]), ("lo.", logprobs[1:])]),
        ([{"token": "\ufffd"}, {"token": "x"}], [("Hello.", [{"token": "\ufffd"}, {"token": "x"}])]),
    ):
        events = replayed(response(message(text(logprobs=tokens))))
        said = [(event["delta"], event["logprobs"]) for event in events if event["type"].endswith(".delta")]
        assert said == deltas
        done = next(event for event in events if event["type"].endswith("output_text.done"))
        assert (done["text"], done["logprobs"]) == ("Hello.", tokens)


NOT_A_LIST: Any = "text"


@pytest.mark.parametrize(
    "document",
    [
        response(message(text()), status="incomplete"),
        response(message(text()), id=None),
        response(message(text(), id=None)),
        response(message(text(), id="")),
        response(message(text()), message(text())),
        response(message(text()), CALL),
        response(message({"type": "refusal", "refusal": "No."})),
        response(message({"type": "output_text", "text": 5})),
        response(message(text(logprobs=["Hel"]))),
        response(message(text(annotations="none"))),
        response(message(text(), content=NOT_A_LIST)),
        response({"id": "rs_1", "type": "reasoning", "summary": [{"type": "other", "text": "Hm."}]}),
        response({"id": "rs_1", "type": ["message"]}),
        response(output=NOT_A_LIST),
        response(output=["text"]),
    ],
)
def test_what_is_not_understood_is_not_replayed(document: Json) -> None:
    """Clients of streams get it from the upstream; others get it as it is."""
    kept = KeptAnswer("application/json", json.dumps(document).encode())
    assert deliver(kept, STREAM, PATH) is None
    assert deliver(kept, WHOLE, PATH) is not None


def test_what_cannot_be_written_is_not_replayed() -> None:
    """An answer nested beyond what is ever written."""
    deep = '{"a":' * 500 + "1" + "}" * 500
    body = json.dumps(response(message(text()), x="deep")).replace('"deep"', deep)
    assert deliver(KeptAnswer("application/json", body.encode()), STREAM, PATH) is None


WORDS = st.text(max_size=20)
EXTRA = st.dictionaries(st.sampled_from(["x", "phase"]), WORDS | st.none() | st.integers(0, 9))
TEXTS = st.builds(
    lambda words, annotations, extra: text(words, annotations=annotations, **extra),
    WORDS,
    st.lists(st.dictionaries(WORDS, WORDS, max_size=2), max_size=2),
    EXTRA,
)
MESSAGES = st.builds(
    lambda parts, extra: message(*parts, **extra), st.lists(TEXTS, min_size=1, max_size=3), EXTRA
)
REASONINGS = st.builds(
    lambda summary, content, fields: {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": words} for words in summary],
        "content": content and [{"type": "reasoning_text", "text": words} for words in content],
        **fields,
    },
    st.lists(WORDS, max_size=2),
    st.none() | st.lists(WORDS, max_size=2),
    st.sampled_from([{}, {"status": "completed"}, {"status": None, "encrypted_content": "g"}]),
)


@given(st.lists(MESSAGES | REASONINGS, min_size=1, max_size=4), st.none() | st.just(USAGE))
def test_a_whole_answer_survives_its_replay(items: list[Json], usage: Json | None) -> None:
    """The events, put together as a client does, and the response taken out of them, are the answer."""
    output = [{**item, "id": f"item_{number}"} for number, item in enumerate(items)]
    document = response(*output, usage=usage)
    events = replayed(document)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert _put_together(events) == [_words(item) for item in output]
    payloads = [json.dumps(event).encode() for event in events]
    assembled = assemble_response(payloads)
    assert assembled is not None
    assert (assembled.document, assembled.is_done, assembled.models) == (document, True, {"llama"})
    again = replay_response(assembled.document)
    assert again is not None
    assert [json.loads(event.data or b"") for event in read_events(again[0])] == events


def _put_together(events: list[Json]) -> list[list[str]]:
    """Return the texts of each item, from the deltas alone, with all places checked."""
    items: list[Json] = []
    texts: list[list[str]] = []
    for event in events:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert event["output_index"] == len(items)
            items.append(event["item"])
            texts.append([])
        elif "item_id" in event:
            assert (event["output_index"], event["item_id"]) == (len(items) - 1, items[-1]["id"])
            if kind.endswith("part.added"):
                assert event["part"]["text"] == ""
                texts[-1].append("")
            elif kind.endswith("text.delta"):
                assert event["delta"]
                texts[-1][-1] += event["delta"]
            elif kind.endswith("text.done"):
                assert event["text"] == texts[-1][-1]
    return texts


def _words(item: Json) -> list[str]:
    return [part["text"] for name in ("summary", "content") for part in item.get(name) or []]


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_foreign_payloads_never_crash(payloads: list[bytes]) -> None:
    """Whatever an upstream sends, it is judged."""
    assert judge(*(Event(b"", payload) for payload in payloads)).kept is None


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["message", "output_text", "completed"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "id", "content", "text", "summary", "logprobs"]), inner)
    ),
    max_leaves=12,
)


@given(ODD, ODD)
def test_odd_responses_never_crash(output: Any, content: Any) -> None:
    """They are judged, and replayed or not."""
    for document in (response(output=output), response(message(content=content))):
        judge(CREATED, event("response.completed", response=document))
        assert replay_response(document) is None or isinstance(document["output"], list)
