"""Relaying: what passes the gateway is what client and upstream sent each other, at once and in bounds."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from e2e.engine import Engine
from e2e.engine.http11 import Request
from tests.gateway.harness import (
    CHAT,
    QUESTION,
    TENANT,
    Gateway,
    Response,
    ScriptedUpstream,
    chat_answer,
    running,
)
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until


class Script:
    """An upstream whose next answer a test sets."""

    def __init__(self) -> None:
        self.response = Response(body=chat_answer())
        self.answering = asyncio.Event()
        self.answering.set()
        self.upstream = ScriptedUpstream(self._answer)

    async def _answer(self, _request: Request) -> Response:
        await self.answering.wait()
        return self.response


@pytest.fixture
async def script() -> AsyncIterator[Script]:
    """A running scripted upstream."""
    made = Script()
    async with made.upstream:
        yield made


@pytest.fixture
async def relay(tmp_path: Path, redis: RedisServer, script: Script) -> AsyncIterator[Gateway]:
    """A gateway in front of it."""
    async with running(Gateway(tmp_path, redis, script.upstream.url)) as gateway:
        yield gateway


async def raw_exchange(gateway: Gateway, request: bytes) -> bytes:
    """Send bytes on a connection of their own and return all that comes back until it is closed or idle."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.process.port)
    writer.write(request)
    await writer.drain()
    received = b""
    try:
        while chunk := await asyncio.wait_for(reader.read(65536), 2):
            received += chunk
            if b"\r\n\r\n" in received and b"Connection: close" not in request:
                break
    finally:
        writer.close()
        await writer.wait_closed()
    return received


async def test_a_stream_arrives_event_by_event(gateway: Gateway, engine: Engine) -> None:
    """The first event reaches the client while the engine still withholds the rest."""
    engine.flowing.clear()
    body = json.dumps({**QUESTION, "stream": True}).encode()
    headers = {**TENANT, "Content-Type": "application/json"}
    async with gateway.client.post(gateway.url + CHAT, data=body, headers=headers) as response:
        assert response.headers["Cache-Status"].startswith("cachewright; fwd=miss; key=")
        assert response.headers["Content-Type"].startswith("text/event-stream")
        first = await asyncio.wait_for(response.content.readany(), 5)
        assert first.startswith(b"data: ")
        assert b"[DONE]" not in first
        engine.flowing.set()
        rest = await response.content.read()
    assert rest.endswith(b"data: [DONE]\n\n")


async def test_requests_reach_the_upstream_as_they_were_sent(relay: Gateway, script: Script) -> None:
    """Body, query and end-to-end headers are passed on; what is between client and gateway is not."""
    sent = b' {"model":"llama", "messages":[],  "temperature":0.7}'
    headers = {
        **TENANT,
        "X-Custom": "1",
        "User-Agent": "test/1",
        "Authorization": "Bearer client",
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "1",
        "TE": "trailers",
        "Proxy-Authorization": "Basic x",
    }
    await relay.call(f"{CHAT}?a=%2Fb&c", data=sent, headers=headers)
    (request,) = script.upstream.requests
    assert (request.method, request.path, request.query, request.body) == ("POST", CHAT, "a=%2Fb&c", sent)
    assert request.header("x-custom") == "1"
    assert request.header("user-agent") == "test/1"
    assert request.header("authorization") == "Bearer client"
    assert request.header("host") == script.upstream.url.removeprefix("http://")
    assert request.header("x-tenant-id") == TENANT["X-Tenant-Id"]
    for name in ("x-hop", "te", "proxy-authorization"):
        assert request.header(name) == ""


async def test_answers_reach_the_client_as_they_were_sent(relay: Gateway, script: Script) -> None:
    """Status, body and end-to-end headers, those of errors too."""
    script.response = Response(
        429,
        b'{"error": {"message": "slow down"}}',
        headers={
            "Retry-After": "7",
            "X-Request-Id": "r",
            "Keep-Alive": "timeout=5",
            "Cache-Status": "cdn; hit",
        },
    )
    answer = await relay.call()
    assert (answer.status, answer.body) == (429, script.response.body)
    assert (answer.headers["Retry-After"], answer.headers["X-Request-Id"]) == ("7", "r")
    assert "Keep-Alive" not in answer.headers
    told = [value for name, value in answer.headers.items() if name == "Cache-Status"]
    assert [value.partition("; key=")[0] for value in told] == ["cdn; hit", "cachewright; fwd=miss"]


