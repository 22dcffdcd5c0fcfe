"""The edge of HTTP: whatever a client sends works as it does when sent straight to the upstream."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from e2e.engine.http11 import Request, Response
from tests.gateway.harness import (
    CHAT,
    QUESTION,
    TENANT,
    Engine,
    Gateway,
    ScriptedUpstream,
    chat_answer,
    running,
)
from tests.gateway.raw import parse_answer, raw_call, raw_exchange
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

BODY = json.dumps(QUESTION).encode()


def head(line: str = f"POST {CHAT} HTTP/1.1", *more: str, length: int | None = len(BODY)) -> bytes:
    """Return a request's head as the usual client sends it, with further headers."""
    usual = ["Host: gateway", "Content-Type: application/json", "X-Tenant-Id: acme"]
    if length is not None:
        usual.append(f"Content-Length: {length}")
    return "\r\n".join([line, *usual, *more, "", ""]).encode("latin-1")


@asynccontextmanager
async def before(
    folder: Path, redis: RedisServer, answer: Response
) -> AsyncIterator[tuple[Gateway, ScriptedUpstream]]:
    """Run a gateway before an upstream that always answers so."""

    async def handler(_: Request) -> Response:
        return answer

    async with (
        ScriptedUpstream(handler) as upstream,
        running(Gateway(folder, redis, upstream.url)) as gateway,
    ):
        yield gateway, upstream


async def test_http10_clients_get_a_plain_answer(gateway: Gateway) -> None:
    """Miss and hit alike, with a length, and the connection ends."""
    for outcome in ("fwd=miss", "hit"):
        answer = await raw_call(gateway, head(f"POST {CHAT} HTTP/1.0") + BODY)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert answer.headers["cache-status"].startswith(f"cachewright; {outcome}")
        assert "transfer-encoding" not in answer.headers
        assert len(answer.body) == int(answer.headers["content-length"])
        assert json.loads(answer.body)["choices"]
        await written(gateway)


async def written(gateway: Gateway) -> None:
    """Return once an answer was stored."""

    async def is_stored() -> bool:
        return await gateway.metric("cachewright_stored_total") == 1

    await until(is_stored)


async def test_http10_clients_get_a_stream_without_chunks(tmp_path: Path, redis: RedisServer) -> None:
    """Its end is the end of the connection, and nothing stands between its parts."""

    async def parts() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"data: %d\n\n" % number

    async with before(tmp_path, redis, Response(200, parts(), "text/event-stream")) as (gateway, _):
        answer = await raw_call(gateway, head(f"POST {CHAT} HTTP/1.0") + BODY)
    assert answer.status == 200
    assert "transfer-encoding" not in answer.headers
    assert answer.body == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


async def test_chunked_bodies_are_read(gateway: Gateway, engine: Engine) -> None:
    """They share their key with bodies that have a length."""
    first = await raw_call(gateway, head(f"POST {CHAT} HTTP/1.1", "Connection: close") + BODY)
    await written(gateway)
    chunked = head(f"POST {CHAT} HTTP/1.1", "Transfer-Encoding: chunked", "Connection: close", length=None)
    pieces = [b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in (BODY[:7], BODY[7:])]
    second = await raw_call(gateway, chunked, *pieces, b"0\r\nTrailer: x\r\n\r\n")
    assert second.headers["cache-status"].startswith("cachewright; hit")
    assert second.body == first.body
    assert len(engine.requests) == 1


