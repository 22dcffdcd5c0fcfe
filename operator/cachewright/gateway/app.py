"""The HTTP edge of the traffic port: from ASGI events to the flow's plain values and back.

uvicorn calls it for every request. No branch here knows about caching.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog

from cachewright.errors import ClientGone, UpstreamError
from cachewright.gateway.cache_status import outcome_of
from cachewright.gateway.exchange import Call
from cachewright.gateway.flow import Flow
from cachewright.gateway.health import Health
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.gateway.reply import Reply, error_reply
from cachewright.gateway.request_body import Receive, RequestBody
from cachewright.gateway.throttle import Throttle

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log = structlog.get_logger(__name__)


class GatewayApp:
    """The ASGI application of the traffic port."""

    def __init__(self, flow: Flow, health: Health, throttle: Throttle, metrics: GatewayMetrics) -> None:
        self._flow = flow
        self._metrics = metrics
        self._health = health
        self._throttle = throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"] in Health.PATHS:
            await send_reply(self._health.reply(scope["path"]), send)
            return
        body = RequestBody(receive)
        call = Call(scope["method"], scope["raw_path"], scope["query_string"], list(scope["headers"]))
        try:
            await self._answer(call, body, send)
        except ClientGone:
            pass
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not body.gone or task is None:
                raise
            task.uncancel()  # it was our own watch that cancelled: nobody is left to answer
        finally:
            body.stop_watching()

    async def _answer(self, call: Call, body: RequestBody, send: Send) -> None:
        started = time.perf_counter()
        try:
            reply = await self._flow.answer(call, body)
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001 - the process edge
            _log.exception("request_failed", method=call.method)
            reply = error_reply(502, "gateway_error", "the gateway failed to pass the request on")
        if (outcome := outcome_of(reply.headers)) is not None:
            self._metrics.request_seconds.labels(outcome).observe(time.perf_counter() - started)
        try:
            await send_reply(reply, send)
        except UpstreamError as e:
            # The head is out, so all that is left is to end the connection without a proper end: the server
            # does so when an application returns early, and the client sees that its answer is not whole.
            if (skipped := self._throttle.skipped("answer_broke_off")) is not None:
                _log.warning("answer_broke_off", error=str(e), skipped=skipped)


async def send_reply(reply: Reply, send: Send) -> None:
    """Send a reply; raises UpstreamError where its parts break off."""
    try:
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        if reply.parts is not None:
            async for part in reply.parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": reply.body, "more_body": False})
    finally:
        reply.close()