@pytest.mark.parametrize("status", [204, 302, 400, 401, 404, 500, 503])
async def test_every_status_is_relayed_and_only_200_is_stored(
    relay: Gateway, script: Script, status: int
) -> None:
    """The upstream's own word counts; redirects are the client's business."""
    script.response = Response(status, b"" if status == 204 else b"{}", headers={"Location": "/v1/elsewhere"})
    for _ in range(2):
        assert (await relay.call()).status == status
    assert len(script.upstream.requests) == 2
    assert await relay.metric("cachewright_not_stored_total", reason="status") == 2


async def test_chunked_answers_are_stored_too(relay: Gateway, script: Script) -> None:
    """An answer without a declared length is relayed as it comes and kept once it has ended well."""
    body = chat_answer("In parts.")

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 50):
            yield body[start : start + 50]

    script.response = Response(body=parts())
    assert (await relay.call()).body == body
    hit = await relay.call()
    assert hit.is_hit
    assert hit.body == body


async def test_an_answer_larger_than_the_limit_is_relayed_whole(relay: Gateway, script: Script) -> None:
    """With and without a declared length: every byte arrives and nothing is stored."""
    body = chat_answer("x" * 100_000)

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 10_000):
            yield body[start : start + 10_000]

    for response in (Response(body=body), Response(body=parts())):
        script.response = response
        assert (await relay.call()).body == body
    assert not (await relay.call(seed=1)).is_hit
    assert await relay.metric("cachewright_not_stored_total", reason="too_large") >= 2


async def test_compressed_answers_are_relayed_packed_and_replayed_plain(
    relay: Gateway, script: Script
) -> None:
    """A client gets what the upstream made for it; a later one needs no decompression."""
    body = chat_answer()
    script.response = Response(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})
    first, second = await relay.call(), await relay.call()
    assert (first.headers["Content-Encoding"], gzip.decompress(first.body)) == ("gzip", body)
    assert "Content-Encoding" not in second.headers
    assert second.is_hit
    assert second.body == body
    assert script.upstream.requests[0].header("accept-encoding") == "identity"


async def test_an_answer_that_breaks_off_is_an_error_and_not_stored(gateway: Gateway, engine: Engine) -> None:
    """A cut connection gives 502, or, once the head is out, an answer that the client sees is not whole."""
    engine.fail(None, cut=True)
    answer = await gateway.call()
    assert (answer.status, answer.error_code) == (502, "upstream_unreachable")
    engine.fail(None, cut=True)
    with pytest.raises(aiohttp.ClientPayloadError):
        await gateway.call(stream=True)
    assert not (await gateway.call()).is_hit