async def test_a_client_that_expects_100_is_told_to_go_on(gateway: Gateway) -> None:
    """It gets its answer after it has sent its body, and sends it only when told."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.process.port)
    async with asyncio.timeout(10):
        writer.write(head(f"POST {CHAT} HTTP/1.1", "Expect: 100-continue", "Connection: close"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(BODY)
        answer = parse_answer(await reader.read())
    writer.close()
    assert answer.status == 200


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(gateway: Gateway) -> None:
    """Who expects 100 gets 413 at once."""
    huge = gateway.policy.max_body_bytes + 1
    request = head(f"POST {CHAT} HTTP/1.1", "Expect: 100-continue", "Connection: close", length=huge)
    assert (await raw_call(gateway, request)).status == 413


async def test_absolute_targets_mean_their_path(gateway: Gateway, engine: Engine) -> None:
    """As proxies send them; host and scheme are not part of the key."""
    for target in (CHAT, f"http://elsewhere:80{CHAT}", f"HTTPS://gateway{CHAT}"):
        answer = await raw_call(gateway, head(f"POST {target} HTTP/1.1", "Connection: close") + BODY)
        assert answer.status == 200
        await written(gateway)
    assert answer.headers["cache-status"].startswith("cachewright; hit")
    assert len(engine.requests) == 1


async def test_long_headers_pass_both_ways(tmp_path: Path, redis: RedisServer) -> None:
    """Longer than what common servers take by default."""
    long = "x" * 60_000
    async with before(tmp_path, redis, Response(200, chat_answer(), headers={"x-long": long})) as (
        gateway,
        upstream,
    ):
        answer = await raw_call(
            gateway, head(f"POST {CHAT} HTTP/1.1", f"X-Long: {long}", "Connection: close") + BODY
        )
        assert (answer.status, answer.headers["x-long"]) == (200, long)
        assert upstream.requests[0].header("x-long") == long


PACKINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("GZIP", gzip.compress),
]


@pytest.mark.parametrize(("encoding", "pack"), PACKINGS)
async def test_compressed_requests_are_cached_and_forwarded_as_sent(
    tmp_path: Path, redis: RedisServer, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    """They share their key with plain ones; the upstream gets every byte as it came."""
    async with before(tmp_path, redis, Response(200, chat_answer())) as (gateway, upstream):
        packed = pack(BODY)
        first = await gateway.call(headers={**TENANT, "Content-Encoding": encoding}, data=packed)
        assert first.cache == "cachewright; fwd=miss"
        assert upstream.requests[0].body == packed
        assert upstream.requests[0].header("content-encoding") == encoding
        await written(gateway)
        assert (await gateway.call()).is_hit
        assert (await gateway.call(headers={**TENANT, "Content-Encoding": encoding}, data=packed)).is_hit
        assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("br", b"\x0b\x02\x80{}\x03"),
        ("zstd", b"(\xb5/\xfd"),
        ("gzip", BODY),
        ("gzip", gzip.compress(BODY)[:-4]),
        ("gzip", gzip.compress(BODY) + b"x"),
        ("gzip", gzip.compress(b'{"a": "' + b" " * 10_000_000 + b'"}')),
        ("gzip, gzip", gzip.compress(gzip.compress(BODY))),
    ],
    ids=["br", "zstd", "plain", "cut off", "more behind", "bomb", "twice"],
)
async def test_what_cannot_be_unpacked_is_passed_on(
    tmp_path: Path, redis: RedisServer, encoding: str, body: bytes
) -> None:
    """As it is, uncached; a bomb is never unpacked."""
    async with before(tmp_path, redis, Response(200, chat_answer())) as (gateway, upstream):
        answer = await gateway.call(headers={**TENANT, "Content-Encoding": encoding}, data=body)
        assert (answer.status, answer.reason) == (200, "encoded")
        assert (upstream.requests[0].body, upstream.requests[0].header("content-encoding")) == (
            body,
            encoding,
        )


async def test_a_body_that_we_rewrite_goes_plain(tmp_path: Path, redis: RedisServer) -> None:
    """A stream's usage is asked for in a body of ours, which is not compressed and does not say so."""
    async with before(tmp_path, redis, Response(200, chat_answer())) as (gateway, upstream):
        packed = gzip.compress(json.dumps({**QUESTION, "stream": True}).encode())
        await gateway.call(headers={**TENANT, "Content-Encoding": "gzip"}, data=packed)
        assert json.loads(upstream.requests[0].body)["stream_options"] == {"include_usage": True}
        assert upstream.requests[0].header("content-encoding") == ""


@pytest.mark.parametrize(
    ("method", "path"), [("OPTIONS", CHAT), ("HEAD", CHAT), ("HEAD", "/v1/models"), ("OPTIONS", "/v1/models")]
)
async def test_methods_that_compute_nothing_are_passed_on(
    tmp_path: Path, redis: RedisServer, method: str, path: str
) -> None:
    """Headers, status and all, never looked up; a browser's preflight has no credentials to show."""
    allowed = Response(204, b"", headers={"access-control-allow-origin": "*"})
    async with before(tmp_path, redis, allowed) as (gateway, upstream):
        gateway.enact(tenancy={"on_missing": "Reject"})
        headers = [] if method == "OPTIONS" else list(TENANT.items())
        for _ in range(2):
            answer = await gateway.call(path, method=method, headers=headers)
            assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, "*")
            assert answer.reason in ("method", "no_route")
        assert [request.method for request in upstream.requests] == [method] * 2


