"""The fake upstream: OpenAI requests in, telling answers out, with a latency and with troubles as wished.

In a process of its own (`python -m bench.upstream --port 9100`) for measurements, or inside a test's loop. It
parses with httptools and writes to the transport itself, so that it costs little of the machine it measures.
`GET /bench/calls` tells how many calls came; `POST /bench/conduct` changes how it behaves.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

import httptools
import orjson
import uvloop

from bench.answers import Asked, events, whole

CONTROL: Final = "/bench/"


@dataclass(frozen=True, slots=True)
class Conduct:
    """How the upstream behaves towards inference calls."""

    latency_seconds: float = 0.0
    """Before the first byte."""
    event_seconds: float = 0.0
    """Between two events of a stream."""
    filling: int = 0
    """Further characters in each answer."""
    failing: float = 0.0
    """Share of calls answered with 503."""
    cutting: float = 0.0
    """Share of answers that break off in the middle."""


class Upstream:
    """The server, its counter and its conduct."""

    def __init__(self, conduct: Conduct | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.conduct = conduct or Conduct()
        self.calls = 0
        self.failed = 0
        self.cut = 0
        self.connections: set[_Connection] = set()
        self.random = random.Random(20261130)  # noqa: S311 - troubles, not secrets
        self._host = host
        self._port = port

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), self._host, self._port, backlog=1024
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in list(self.connections):
            connection.abort()

    @property
    def url(self) -> str:
        """Its address without a path."""
        return f"http://{self._host}:{self._port}"


class _Connection(asyncio.Protocol):
    """One connection; its requests are answered one after the other."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._parser = httptools.HttpRequestParser(self)
        self._answering: asyncio.Task[None] | None = None
        self._waiting: list[tuple[str, bytes, tuple[tuple[str, str], ...], bytes]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._upstream.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._upstream.connections.discard(self)
        if self._answering is not None:
            self._answering.cancel()

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.abort()

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode()
        self._waiting.append((method, self._url, tuple(self._headers), b"".join(self._body)))
        if self._answering is None or self._answering.done():
            self._answering = asyncio.get_running_loop().create_task(self._answer_all())

    async def _answer_all(self) -> None:
        while self._waiting:
            method, url, headers, raw = self._waiting.pop(0)
            path, _, query = url.decode("latin-1").partition("?")
            if path.startswith(CONTROL):
                self._control(method, path, raw)
            elif method == "GET":  # a list of models, which some gateways ask for
                self._write(200, b'{"object":"list","data":[{"id":"llama","object":"model"}]}')
            else:
                await self._infer(path, query, headers, raw)

    def _control(self, method: str, path: str, raw: bytes) -> None:
        upstream = self._upstream
        if method == "POST":
            upstream.conduct = replace(upstream.conduct, **orjson.loads(raw))
        counted = {"calls": upstream.calls, "failed": upstream.failed, "cut": upstream.cut}
        state = asdict(upstream.conduct) | counted | {"connections": len(upstream.connections)}
        self._write(200 if path in ("/bench/calls", "/bench/conduct") else 404, orjson.dumps(state))

    async def _infer(self, path: str, query: str, headers: tuple[tuple[str, str], ...], raw: bytes) -> None:
        upstream, conduct = self._upstream, self._upstream.conduct
        upstream.calls += 1
        asked = Asked(upstream.calls, path, query, headers, raw)
        body = asked.body()
        if conduct.latency_seconds:
            await asyncio.sleep(conduct.latency_seconds)
        chance = upstream.random.random()
        if chance < conduct.failing:
            upstream.failed += 1
            self._write(
                503, b'{"error":{"message":"overloaded","type":"api_error","param":null,"code":"busy"}}'
            )
            return
        cut = chance < conduct.failing + conduct.cutting
        upstream.cut += cut
        if body.get("stream") is True:
            await self._stream(events(asked, body, conduct.filling), conduct.event_seconds, cut)
        else:
            self._write(200, whole(asked, body, conduct.filling), cut)

    async def _stream(self, sent: list[bytes], pause_seconds: float, cut: bool) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        self._transport.write(head)
        for number, event in enumerate(sent):
            if cut and number >= len(sent) // 2:
                self._transport.close()
                return
            self._transport.write(b"%x\r\n%b\r\n" % (len(event), event))
            if pause_seconds:
                await asyncio.sleep(pause_seconds)
        self._transport.write(b"0\r\n\r\n")

    def _write(self, status: int, body: bytes, cut: bool = False) -> None:
        head = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (
            status,
            len(body),
        )
        self._transport.write(head + (body[: len(body) // 2] if cut else body))
        if cut:
            self._transport.close()


async def _serve(port: int, conduct: Conduct) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Upstream(conduct, port=port) as upstream:
        print(f"upstream listens on {upstream.url}", flush=True)
        await stop.wait()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.upstream", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--filling", type=int, default=0, metavar="CHARACTERS")
    asked = parser.parse_args()
    conduct = Conduct(latency_seconds=asked.latency, filling=asked.filling)
    with suppress(KeyboardInterrupt):
        uvloop.run(_serve(asked.port, conduct))


if __name__ == "__main__":
    main()
