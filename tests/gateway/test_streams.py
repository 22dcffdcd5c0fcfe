"""Streams: stored once, replayed to whoever wants a stream, assembled for whoever does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI

from cachewright.policy.sse import read_events
from e2e.engine import Engine
from e2e.engine.http11 import Request
from tests.gateway.harness import (
    CHAT,
    MODEL,
    QUESTION,
    TENANT,
    Answered,
    Gateway,
    Response,
    ScriptedUpstream,
    running,
)
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

USAGE = {"include_usage": True}
HEADERS = {**TENANT, "Content-Type": "application/json"}


def payloads(body: bytes) -> list[bytes]:
    """Return the payloads of a stream's events."""
    return [event.data for event in read_events(body) if event.data is not None]


def chunks(answer: Answered) -> list[dict[str, Any]]:
    """Return a whole stream's chunks."""
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    *parts, end = payloads(answer.body)
    assert end == b"[DONE]"
    return [json.loads(part) for part in parts]


def deltas(answer: Answered) -> list[Any]:
    """Return a stream's choices."""
    return [chunk["choices"] for chunk in chunks(answer) if chunk["choices"]]


def event(delta: dict[str, Any], reason: str | None = None, **fields: Any) -> bytes:
    """Return one event of a chat completion."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": MODEL, "choices": [choice]}
    return b"data: " + json.dumps({**chunk, **fields}).encode() + b"\n\n"


class Streaming:
    """An upstream that streams what a test says, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.cut_after: int | None = None
        """Break the connection after this many pieces."""
        self.gate = asyncio.Event()
        """Opened before the second piece is sent."""
        self.gate.set()
        self.upstream = ScriptedUpstream(self._answer)

    async def _answer(self, _request: Request) -> Response:
        return Response(body=self._flow(), content_type="text/event-stream", cut=False)

    async def _flow(self) -> AsyncIterator[bytes]:
        for number, piece in enumerate(self.pieces):
            if number == self.cut_after:
                raise ConnectionResetError
            yield piece
            await self.gate.wait()


@pytest.fixture
async def streaming() -> AsyncIterator[Streaming]:
    """A running upstream."""
    made = Streaming()
    async with made.upstream:
        yield made


@pytest.fixture
async def relay(tmp_path: Path, redis: RedisServer, streaming: Streaming) -> AsyncIterator[Gateway]:
    """A gateway in front of it."""
    async with running(Gateway(tmp_path, redis, streaming.upstream.url)) as gateway:
        yield gateway


RICH = [
    b": a comment\n\n",
    event({"role": "assistant", "content": ""}),
    event({"reasoning_content": "Häm — "}),
    event({"reasoning": "x", "annotations": [{"type": "url", "url": "u"}]}),
    event({"content": "Be"}, logprobs=None),
    event({"content": "cause ☀\u2028"}, system_fingerprint="fp"),
    event({}, "stop", a_field_nobody_knows={"deep": [1, 2.50, None]}),
    b'data: {"id":"c1","model":"llama","choices":[],"usage":{"total_tokens":6,"details":{"a":1}}}\n\n',
    b"data: [DONE]\n\n",
]


async def test_stream_then_stream(gateway: Gateway, engine: Engine) -> None:
    """A hit with the same events, several of them, under the same id, ended by DONE."""
    first, second = await gateway.call(stream=True), await gateway.call(stream=True)
    assert first.cache == "cachewright; fwd=miss"
    assert second.is_hit
    assert second.headers["Age"] == "0"
    assert deltas(second) == deltas(first)
    assert len(chunks(second)) >= 3
    assert {chunk["id"] for chunk in chunks(second)} == {chunks(first)[0]["id"]}
    assert engine.calls[CHAT] == 1


async def test_stream_then_json(gateway: Gateway, engine: Engine) -> None:
    """The whole answer in one document, with the original's usage."""
    first, second = await gateway.call(stream=True), await gateway.call()
    assert second.is_hit
    assert second.headers["Content-Type"] == "application/json"
    text = "".join(choice["delta"].get("content", "") for (choice,) in deltas(first))
    whole = second.json()
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": text}
    assert (whole["object"], whole["choices"][0]["finish_reason"]) == ("chat.completion", "stop")
    assert whole["usage"]["total_tokens"] > 0
    assert engine.calls[CHAT] == 1


