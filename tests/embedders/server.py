"""A server of `/v1/embeddings` on loopback for tests: vectors by the text itself, and any trouble wished.

Not a model: it only has to tell texts apart, to count tokens (one for each word) and to misbehave on request.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from cachewright.embedders.wire import base64_of, floats_of

DIMENSIONS = 8
WINDOW = 16


def vector_of(value: str | list[int], dimensions: int = DIMENSIONS) -> list[float]:
    """Make up a vector for a text or its tokens; another one for every other value."""
    digest = hashlib.sha512(repr(value).encode()).digest()
    return list(floats_of([byte / 7 + 1 for byte in digest[:dimensions]]))


class EmbeddingServer:
    """Answers as wished, and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.dimensions = DIMENSIONS
        self.status = 200
        self.cuts_at: int | None = None
        """Cut longer texts to as many words, silently."""
        self.knows_dimensions = True
        self.vector: Callable[[str | list[int], int], list[float]] = vector_of
        """What a text or its tokens become."""
        self.change: Callable[[dict[str, Any]], Any] = lambda document: document
        """Last word on an answer."""
        self.hold: asyncio.Event | None = None
        """Wait for it before answering."""

    async def start(self) -> None:
        """Listen on any free port."""
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_post("/v1/embeddings", self._answer)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port: int = self._runner.addresses[0][1]

    @property
    def url(self) -> str:
        """Base URL of the API."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def aclose(self) -> None:
        """Stop."""
        if self.hold is not None:
            self.hold.set()
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        asked = orjson.loads(await request.read())
        self.requests.append(asked)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.hold is not None:
            await self.hold.wait()
        if self.status != 200:
            return web.json_response({"error": {"message": "as wished"}}, status=self.status)
        if "dimensions" in asked and not self.knows_dimensions:
            return web.json_response({"error": {"message": "dimensions are not supported"}}, status=400)
        return web.Response(
            body=orjson.dumps(self.change(self._document(asked))), content_type="application/json"
        )

    def _document(self, asked: dict[str, Any]) -> dict[str, Any]:
        inputs = asked["input"]
        if isinstance(inputs, str) or (inputs and isinstance(inputs[0], int)):
            inputs = [inputs]
        dimensions = asked.get("dimensions", self.dimensions)
        items, tokens = [], 0
        for index, value in enumerate(inputs):
            words = value.split() if isinstance(value, str) else value
            if self.cuts_at is not None:
                words = words[: self.cuts_at]
            tokens += len(words)
            vector = self.vector(value, dimensions)
            shown = base64_of(floats_of(vector)) if asked.get("encoding_format") == "base64" else vector
            items.append({"object": "embedding", "index": index, "embedding": shown})
        return {
            "object": "list",
            "data": items,
            "model": asked["model"],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
