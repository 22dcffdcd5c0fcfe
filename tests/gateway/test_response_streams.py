"""Streams of `/v1/responses`: one entry for streams and whole answers, as for chat, but with named events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI

from cachewright.policy.document import RoutePolicy
from cachewright.policy.sse import read_events
from e2e.engine.http11 import Request
from tests.gateway.harness import MODEL, TENANT, Answered, Gateway, Response, ScriptedUpstream, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

RESPONSES = "/v1/responses"
QUESTION: dict[str, Any] = {"model": MODEL, "input": "Hello?", "temperature": 0, "store": False}
HEADERS = {**TENANT, "Content-Type": "application/json"}
AT = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
PART = {"type": "output_text", "text": "Because ☀\u2028.", "annotations": [], "logprobs": []}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [PART]}
SUMMARY = {"type": "summary_text", "text": "Hm."}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [SUMMARY]}
USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 7,
}
WHOLE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1.5,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": MODEL,
    "output": [REASONING, MESSAGE],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": USAGE,
}
BEGUN = {**WHOLE, "status": "in_progress", "output": [], "usage": None}


def stream(*events: dict[str, Any], start: int = 0) -> list[bytes]:
    """Return the bytes of some events, numbered, spelt as we would not."""
    return [
        f"event: {event['type']}\ndata: {json.dumps({'sequence_number': number, **event})}\n\n".encode()
        for number, event in enumerate(events, start)
    ]


STREAM = [
    *stream(
        {"type": "response.created", "response": BEGUN},
        {"type": "response.in_progress", "response": BEGUN},
        {"type": "response.output_item.added", "output_index": 0, "item": {**REASONING, "summary": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**MESSAGE, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **AT, "part": {**PART, "text": ""}},
        {
            "type": "response.output_text.delta",
            **AT,
            "delta": "Because",
            "logprobs": [],
            "obfuscation": "x4gW",
        },
        {"type": "response.output_text.delta", **AT, "delta": " ☀\u2028.", "logprobs": [], "usage": {"a": 1}},
        {"type": "response.output_text.done", **AT, "text": PART["text"], "logprobs": []},
        {"type": "response.content_part.done", **AT, "part": PART},
        {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
    ),
]
COMPLETED = stream({"type": "response.completed", "response": WHOLE}, start=len(STREAM))


class Model:
    """An upstream that streams to those who ask for a stream, and gives others the whole response."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = [*STREAM, *COMPLETED]
        self.whole: dict[str, Any] = WHOLE
        self.gate = asyncio.Event()
        """Opened before the second piece of a stream is sent, and before a whole answer."""
        self.gate.set()
        self.cut_after: int | None = None
        """Break the connection after this many pieces."""
        self.upstream = ScriptedUpstream(self._answer)

    async def _answer(self, request: Request) -> Response:
        if not json.loads(request.body).get("stream"):
            await self.gate.wait()
            return Response(200, json.dumps(self.whole).encode())
        return Response(body=self._flow(), content_type="text/event-stream; charset=utf-8")

    async def _flow(self) -> AsyncIterator[bytes]:
        for number, piece in enumerate(self.pieces):
            if number == self.cut_after:
                raise ConnectionResetError
            yield piece
            await self.gate.wait()

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len(self.upstream.requests)


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    """A running upstream."""
    made = Model()
    async with made.upstream:
        yield made


@pytest.fixture
async def relay(tmp_path: Path, redis: RedisServer, model: Model) -> AsyncIterator[Gateway]:
    """A gateway in front of it, with a route for responses."""
    gateway = Gateway(tmp_path, redis, model.upstream.url)
    gateway.enact(routes=(RoutePolicy(name="responses", path=RESPONSES, layers=("Exact",)),))
    async with running(gateway):
        yield gateway


async def ask(gateway: Gateway, **fields: Any) -> Answered:
    """Send the question with some fields changed."""
    return await gateway.call(RESPONSES, data=json.dumps({**QUESTION, **fields}).encode())


def events(body: bytes) -> list[tuple[bytes, bytes | None]]:
    """Return the names and payloads of a stream's events."""
    return [(event.name, event.data) for event in read_events(body)]


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_a_stream_is_replayed_byte_for_byte(relay: Gateway, model: Model, size: int) -> None:
    """Names and data of every event to clients of streams, the completed response to others, one call."""
    sent = b"".join(model.pieces)
    model.pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    first, second, whole = await ask(relay, stream=True), await ask(relay, stream=True), await ask(relay)
    assert (first.cache, first.body) == ("cachewright; fwd=miss", sent)
    assert second.is_hit
    assert second.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert events(second.body) == events(sent)
    assert whole.is_hit
    assert (whole.headers["Content-Type"], whole.json()) == ("application/json", WHOLE)
    assert model.calls == 1
    assert json.loads(model.upstream.requests[0].body) == {**QUESTION, "stream": True}
    assert await relay.metric("cachewright_saved_tokens_total", kind="completion") == 8


