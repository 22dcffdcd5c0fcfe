"""Where vectors come from when they are not cached: a server, or the built-in model in this process.

From a request's body to an answer that was read whole. Called by `gateway.embeddings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from cachewright.embedders.service import EmbeddingService
from cachewright.errors import UpstreamUnreachable
from cachewright.gateway.headers import Headers, end_to_end
from cachewright.gateway.payload import Payload
from cachewright.gateway.upstream import Outgoing, Upstream

if TYPE_CHECKING:
    from cachewright.gateway.exchange import Exchange  # which knows Serving, which knows us

MOST_ANSWER_BYTES: Final = 256 * 1024 * 1024
"""Vectors are many digits: 4,096 of 3,072 numbers are some 150 MiB as JSON."""

_OURS: Final = {b"content-type", b"content-length", b"content-encoding", b"accept", b"accept-encoding"}


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """An answer, whole."""

    status: int
    headers: Headers
    body: bytes


class EmbeddingSource(Protocol):
    """Computes vectors."""

    async def ask(self, exchange: Exchange, body: bytes) -> SourceAnswer:
        """Answer a request's body; raises UpstreamError where there is no answer."""


class ServerSource:
    """A server that speaks the OpenAI API."""

    def __init__(self, upstream: Upstream, url: str, key: str | None) -> None:
        """`url` is the API's base; `key` is sent for whom the tenancy source knows."""
        self._upstream = upstream
        self._url = url
        self._key = key

    async def ask(self, exchange: Exchange, body: bytes) -> SourceAnswer:
        """Send the body on and read the answer."""
        answer = await self._upstream.send(
            Outgoing("POST", f"{self._url}/embeddings", self._headers(exchange, body), body)
        )
        try:
            parts = bytearray()
            async for chunk in answer.chunks():
                parts += chunk
                if len(parts) > MOST_ANSWER_BYTES:
                    raise UpstreamUnreachable("the embedder's answer is far too long")
        finally:
            answer.close()
        return SourceAnswer(answer.status, end_to_end(answer.headers, {b"date"}), bytes(parts))

    def _headers(self, exchange: Exchange, body: bytes) -> Headers:
        headers: Headers = []
        policy = exchange.serving.policy
        if _origin(policy.upstream.url) == _origin(self._url):
            # One provider for both: what clients say to it is for it. Nobody else gets to see that.
            sent = exchange.outgoing(Payload(body, body, is_rewritten=True), plain_answer=True).headers
            headers = [(name, value) for name, value in sent if name not in _OURS]
        if self._key is not None and exchange.asker.authenticated:
            headers = [(name, value) for name, value in headers if name != b"authorization"]
            headers.append((b"authorization", f"Bearer {self._key}".encode()))
        return [
            *headers,
            (b"content-type", b"application/json"),
            (b"accept", b"application/json"),
            (b"accept-encoding", b"identity"),
        ]


class InProcessSource:
    """The built-in model in this process."""

    def __init__(self, service: EmbeddingService) -> None:
        self._service = service

    async def ask(self, exchange: Exchange, body: bytes) -> SourceAnswer:  # noqa: ARG002 - as declared
        """Answer from the model."""
        reply = await self._service.answer(body)
        return SourceAnswer(reply.status, [(b"content-type", b"application/json")], reply.body)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
