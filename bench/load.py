"""A loader over raw sockets: requests out, timings and whole answers back, at little cost of its own.

For what wrk cannot tell: time to the first byte, single requests in a trouble, traces.
Called by the scenarios.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httptools

from bench.contenders import Contender

CHAT: Final = "/v1/chat/completions"
GIVE_UP_SECONDS: Final = 90.0


@dataclass(frozen=True, slots=True)
class Timing:
    """One answer."""

    status: int
    """0 for a connection that broke."""
    first_byte_seconds: float
    total_seconds: float
    body: bytes


def question(text: str, **fields: Any) -> bytes:  # noqa: ANN401 - any JSON
    """Return the body of a request that is cached, of about the size that chats have."""
    opening = {"role": "system", "content": "You are a helpful assistant. " * 30}
    messages = [opening, {"role": "user", "content": text}]
    return json.dumps({"model": "llama", "messages": messages, "temperature": 0, **fields}).encode()


def wire(contender: Contender, body: bytes, tenant: str = "acme") -> bytes:
    """Return a whole request as bytes."""
    headers = [
        ("Host", urlsplit(contender.url).netloc),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("X-Tenant-Id", tenant),
        ("X-User-Role", "user"),
        *contender.headers,
    ]
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"POST {CHAT} HTTP/1.1\r\n{head}\r\n".encode() + body


class Connection(asyncio.Protocol):
    """One kept connection; asks one thing at a time."""

    def __init__(self) -> None:
        self._done: asyncio.Future[Timing] | None = None

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect."""
        parts = urlsplit(url)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, parts.hostname or "", parts.port or 80)
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport: Any = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Answer whoever waits."""
        self._finish(0)

    async def ask(self, request: bytes, give_up_seconds: float = GIVE_UP_SECONDS) -> Timing:
        """Send a request and return its answer, or one of status 0 if none came."""
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._first = 0.0
        self._done = asyncio.get_running_loop().create_future()
        self._began = time.perf_counter()
        self._transport.write(request)
        if self._transport.is_closing():
            self._finish(0)
        try:
            return await asyncio.wait_for(self._done, give_up_seconds)
        except TimeoutError:
            self._transport.abort()
            return Timing(0, give_up_seconds, give_up_seconds, b"")

    def close(self) -> None:
        """Close it."""
        self._transport.close()

    def abort(self) -> None:
        """Break it off, as a client does that is in a hurry."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._finish(0)

    def on_body(self, body: bytes) -> None:
        """Take a piece; called by the parser."""
        if not self._pieces:
            self._first = time.perf_counter() - self._began
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """End an answer; called by the parser."""
        self._finish(self._parser.get_status_code())

    def _finish(self, status: int) -> None:
        if self._done is not None and not self._done.done():
            total = time.perf_counter() - self._began
            self._done.set_result(Timing(status, self._first or total, total, b"".join(self._pieces)))


async def ask_each(contender: Contender, requests: Iterable[bytes], at_once: int = 1) -> list[Timing]:
    """Send requests over `at_once` connections, each as soon as the one before is answered."""
    waiting = iter(list(requests))

    async def work() -> list[Timing]:
        connection = await Connection.open(contender.url)
        timings = []
        for request in waiting:
            timing = await connection.ask(request)
            timings.append(timing)
            if timing.status == 0:
                connection = await Connection.open(contender.url)
        connection.close()
        return timings

    return [timing for done in await asyncio.gather(*(work() for _ in range(at_once))) for timing in done]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