async def test_pages_of_another_origin_get_the_upstreams_permission(
    tmp_path: Path, redis: RedisServer
) -> None:
    """With every answer, or the browser would keep it from them; pages of our own origin need none."""
    allowed = Response(200, chat_answer(), headers={"access-control-allow-origin": "*"})
    async with before(tmp_path, redis, allowed) as (gateway, _):
        await gateway.call()
        await written(gateway)
        for origin in ("https://app.example", "null"):
            answer = await gateway.call(headers={**TENANT, "Origin": origin})
            assert (answer.reason, answer.headers["access-control-allow-origin"]) == ("cross_origin", "*")
        assert (await gateway.call(headers={**TENANT, "Origin": gateway.url})).is_hit


async def test_preflights_spend_no_key_of_the_upstream(tmp_path: Path, redis: RedisServer) -> None:
    """Nobody has shown who asks."""
    async with ScriptedUpstream(_no_content) as upstream:
        gateway = Gateway(tmp_path, redis, upstream.url)
        gateway.mount("upstream/key", "sk-upstream")
        gateway.enact(upstream={"sends_own_key": True})
        async with running(gateway):
            await gateway.call(method="OPTIONS", headers=TENANT)
            await gateway.call(headers=TENANT)
    assert [request.header("authorization") for request in upstream.requests] == ["", "Bearer sk-upstream"]


async def _no_content(_: Request) -> Response:
    return Response(204)


async def test_requests_in_a_row_on_one_connection_are_answered_in_order(gateway: Gateway) -> None:
    """Pipelined ones too."""
    first, second = (json.dumps({**QUESTION, "seed": seed}).encode() for seed in (1, 2))
    received = await raw_exchange(
        gateway,
        head(length=len(first))
        + first
        + head(f"POST {CHAT} HTTP/1.1", "Connection: close", length=len(second))
        + second,
    )
    assert received.count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize(
    "line",
    [
        "OPTIONS * HTTP/1.1",
        "CONNECT gateway:443 HTTP/1.1",
        "POST  HTTP/1.1",
        f"POST {CHAT} HTTP/3.7",
        "GARBAGE",
        "",
    ],
)
async def test_what_is_no_request_is_refused(gateway: Gateway, line: str) -> None:
    """With an error of the client's, not of ours, or by ending the connection."""
    received = await raw_exchange(gateway, head(line, "Connection: close") + BODY)
    assert not received or 400 <= parse_answer(received).status < 500
    assert (await gateway.call()).status == 200


async def test_two_lengths_are_refused(gateway: Gateway, engine: Engine) -> None:
    """What two servers could read differently reaches neither cache nor upstream."""
    for more in ("Content-Length: 5", "Transfer-Encoding: chunked"):
        received = await raw_exchange(
            gateway, head(f"POST {CHAT} HTTP/1.1", more, "Connection: close") + BODY
        )
        assert parse_answer(received).status == 400
    assert not engine.requests


async def test_random_bytes_harm_nobody(gateway: Gateway) -> None:
    """Requests with bytes changed, left out or cut off: the next one is answered as ever."""
    source = random.Random(4)  # noqa: S311 - no secret
    whole = head(f"POST {CHAT} HTTP/1.1", "Connection: close") + BODY
    for _ in range(150):
        broken = bytearray(whole)
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(len(broken))
            match source.randrange(3):
                case 0:
                    broken[at] = source.randrange(256)
                case 1:
                    del broken[at : at + source.randrange(1, 40)]
                case _:
                    broken[at:at] = source.randbytes(source.randrange(1, 20))
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.process.port)
        writer.write(bytes(broken))
        writer.write_eof()
        async with asyncio.timeout(10):
            received = await reader.read()
        writer.close()
        assert b"Internal Server Error" not in received
        assert not received.startswith(b"HTTP/1.1 502")
    assert (await gateway.call(headers=TENANT)).status == 200
