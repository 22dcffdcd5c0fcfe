"""The stand-in model: an OpenAI-compatible server on a loopback port, for runs without a model at hand.

It answers after a set time and understands nothing; the session says so loudly. Chat, completions (both also
streamed), embeddings and the list of models.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import uvicorn

from cachewright.asgi_server import AsgiServer
from cachewright.local.stand_in_answers import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    MODELS,
    Call,
    chunks,
    parse_body,
    whole,
)

_Event = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Event]]
_Send = Callable[[_Event], Awaitable[None]]

MODEL: Final = "stand-in"
GRACEFUL_SECONDS: Final = 1


class StandIn:
    """The server."""

    def __init__(self, latency_seconds: float) -> None:
        self._latency_seconds = latency_seconds
        self.calls = 0
        """Requests for an answer so far."""
        self._server = AsgiServer(
            uvicorn.Config(
                self._app,
                interface="asgi3",
                host="127.0.0.1",
                port=0,
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACEFUL_SECONDS,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Listen on a free port and return the base URL."""
        self._serving = asyncio.create_task(self._server.serve())
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
            await asyncio.sleep(0.005)
        return f"http://127.0.0.1:{self._server.bound_port}/v1"

    async def aclose(self) -> None:
        """Stop listening; answers under way have a second."""
        self._server.should_exit = True
        if self._serving is not None:
            await asyncio.gather(self._serving, return_exceptions=True)

    async def _app(self, scope: _Event, receive: _Receive, send: _Send) -> None:
        method, path = scope["method"], scope["path"]
        if (method, path) == ("GET", MODELS):
            listed = {"id": MODEL, "object": "model", "created": 0, "owned_by": "cachewright"}
            await _send_json(send, 200, {"object": "list", "data": [listed]})
        elif method == "POST" and path in (CHAT, COMPLETIONS, EMBEDDINGS):
            await self._infer(path, await _read(receive), send)
        else:
            await _send_json(send, 404, _error(f"the stand-in model has no {method} {path}"))

    async def _infer(self, path: str, raw: bytes, send: _Send) -> None:
        self.calls += 1
        try:
            body = parse_body(raw)
            call = Call(path, body, self.calls, int(time.time()))
            if body.get("stream") is True and path != EMBEDDINGS:
                events = list(chunks(call))
            else:
                document = whole(call)
                await asyncio.sleep(self._latency_seconds)
                await _send_json(send, 200, document)
                return
        except ValueError as e:
            await _send_json(send, 400, _error(str(e)))
            return
        await self._stream(events, send)

    async def _stream(self, events: list[bytes], send: _Send) -> None:
        """Take half of the time to the first word, and the other half for the rest."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        await asyncio.sleep(self._latency_seconds / 2)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for event in events[:-1]:
            await send({"type": "http.response.body", "body": event, "more_body": True})
            await asyncio.sleep(self._latency_seconds / 2 / len(events))
        await send({"type": "http.response.body", "body": events[-1], "more_body": False})


async def _read(receive: _Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        event = await receive()
        parts.append(event.get("body", b""))
        if not event.get("more_body", False):
            return b"".join(parts)


async def _send_json(send: _Send, status: int, document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