async def test_json_then_stream(gateway: Gateway, engine: Engine) -> None:
    """Well-formed chunks that say the same under the same id, and usage only if this request asks for it."""
    first = (await gateway.call()).json()
    plain, with_usage = await gateway.call(stream=True), await gateway.call(stream=True, stream_options=USAGE)
    for answer in (plain, with_usage):
        assert answer.is_hit
        text = "".join(choice["delta"].get("content", "") for (choice,) in deltas(answer))
        assert text == first["choices"][0]["message"]["content"]
        assert deltas(answer)[-1][0]["finish_reason"] == "stop"
        assert {chunk["id"] for chunk in chunks(answer)} == {first["id"]}
    assert all("usage" not in chunk for chunk in chunks(plain))
    assert chunks(with_usage)[-1]["usage"] == first["usage"]
    assert chunks(with_usage)[-1]["choices"] == []
    assert engine.calls[CHAT] == 1


async def test_usage_is_for_those_who_ask(gateway: Gateway) -> None:
    """On a miss as on a hit, whoever asked first; the engine is always asked for it."""
    for seed, order in enumerate(((False, True), (True, False))):
        for asks in order:
            answer = await gateway.call(stream=True, seed=seed, stream_options=USAGE if asks else None)
            has_usage = [chunk for chunk in chunks(answer) if chunk.get("usage")]
            assert bool(has_usage) == asks
            if not asks:
                assert all("usage" not in chunk for chunk in chunks(answer))


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_every_delta_field_is_replayed_byte_for_byte(
    relay: Gateway, streaming: Streaming, size: int
) -> None:
    """Reasoning, annotations, unknown fields and spelling, however the bytes were cut on their way."""
    stream = b"".join(RICH)
    streaming.pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    first = await relay.call(stream=True, stream_options=USAGE)
    assert first.body == stream
    second = await relay.call(stream=True, stream_options=USAGE)
    assert second.is_hit
    assert payloads(second.body) == payloads(stream)
    plain = await relay.call(stream=True)
    assert payloads(plain.body) == [*payloads(stream)[:-2], b"[DONE]"]
    (choice,) = (await relay.call()).json()["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "Because ☀\u2028",
        "reasoning_content": "Häm — ",
        "reasoning": "x",
        "annotations": [{"type": "url", "url": "u"}],
    }
    assert len(streaming.upstream.requests) == 1


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        (RICH[:-1], "incomplete"),
        ([*RICH[:-3], RICH[-1]], "incomplete"),
        ([*RICH[:4], b'data: {"error": {"message": "overloaded"}}\n\n', *RICH[4:]], "unparsable"),
        ([*RICH[:4], b"data: {broken\n\n", *RICH[4:]], "unparsable"),
        ([RICH[1], RICH[-3], RICH[-1]], "empty"),
        ([RICH[5], event({}, "length"), RICH[-1]], "finish_reason"),
        ([event({"content": "Hi."}, "stop", model="fallback"), RICH[-1]], "model"),
        ([b"data: " + b"x" * 70_000 + b"\n\n", *RICH], "too_large"),
    ],
)
async def test_what_did_not_end_well_is_relayed_and_not_stored(
    relay: Gateway, streaming: Streaming, pieces: list[bytes], reason: str
) -> None:
    """Every byte reaches the client, and the next one asks the upstream again."""
    streaming.pieces = pieces
    for _ in range(2):
        answer = await relay.call(stream=True, stream_options=USAGE)
        assert answer.cache == "cachewright; fwd=miss"
        assert answer.body == b"".join(pieces)
    assert len(streaming.upstream.requests) == 2
    assert await relay.metric("cachewright_not_stored_total", reason=reason) == 2