async def test_a_large_request_is_streamed_through_unparsed(relay: Gateway, script: Script) -> None:
    """Above what is cached the body passes as it comes, with its length declared and without."""
    body = json.dumps({**QUESTION, "messages": [{"role": "user", "content": "x" * 200_000}]}).encode()

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 7_000):
            yield body[start : start + 7_000]

    headers = {**TENANT, "Content-Type": "application/json"}
    for data in (body, parts()):
        async with relay.client.post(relay.url + CHAT, data=data, headers=headers) as response:
            assert response.status == 200
            assert response.headers["Cache-Status"] == "cachewright; fwd=bypass; detail=too_large"
    assert [request.body for request in script.upstream.requests] == [body, body]
    assert script.upstream.requests[0].header("content-length") == str(len(body))


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
async def test_a_body_over_the_limit_is_413(relay: Gateway, path: str) -> None:
    """Refused before it is read where its length is declared, and in the middle where it is not."""
    too_large = b"x" * (relay.policy.max_body_bytes + 1)

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(too_large), 65536):
            yield too_large[start : start + 65536]

    answer = await raw_exchange(
        relay,
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(too_large)}\r\n\r\n".encode(),
    )
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"request_too_large"' in answer
    headers = {**TENANT, "Content-Type": "application/json"}
    async with relay.client.post(relay.url + path, data=parts(), headers=headers) as response:
        assert response.status == 413
        assert (await response.json())["error"]["code"] == "request_too_large"
    assert (await relay.call()).status == 200


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"{", "unparsable"), (b"", "unparsable"), (b"[]", "unparsable"), (b"\xff", "ambiguous_json")],
)
async def test_an_unparsable_body_gets_the_upstreams_own_answer(
    gateway: Gateway, engine: Engine, data: bytes, reason: str
) -> None:
    """It is forwarded as it is, and the error is the engine's."""
    answer = await gateway.call(data=data)
    assert (answer.status, answer.reason) == (400, reason)
    assert "error" in answer.json()
    assert engine.requests[-1].body == data


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({"Content-Encoding": "zstd"}, "encoded"), ({"Content-Type": "text/plain"}, "content_type")],
)
async def test_other_bodies_are_passed_on_unread(
    relay: Gateway, script: Script, headers: dict[str, str], reason: str
) -> None:
    """Compressed requests and other types are the upstream's to understand."""
    data = gzip.compress(json.dumps(QUESTION).encode())
    async with relay.client.post(
        relay.url + CHAT, data=data, headers={"Content-Type": "application/json", **TENANT, **headers}
    ) as response:
        assert response.headers["Cache-Status"].endswith(f"detail={reason}")
    assert script.upstream.requests[-1].body == data


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", CHAT, "POST"),
        ("PUT", CHAT, "POST"),
        ("DELETE", "/v1/models", "GET"),
        ("DELETE", "/v1/responses", "POST"),
    ],
)
async def test_a_wrong_method_is_405(
    gateway: Gateway, engine: Engine, method: str, path: str, allowed: str
) -> None:
    """In the form of the API, naming the right one; the upstream hears nothing of it."""
    answer = await gateway.call(path, method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, allowed)
    assert answer.error_code == "method_not_allowed"
    assert not engine.requests


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/reset_prefix_cache",
        "/v1/load_lora_adapter",
        "/v1/../reset_prefix_cache",
        "/v1/%2e%2e/reset_prefix_cache",
        "/v1/models/../../reset_prefix_cache",
        "/v1/models/..%2f..%2freset_prefix_cache",
        "/v1/models/%252e%252e/x",
        "/v1/models/..",
        "/v1//chat/completions",
        "//v1/chat/completions",
        "/v1/chat/completions/",
        "/v1/chat/completions%2f",
        "/V1/chat/completions",
        "/v1/chat\\completions",
        "/v1/responses/resp_1",
        "/v1/files",
        "/metrics",
    ],
)
async def test_everything_else_is_404(gateway: Gateway, engine: Engine, path: str) -> None:
    """Administration, traversal and disguised paths never reach the upstream."""
    request = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Tenant-Id: acme\r\nContent-Length: 2\r\n\r\n{{}}"
    answer = await raw_exchange(gateway, request.encode())
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b'"code":"path_not_allowed"' in answer
    assert not engine.requests


async def test_paths_are_allowed_by_name(tmp_path: Path, redis: RedisServer, script: Script) -> None:
    """A name allows itself, one with a slash at its end all below it; both map to the upstream's own root."""
    gateway = Gateway(tmp_path, redis, script.upstream.url)
    gateway.enact(upstream={"allowed_paths": ("/tokenize", "/v1/files/")})
    async with running(gateway):
        for path in ("/tokenize", "/v1/files/f1/content"):
            assert (await gateway.call(path, method="PUT")).reason == "no_route"
        for path in ("/tokenize/x", "/v1/files", "/v1/files/../x", "/v1/files/%2e%2e/x"):
            raw = f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
            assert (await raw_exchange(gateway, raw.encode())).startswith(b"HTTP/1.1 404 ")
    assert [(request.method, request.path) for request in script.upstream.requests] == [
        ("PUT", "/tokenize"),
        ("PUT", "/v1/files/f1/content"),
    ]


@pytest.mark.parametrize("prefix", ["/v1", "/api/openai/v1", "/api"])
async def test_the_upstreams_own_prefix_takes_the_place_of_v1(
    tmp_path: Path, redis: RedisServer, script: Script, prefix: str
) -> None:
    """`/v1/x` of the gateway is `<url>/x` of the upstream."""
    gateway = Gateway(tmp_path, redis, script.upstream.url)
    gateway.enact(upstream={"url": script.upstream.url + prefix})
    async with running(gateway):
        await gateway.call()
        await gateway.call("/v1/models/meta-llama/Llama-3.1", method="GET")
    assert [request.path for request in script.upstream.requests] == [
        f"{prefix}/chat/completions",
        f"{prefix}/models/meta-llama/Llama-3.1",
    ]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/completions", {"prompt": "x"}),
        ("/v1/completions", {"prompt": "x", "stream": True}),
        ("/v1/embeddings", {"input": "x"}),
    ],
)
async def test_other_inference_passes_through(
    gateway: Gateway, engine: Engine, path: str, fields: dict[str, Any]
) -> None:
    """Uncached, each time."""
    for _ in range(2):
        answer = await gateway.call(path, **fields)
        assert (answer.status, answer.reason) == (200, "no_route")
    assert engine.calls[path] == 2


