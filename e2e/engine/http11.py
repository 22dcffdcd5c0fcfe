"""HTTP/1.1 on asyncio streams: bytes of a connection into requests, answers into bytes.

Keep-alive, pipelining, chunked bodies both ways and `Expect: 100-continue`. Called by `server.Engine`, which
brings the handler. The standard library has only a server with a thread per request, too slow under load.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from http.client import responses
from typing import Final
from urllib.parse import unquote

MAX_HEAD_BYTES: Final = 128 * 1024
LINGER_SECONDS: Final = 1.0


class BadRequestError(ValueError):
    """The bytes are no HTTP request; the connection ends after the answer."""


@dataclass(frozen=True)
class Request:
    """One request, its body read whole."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    """Names in lower case, in the order sent, repeated ones kept."""
    body: bytes = b""

    def header(self, name: str) -> str:
        """Return the header's values joined as RFC 9110 says, or the empty string."""
        return ", ".join(value for key, value in self.headers if key == name.lower())


@dataclass(frozen=True)
class Response:
    """One answer: bytes with a length, or an iterator that is sent chunk by chunk."""

    status: int = 200
    body: bytes | AsyncIterator[bytes] = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Break the connection in the middle of the body, as a crashing engine does."""


Handler = Callable[[Request], Awaitable[Response]]


async def serve_connection(
    handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the requests of one connection, one after the other, until either side ends it."""
    try:
        keep = True
        while keep:
            try:
                request, keep = await _read(reader, writer)
            except BadRequestError as error:
                await _send(writer, Response(400, str(error).encode(), "text/plain"), head=False, keep=False)
                await _linger(reader, writer)
                break
            response = await handler(request)
            await _send(writer, response, head=request.method == "HEAD", keep=keep)
            keep = keep and not response.cut
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client went away, which is its right
    finally:
        writer.close()


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End our side and drop what still comes: closing over unread bytes resets the answer away."""
    writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(MAX_HEAD_BYTES):
                pass


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[Request, bool]:
    """Return the next request and whether the connection is to be kept after it."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise BadRequestError("the request's head is too large") from error
    line, *fields = head.strip("\r\n").split("\r\n")
    try:
        method, uri, version = line.split(" ")
        pairs = [field.split(":", 1) for field in fields]
        headers = tuple((name.lower(), value.strip()) for name, value in pairs)
    except ValueError as error:
        raise BadRequestError("the request's head is malformed") from error
    path, _, query = uri.partition("?")
    request = Request(method, unquote(path), query, headers)
    if request.header("expect").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _read_body(request, reader)
    wish = request.header("connection").lower()
    keep = wish == "keep-alive" if version == "HTTP/1.0" else "close" not in wish
    return Request(method, request.path, query, headers, body), keep


async def _read_body(request: Request, reader: asyncio.StreamReader) -> bytes:
    try:
        if "chunked" not in request.header("transfer-encoding").lower():
            return await reader.readexactly(int(request.header("content-length") or 0))
        parts = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
    except (ValueError, asyncio.LimitOverrunError) as error:
        raise BadRequestError("the body's length is malformed") from error
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers
    return b"".join(parts)


async def _send(writer: asyncio.StreamWriter, response: Response, *, head: bool, keep: bool) -> None:
    whole = response.body if isinstance(response.body, bytes) else None
    framing = "Transfer-Encoding: chunked" if whole is None else f"Content-Length: {len(whole)}"
    lines = [
        f"HTTP/1.1 {response.status} {responses.get(response.status, 'Unknown')}",
        f"Content-Type: {response.content_type}",
        framing,
        f"Connection: {'keep-alive' if keep else 'close'}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    if not head:
        await _send_body(writer, response)
    await writer.drain()


async def _send_body(writer: asyncio.StreamWriter, response: Response) -> None:
    if isinstance(response.body, bytes):
        writer.write(response.body[: len(response.body) // 2] if response.cut else response.body)
        return
    async for chunk in response.body:
        writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        await writer.drain()
        if response.cut:
            return
    writer.write(b"0\r\n\r\n")