async def test_a_stream_that_breaks_off_is_neither_stored_nor_replayed(
    relay: Gateway, streaming: Streaming
) -> None:
    """The client sees that it is not whole, and the next request is answered anew."""
    streaming.pieces, streaming.cut_after = RICH, 5
    with pytest.raises(aiohttp.ClientPayloadError):
        await relay.call(stream=True)
    streaming.cut_after = None
    assert (await relay.call()).cache == "cachewright; fwd=miss"
    assert len(streaming.upstream.requests) == 2


async def test_the_first_event_is_passed_on_at_once(gateway: Gateway, engine: Engine) -> None:
    """A client has it while the engine still withholds the rest; so has another that follows."""
    engine.flowing.clear()
    body = json.dumps({**QUESTION, "stream": True})
    async with gateway.client.post(gateway.url + CHAT, data=body, headers=HEADERS) as leader:
        assert (await leader.content.readuntil(b"\n\n")).startswith(b"data: ")
        async with gateway.client.post(gateway.url + CHAT, data=body, headers=HEADERS) as follower:
            assert follower.headers["Cache-Status"].startswith("cachewright; fwd=miss; collapsed")
            assert (await follower.content.readuntil(b"\n\n")).startswith(b"data: ")
            assert not engine.flowing.is_set()
            engine.flowing.set()
            rest = await follower.content.read()
        assert await leader.content.read() == rest
    assert engine.calls[CHAT] == 1


async def test_a_client_that_leaves_at_the_last_event_leaves_the_answer(
    relay: Gateway, streaming: Streaming
) -> None:
    """As SDKs do; the upstream's body ends a little later, and the answer is stored."""
    streaming.pieces = [b"".join(RICH)]
    streaming.gate.clear()
    body = json.dumps({**QUESTION, "stream": True})
    response = await relay.client.post(relay.url + CHAT, data=body, headers=HEADERS)
    await response.content.readuntil(b"data: [DONE]\n\n")
    response.close()
    flights = relay.process._flow._fetching.flights

    async def has_left() -> bool:
        return all(not flight._readers for flight in flights._open.values())

    await until(has_left)
    streaming.gate.set()
    assert (await relay.call()).status == 200
    assert len(streaming.upstream.requests) == 1


async def test_an_upstream_that_refuses_stream_options_still_answers(
    tmp_path: Path, redis: RedisServer
) -> None:
    """The request goes again as its client wrote it."""

    async def strict(request: Request) -> Response:
        if b"stream_options" in request.body:
            return Response(400, b'{"error": {"message": "unknown field"}}')
        return Response(200, b"".join(RICH), "text/event-stream")

    async with (
        ScriptedUpstream(strict) as upstream,
        running(Gateway(tmp_path, redis, upstream.url)) as gateway,
    ):
        assert (await gateway.call(stream=True)).status == 200
        assert (await gateway.call(stream=True)).is_hit
        assert json.loads(upstream.requests[-1].body) == {**QUESTION, "stream": True}


async def test_the_openai_sdk_reads_them(gateway: Gateway, engine: Engine) -> None:
    """A miss, a streamed hit and a whole hit, through the client that most programs use."""
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="x", default_headers=TENANT) as client:
        texts = []
        for _ in range(2):
            stream = await client.chat.completions.create(
                model=MODEL, temperature=0, messages=[{"role": "user", "content": "Hi"}], stream=True
            )
            texts.append("".join([part.choices[0].delta.content or "" async for part in stream]))
        whole = await client.chat.completions.create(
            model=MODEL, temperature=0, messages=[{"role": "user", "content": "Hi"}]
        )
        assert {*texts, whole.choices[0].message.content} == {texts[0]}
        assert texts[0]
    assert engine.calls[CHAT] == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_without_tenant_gets_no_stored_stream(gateway: Gateway, stream: bool) -> None:
    """A replay is bound to the tenant as every answer is."""
    await gateway.call(stream=True)
    other = await gateway.call(stream=stream, headers={"X-Tenant-Id": "other"})
    assert other.cache == "cachewright; fwd=miss"
    assert (await gateway.call(stream=stream, headers=[])).reason == "no_tenant"