async def test_models_are_listed(gateway: Gateway) -> None:
    """`GET /v1/models` is the upstream's list."""
    assert (await gateway.call("/v1/models", method="GET")).json()["object"] == "list"


async def test_an_unreachable_upstream_is_502(gateway: Gateway, engine: Engine) -> None:
    """At once, in the form of the API; what is cached is still served."""
    await gateway.call()
    await engine.__aexit__()
    started = time.monotonic()
    answer = await gateway.call(seed=1)
    assert (answer.status, answer.error_code) == (502, "upstream_unreachable")
    assert time.monotonic() - started < 5
    assert (await gateway.call()).is_hit


async def test_a_silent_upstream_is_504(tmp_path: Path, redis: RedisServer, script: Script) -> None:
    """After the declared time without a byte, for answers from the cache's side as for streams."""
    script.answering.clear()
    gateway = Gateway(tmp_path, redis, script.upstream.url)
    gateway.enact(upstream={"timeout_seconds": 0.2})
    async with running(gateway):
        for stream in (False, True):
            started = time.monotonic()
            answer = await gateway.call(stream=stream)
            assert (answer.status, answer.error_code) == (504, "upstream_timeout")
            assert time.monotonic() - started < 5
    script.answering.set()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_cancels_its_call(relay: Gateway, script: Script, stream: bool) -> None:
    """The connection to the upstream is closed, so that an engine can stop computing."""
    script.answering.clear()
    body = json.dumps({**QUESTION, "stream": stream}).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", relay.process.port)
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nX-Tenant-Id: a\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def is_asked() -> bool:
        return len(script.upstream.requests) == 1

    await until(is_asked)
    writer.close()
    await writer.wait_closed()
    script.answering.set()

    async def is_closed() -> bool:
        return script.upstream.open_connections == 0

    await until(is_closed)


async def test_a_client_that_leaves_in_the_middle_of_a_stream_cancels_it(
    relay: Gateway, script: Script
) -> None:
    """The upstream's connection ends though it had more to say, and would have gone on for ever."""

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"data: {}\n\n"
            await asyncio.sleep(0.01)

    script.response = Response(body=endless(), content_type="text/event-stream")
    body = json.dumps({**QUESTION, "stream": True}).encode()
    headers = {**TENANT, "Content-Type": "application/json"}
    response = await relay.client.post(relay.url + CHAT, data=body, headers=headers)
    assert await response.content.readany()
    response.close()

    async def is_closed() -> bool:
        return script.upstream.open_connections == 0

    await until(is_closed)


async def test_half_a_request_bothers_nobody(relay: Gateway, script: Script) -> None:
    """A client that leaves while it still sends is forgotten without an upstream call or an error."""
    _, writer = await asyncio.open_connection("127.0.0.1", relay.process.port)
    writer.write(
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nX-Tenant-Id: a\r\nContent-Type: application/json\r\n".encode()
    )
    writer.write(b'Content-Length: 100\r\n\r\n{"model":')
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await relay.call()).status == 200
    assert len(script.upstream.requests) == 1


async def test_http_1_0_and_expect_work(gateway: Gateway) -> None:
    """Old clients and careful ones get their answer."""
    body = json.dumps(QUESTION).encode()
    common = b"Host: x\r\nX-Tenant-Id: acme\r\nContent-Type: application/json\r\n"
    length = f"Content-Length: {len(body)}\r\n".encode()
    old = await raw_exchange(gateway, f"POST {CHAT} HTTP/1.0\r\n".encode() + common + length + b"\r\n" + body)
    assert b" 200 " in old.split(b"\r\n")[0]
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.process.port)
    writer.write(f"POST {CHAT} HTTP/1.1\r\n".encode() + common + length + b"Expect: 100-continue\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
    writer.write(body)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"cachewright; hit" in head
    writer.close()
    await writer.wait_closed()
