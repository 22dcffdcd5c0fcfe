"""The engine itself: routes requests, waits as long as a model would, counts, and fails on demand.

Called by `__main__` for the image and by tests, in their own event loop.
"""

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from .answers import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    Call,
    Json,
    chunks,
    completion,
    embeddings,
    parse,
)
from .http11 import MAX_HEAD_BYTES, Request, Response, serve_connection
from .prefix_cache import PrefixCache, metrics

INFERENCE: Final = (CHAT, COMPLETIONS, EMBEDDINGS)
STATUS_HEADER: Final = "X-Engine-Status"
"""A request that carries it is answered with that status."""

KEPT_REQUESTS: Final = 1000


@dataclass(frozen=True)
class Fault:
    """What to do to one of the next calls instead of answering it."""

    status: int | None = None
    cut: bool = False


class Engine:
    """A fake model server on one port; use it as an async context manager."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        latency_seconds: float = 0.0,
        model: str | None = None,
        version: str = "1",
        fail_every: int = 0,
        tenant_header: str = "X-Tenant-Id",
        prefix_cache: PrefixCache | None = None,
        tells_known_tokens: bool = True,
        dev_mode: bool = False,
    ) -> None:
        self.prefix_cache = prefix_cache
        """None: every token of every prompt is computed."""
        self.calls: Counter[str] = Counter()
        """Calls of each inference path, failed ones included."""
        self.requests: deque[Request] = deque(maxlen=KEPT_REQUESTS)
        """The last requests of inference paths as they came over the wire."""
        self.flowing = asyncio.Event()
        """Cleared: streams stop after their first event until it is set."""
        self.flowing.set()
        self.latency_seconds = latency_seconds
        self.version = version
        self._host, self._port = host, port
        self._model, self._fail_every, self._tenant_header = model, fail_every, tenant_header
        self._faults: deque[Fault] = deque()
        self.holds_blocks = False
        """True: its prefix cache cannot be emptied now, as while requests run."""
        self._dev_mode = dev_mode
        self._tells_known_tokens = tells_known_tokens
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._count = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self._host, self._port, limit=MAX_HEAD_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def url(self) -> str:
        """The address without a path, such as `http://127.0.0.1:8000`."""
        return f"http://{self._host}:{self._port}"

    def fail(self, status: int | None = 500, *, times: int = 1, cut: bool = False) -> None:
        """Answer the next calls with this status, or break the connection in the middle of the body."""
        self._faults.extend([Fault(status, cut)] * times)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve_connection(self._handle, reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _handle(self, request: Request) -> Response:
        if request.path in INFERENCE:
            return await self._infer(request) if request.method == "POST" else _error(405, "use POST")
        match (request.method, request.path):
            case ("GET" | "HEAD", "/healthz"):
                return _json({"status": "ok", "version": self.version})
            case ("GET", "/v1/models"):
                listed = {"id": self._model or "stand-in", "object": "model", "created": 0, "owned_by": "e2e"}
                return _json({"object": "list", "data": [listed]})
            case ("GET", "/calls"):
                return _json(dict(self.calls))
            case ("GET", "/metrics"):
                text = metrics(self.prefix_cache, self._model or "stand-in")
                return Response(200, text.encode(), "text/plain; version=0.0.4")
            case ("POST", "/reset_prefix_cache") if self._dev_mode:
                return _json({"success": self._reset_prefix_cache()})
            case ("POST", "/calls/reset"):
                self.calls.clear()
                self.requests.clear()
                return _json({})
            case ("POST", "/faults"):
                return self._take_faults(request.body)
        return _error(404, f"no {request.method} {request.path}")

    def _reset_prefix_cache(self) -> bool:
        """Do as vLLM with VLLM_SERVER_DEV_MODE=1: empty the cache, unless something holds its blocks."""
        if self.prefix_cache is not None and not self.holds_blocks:
            self.prefix_cache.clear()
        return not self.holds_blocks

    def _take_faults(self, raw: bytes) -> Response:
        try:
            wanted = json.loads(raw)
            self.fail(wanted.get("status"), times=int(wanted.get("times", 1)), cut=bool(wanted.get("cut")))
        except (ValueError, AttributeError):
            return _error(400, 'send {"status": 503, "times": 2} or {"cut": true}')
        return _json({"pending": len(self._faults)})

    async def _infer(self, request: Request) -> Response:
        self.calls[request.path] += 1
        self.requests.append(request)
        self._count += 1
        try:
            return await self._answer(request, self._next_fault(request))
        except (ValueError, TypeError, AttributeError) as error:  # a body of the wrong shape
            return _error(400, f"{type(error).__name__}: {error}")

    async def _answer(self, request: Request, fault: Fault) -> Response:
        if fault.status is not None:
            await asyncio.sleep(self.latency_seconds)
            return _error(fault.status, f"status {fault.status} on demand")
        body = parse(request.path, request.body)
        call = self._call(request, body)
        if self.prefix_cache is not None and request.path != EMBEDDINGS:
            reuse = self.prefix_cache.use(body)
            call = replace(call, reuse=reuse if self._tells_known_tokens else None)
        if body.get("stream") and request.path != EMBEDDINGS:
            stream = self._paced(list(chunks(call)))
            return Response(200, stream, "text/event-stream", {"Cache-Control": "no-cache"}, fault.cut)
        answer = embeddings(call) if request.path == EMBEDDINGS else completion(call)
        await asyncio.sleep(self.latency_seconds)
        return _json(answer, cut=fault.cut)

    def _next_fault(self, request: Request) -> Fault:
        if wanted := request.header(STATUS_HEADER):
            return Fault(int(wanted))
        if self._faults:
            return self._faults.popleft()
        if self._fail_every and self._count % self._fail_every == 0:
            return Fault(500)
        return Fault()

    def _call(self, request: Request, body: Json) -> Call:
        return Call(
            path=request.path,
            body=body,
            tenant=request.header(self._tenant_header),
            version=self.version,
            model=self._model or str(body.get("model", "stand-in")),
            number=self._count,
        )

    async def _paced(self, events: list[bytes]) -> AsyncIterator[bytes]:
        """Yield the events over the latency: half of it before the first, the rest between the others."""
        await asyncio.sleep(self.latency_seconds / 2)
        yield events[0]
        for event in events[1:]:
            await self.flowing.wait()
            await asyncio.sleep(self.latency_seconds / 2 / len(events))
            yield event


def _json(payload: Any, *, status: int = 200, cut: bool = False) -> Response:
    return Response(status, json.dumps(payload).encode(), cut=cut)


def _error(status: int, message: str) -> Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return _json({"error": {"message": message, "type": kind, "param": None, "code": None}}, status=status)
