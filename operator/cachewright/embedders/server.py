"""The HTTP edge of the built-in model: from ASGI events to the service's plain values and back.

Two ports: one for requests, which a sidecar opens on the loopback interface alone, and one for health.
Started by `embedders.main`; tests start it in their own loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from cachewright.asgi_server import AsgiServer, server_config
from cachewright.embedders.builtin import BuiltinEmbedder
from cachewright.embedders.service import EmbeddingService, ServiceReply, problem

MAX_BODY_BYTES: Final = 8 * 1024 * 1024

GRACEFUL_SECONDS: Final = 5

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Scope = MutableMapping[str, Any]


class EmbedderServer:
    """The running server."""

    def __init__(self, embedder: BuiltinEmbedder, host: str, port: int, health_port: int) -> None:
        """A port of 0 is any free one."""
        self._embedder = embedder
        self._service = EmbeddingService(embedder)
        self._servers = [
            AsgiServer(server_config(self._answer, host, port, GRACEFUL_SECONDS)),
            # The kubelet asks for health at the pod's own address.
            AsgiServer(server_config(self._answer_health, "0.0.0.0", health_port, GRACEFUL_SECONDS)),  # noqa: S104
        ]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Listen, with the model loaded; raises EmbedderUnavailable, OSError or SystemExit."""
        await self._embedder.embed(["ready"])
        self._tasks = [asyncio.create_task(server.serve()) for server in self._servers]
        while not all(server.started for server in self._servers):
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.005)

    @property
    def port(self) -> int:
        """The port for requests in use."""
        return self._servers[0].bound_port

    @property
    def health_port(self) -> int:
        """The health port in use."""
        return self._servers[1].bound_port

    async def stop(self) -> None:
        """Answer what is under way, for a few seconds at most, and close."""
        for server in self._servers:
            server.should_exit = True
        await asyncio.gather(*self._tasks)
        await self._embedder.aclose()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        called = (scope["method"], scope["path"])
        if called == ("GET", "/v1/models"):
            await _send(self._service.models(), send)
        elif called == ("POST", "/v1/embeddings"):
            body = await _read(receive)
            if body is None:
                reply = problem(413, "request_too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")
            else:
                reply = await self._service.answer(body)
            await _send(reply, send)
        else:
            await _send(problem(404, "not_found", "there are POST /v1/embeddings and GET /v1/models"), send)

    async def _answer_health(self, scope: Scope, _receive: Receive, send: Send) -> None:
        is_known = scope["path"] in ("/healthz", "/readyz")
        await _send(ServiceReply(200 if is_known else 404, b"{}"), send)


async def _read(receive: Receive) -> bytes | None:
    parts = bytearray()
    while True:
        event = await receive()
        parts += event.get("body", b"")
        if len(parts) > MAX_BODY_BYTES:
            return None
        if not event.get("more_body"):
            return bytes(parts)


async def _send(reply: ServiceReply, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(reply.body)).encode())]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