async def test_a_whole_answer_is_replayed_as_a_stream(relay: Gateway, model: Model) -> None:
    """Well-formed events that rise, say the same in several deltas, and end with the very response."""
    assert (await ask(relay)).json() == WHOLE
    replayed = await ask(relay, stream=True)
    assert replayed.is_hit
    assert replayed.headers["Content-Type"] == "text/event-stream"
    parsed = [(name.decode(), json.loads(data or b"")) for name, data in events(replayed.body)]
    assert all(name == event["type"] for name, event in parsed)
    numbers = [event["sequence_number"] for _, event in parsed]
    assert numbers == list(range(len(numbers)))
    deltas = [event for name, event in parsed if name == "response.output_text.delta"]
    assert "".join(event["delta"] for event in deltas) == PART["text"]
    assert len(deltas) >= 2
    assert all({**event, **AT} == event for event in deltas)
    assert parsed[0] == (
        "response.created",
        {"type": "response.created", "sequence_number": 0, "response": BEGUN},
    )
    assert (parsed[-1][0], parsed[-1][1]["response"]) == ("response.completed", WHOLE)
    assert model.calls == 1


async def test_what_cannot_be_streamed_is_asked_for_again(relay: Gateway, model: Model) -> None:
    """A message without an id has no place in events; the upstream's stream then serves both forms."""
    model.whole = {**WHOLE, "output": [{**MESSAGE, "id": None}]}
    assert (await ask(relay)).json() == (await ask(relay)).json() == model.whole
    assert (await ask(relay, stream=True)).cache == "cachewright; fwd=miss"
    assert (await ask(relay, stream=True)).is_hit
    assert (await ask(relay)).json() == WHOLE
    assert model.calls == 2


