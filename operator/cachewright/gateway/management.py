"""The management port: health and metrics, apart from traffic so that a NetworkPolicy can tell them apart."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from cachewright.gateway.app import Scope, Send, send_reply
from cachewright.gateway.health import Health
from cachewright.gateway.reply import Reply, error_reply
from cachewright.gateway.request_body import Receive


class ManagementApp:
    """The ASGI application of the management port."""

    def __init__(self, health: Health, registry: CollectorRegistry) -> None:
        self._health = health
        self._registry = registry

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send_reply(self._reply(scope["path"]), send)

    def _reply(self, path: str) -> Reply:
        if path in Health.PATHS:
            return self._health.reply(path)
        if path == "/metrics":
            body = generate_latest(self._registry)
            return Reply(
                200,
                [
                    (b"content-type", CONTENT_TYPE_LATEST.encode()),
                    (b"content-length", str(len(body)).encode()),
                ],
                body,
            )
        return error_reply(404, "not_found", "this port serves /healthz, /readyz and /metrics")
