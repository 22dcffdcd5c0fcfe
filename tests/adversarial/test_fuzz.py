"""Fuzzing of what clients send: mutated bodies, bodies in any pieces, and bodies without an end.

`make soak` runs these with many more examples.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import MutableMapping
from typing import Any

import orjson
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.errors import BodyTooLarge, ClientGone, InvalidJson
from cachewright.gateway.request_body import RequestBody
from cachewright.keys.canonical import canonical_json, parse_json
from tests.adversarial.cases import load_cases
from tests.gateway.harness import Gateway

BODIES = sorted({request.marked("m") for case in load_cases() for request in (case.a, case.b)})
PIECES = [
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
]
PIECES += [b"0", b"-0", b"1e999", b"1E-400", b"NaN", b"null", b"true", b"18446744073709551616", b"[" * 2000]

ENDLESS_BYTES = 48 * 1024 * 1024


@st.composite
def mutated_bodies(draw: st.DrawFn) -> bytes:
    """Take a body of the set, and cut, double, exchange and insert pieces of it."""
    body = draw(st.sampled_from(BODIES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(len(body), start + 30)))
        piece = draw(st.sampled_from([b"", body[start:end] * 2, *PIECES]) | st.binary(max_size=4))
        body = body[:start] + piece + body[end:]
    return body


@given(mutated_bodies())
def test_what_is_accepted_is_read_alike_by_every_reader(body: bytes) -> None:
    """A body that gets a key says the same to the standard library's parser and to a strict one."""
    try:
        value = parse_json(body)
        form = canonical_json(value)
    except InvalidJson:
        return
    assert json.loads(body) == value
    assert orjson.loads(form) == value
    assert canonical_json(parse_json(form)) == form
    with contextlib.suppress(
        orjson.JSONDecodeError
    ):  # it refuses lone surrogates and depth, which is as well
        assert orjson.loads(body) == value


@given(st.lists(st.integers(0, 300), max_size=20), st.integers(0, 1000), st.integers(0, 2000))
def test_no_more_of_a_body_is_held_than_allowed(sizes: list[int], keep_bytes: int, most_bytes: int) -> None:
    """In any pieces: all is kept or all is passed on, in order, and reading stops at the bound."""
    sent = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in sent]
    given_out = 0

    async def receive() -> MutableMapping[str, Any]:
        nonlocal given_out
        if not waiting:
            return {"type": "http.request", "body": b"", "more_body": False}
        message = waiting.pop(0)
        given_out += len(message["body"])  # type: ignore[arg-type]
        return message

    async def read() -> None:
        body = RequestBody(receive)
        kept = await body.read_up_to(keep_bytes)
        whole = b"".join(sent)
        assert (kept is None) == (len(whole) > keep_bytes)
        if kept is not None:
            assert kept == whole
            return
        assert given_out <= keep_bytes + max(sizes)
        passed = []
        with contextlib.suppress(BodyTooLarge):
            passed = [piece async for piece in body.chunks(most_bytes)]
        assert body.too_large == (len(whole) > most_bytes)
        if not body.too_large:
            assert b"".join(passed) == whole
        assert given_out <= max(keep_bytes, most_bytes) + max(sizes)

    asyncio.run(read())


async def test_a_client_that_leaves_while_sending_is_told_apart() -> None:
    """A body that breaks off is no body."""

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        await RequestBody(receive).read_up_to(10)


async def test_endless_bodies_fill_no_memory(gateway: Gateway) -> None:
    """Chunks without an end are refused at the bound, and what was sent is not held."""
    await gateway.call()
    before = psutil.Process().memory_info().rss
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.process.port)
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    named = "X-Tenant-Id: a\r\nX-User-Role: b\r\nX-Experiment-Arm: c\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write((head + named).encode())
    with contextlib.suppress(ConnectionError):
        for _ in range(ENDLESS_BYTES // len(piece)):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(ConnectionError):
        assert (await reader.readline()).split()[1] == b"413"
    writer.close()
    grown = psutil.Process().memory_info().rss - before
    assert grown < ENDLESS_BYTES / 4
    assert (await gateway.call(method="GET", path="/healthz", headers=[])).status == 200