FAILED = {**WHOLE, "status": "failed", "error": {"code": "server_error", "message": "x"}, "output": []}
CUT_OFF = {**WHOLE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
REFUSAL = {**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}


def completed(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the event of a completed response with this output."""
    return {"type": "response.completed", "response": {**WHOLE, "output": list(output), **fields}}


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        (STREAM, "incomplete"),
        ([*STREAM, b"data: [DONE]\n\n"], "incomplete"),
        ([*STREAM[:7], *COMPLETED], "incomplete"),
        ([*STREAM, *stream({"type": "response.failed", "response": FAILED})], "unparsable"),
        ([*STREAM, *stream({"type": "error", "code": "server_error", "message": "x"})], "unparsable"),
        ([*STREAM, *stream({"type": "response.incomplete", "response": CUT_OFF})], "finish_reason"),
        ([STREAM[0], *stream(completed(CALL))], "tool_call"),
        ([STREAM[0], *stream(completed(REFUSAL))], "refusal"),
        ([STREAM[0], *stream(completed())], "empty"),
        ([*STREAM[4:], *stream(completed(MESSAGE, model="fallback"))], "model"),
        ([*STREAM, b"data: {broken\n\n", *COMPLETED], "unparsable"),
        ([b"data: " + b"x" * 70_000 + b"\n\n", *STREAM, *COMPLETED], "too_large"),
    ],
)
async def test_what_did_not_end_well_is_relayed_and_not_stored(
    relay: Gateway, model: Model, pieces: list[bytes], reason: str
) -> None:
    """Every byte reaches the client, and the next one asks the upstream again."""
    model.pieces = pieces
    for _ in range(2):
        answer = await ask(relay, stream=True)
        assert answer.cache == "cachewright; fwd=miss"
        assert answer.body == b"".join(pieces)
    assert model.calls == 2
    assert await relay.metric("cachewright_not_stored_total", reason=reason) == 2


async def test_a_stream_that_breaks_off_is_not_stored(relay: Gateway, model: Model) -> None:
    """The client sees that it is not whole, and the next request is answered anew."""
    model.cut_after = 9
    with pytest.raises(aiohttp.ClientPayloadError):
        await ask(relay, stream=True)
    model.cut_after = None
    assert (await ask(relay)).cache == "cachewright; fwd=miss"
    assert model.calls == 2


@pytest.mark.parametrize("follows_as_stream", [True, False])
async def test_followers_get_the_leaders_stream(
    relay: Gateway, model: Model, follows_as_stream: bool
) -> None:
    """The first event at once, while the model withholds the rest, or the whole response in the end."""
    model.gate.clear()
    body = json.dumps({**QUESTION, "stream": True})
    async with relay.client.post(relay.url + RESPONSES, data=body, headers=HEADERS) as leader:
        first = await leader.content.readuntil(b"\n\n")
        assert first == STREAM[0]
        if follows_as_stream:
            async with relay.client.post(relay.url + RESPONSES, data=body, headers=HEADERS) as follower:
                assert follower.headers["Cache-Status"].startswith("cachewright; fwd=miss; collapsed")
                assert await follower.content.readuntil(b"\n\n") == STREAM[0]
                model.gate.set()
                assert await follower.content.read() == b"".join([*STREAM[1:], *COMPLETED])
        else:
            follows = asyncio.create_task(ask(relay))
            await joined(relay, 2)
            model.gate.set()
            whole = await follows
            assert (whole.cache, whole.json()) == ("cachewright; fwd=miss; collapsed", WHOLE)
        assert await leader.content.read() == b"".join([*STREAM[1:], *COMPLETED])
    assert model.calls == 1


async def joined(gateway: Gateway, readers: int) -> None:
    """Wait until so many clients read from one flight."""

    async def are_enough() -> bool:
        return [
            len(flight._readers) for flight in gateway.process._flow._fetching.flights._open.values()
        ] == [readers]

    await until(are_enough)


async def test_a_follower_gets_a_whole_answer_as_a_stream(relay: Gateway, model: Model) -> None:
    """Once it is there; of a tool call, which is shared but has no such form here, it makes its own call."""
    for output, calls in ((WHOLE["output"], 1), ([CALL], 3)):
        model.whole = {**WHOLE, "output": output}
        model.gate.clear()
        leader = asyncio.create_task(ask(relay, seed=calls))
        await joined(relay, 1)
        follower = asyncio.create_task(ask(relay, seed=calls, stream=True))
        await joined(relay, 2)
        model.gate.set()
        assert (await leader).json() == model.whole
        names = [name for name, _ in events((await follower).body)]
        assert (names[0], names[-1]) == (b"response.created", b"response.completed")
        assert model.calls == calls


async def test_a_client_that_leaves_at_the_completed_response_leaves_it_stored(
    relay: Gateway, model: Model
) -> None:
    """The upstream's body ends a little later, and the answer is there."""
    model.pieces = [b"".join(model.pieces)]
    model.gate.clear()
    body = json.dumps({**QUESTION, "stream": True})
    response = await relay.client.post(relay.url + RESPONSES, data=body, headers=HEADERS)
    await response.content.readuntil(COMPLETED[0])
    response.close()
    flights = relay.process._flow._fetching.flights

    async def has_left() -> bool:
        return all(not flight._readers for flight in flights._open.values())

    await until(has_left)
    model.gate.set()
    assert (await ask(relay)).json() == WHOLE
    assert model.calls == 1


@pytest.mark.parametrize("first", range(4))
async def test_the_openai_sdk_reads_them(relay: Gateway, model: Model, first: int) -> None:
    """A miss and hits by each of its ways to ask, the second of which checks every event."""
    async with AsyncOpenAI(base_url=f"{relay.url}/v1", api_key="x", default_headers=TENANT) as client:

        async def created() -> str:
            events = [event async for event in await client.responses.create(**QUESTION, stream=True)]
            assert events[-1].type == "response.completed"
            assert [event.sequence_number for event in events] == list(range(len(events)))
            return "".join(event.delta for event in events if event.type == "response.output_text.delta")

        async def streamed() -> str:
            async with client.responses.stream(**QUESTION) as events:
                said = [
                    event.snapshot async for event in events if event.type == "response.output_text.delta"
                ]
                final = await events.get_final_response()
            assert [item.type for item in final.output] == ["reasoning", "message"]
            assert final.usage is not None
            assert (said[-1], final.usage.total_tokens) == (final.output_text, USAGE["total_tokens"])
            return final.output_text

        async def raw() -> str:
            asking = client.responses.with_streaming_response.create(**QUESTION, stream=True)
            async with asking as response:
                events = [event async for event in await response.parse()]
            return "".join(event.delta for event in events if event.type == "response.output_text.delta")

        async def whole() -> str:
            answer: str = (await client.responses.create(**QUESTION)).output_text
            return answer

        ways = [created, streamed, raw, whole]
        assert {await way() for way in [*ways[first:], *ways]} == {PART["text"]}
    assert model.calls == 1


async def test_streams_are_bound_to_their_tenant(relay: Gateway) -> None:
    """As every answer is."""
    await ask(relay, stream=True)
    body = json.dumps({**QUESTION, "stream": True}).encode()
    other = await relay.call(RESPONSES, data=body, headers={"X-Tenant-Id": "other"})
    assert other.cache == "cachewright; fwd=miss"
    assert (await relay.call(RESPONSES, data=body, headers=[])).reason == "no_tenant"
