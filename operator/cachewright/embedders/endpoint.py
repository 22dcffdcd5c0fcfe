"""An embedder behind a URL: a server that speaks the OpenAI API, such as vLLM, TEI or a provider.

From texts to checked vectors over pooled connections. The declared window is enforced here, because servers
may cut a text silently: what may be longer is asked about alone, and has no vector once the server counts as
many tokens as the window holds. Opened by the gateway and by `cachewright calibrate`.
"""

from __future__ import annotations

import asyncio
import io
import ssl
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import orjson

from cachewright.embedders.protocol import Embedding
from cachewright.embedders.wire import WireAnswer, read_answer
from cachewright.errors import EmbedderOverloaded, EmbedderRefused, EmbedderUnavailable
from cachewright.keys.embedding_identity import EmbeddingIdentity

MOST_TEXTS: Final = 256
"""Texts in one call; more than any common server refuses to take."""

MOST_CALLS: Final = 32
"""Calls at a time."""

MOST_WAITING: Final = 1024
"""Calls that may wait for their turn."""

KEEP_ALIVE_SECONDS: Final = 4.0
"""Shorter than the 5 s after which common servers close idle connections."""

SPECIAL_TOKENS: Final = 8
"""At most as many does a model add to a text; every other token stands for one byte at least."""

_TRYING_AGAIN_HELPS: Final = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where an embedder is, and what is asked of it."""

    url: str
    """Base URL of the API, with its path prefix and no trailing slash, such as `http://tei.ml:8080/v1`."""
    identity: EmbeddingIdentity
    timeout_seconds: float = 10.0
    """Longest wait for one call, turn in the queue included."""
    api_key: str | None = field(default=None, repr=False)
    """Sent as bearer token."""


class EndpointEmbedder:
    """One server; to be made inside a running loop."""

    def __init__(self, settings: EndpointSettings, tls: ssl.SSLContext | None = None) -> None:
        """`tls` replaces the system's authorities."""
        self._settings = settings
        self._asks_dimensions = False
        self._turns = asyncio.Semaphore(MOST_CALLS)
        self._waiting = 0
        headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=MOST_CALLS, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=True if tls is None else tls
            ),
            headers={"Content-Type": "application/json", **headers},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    @property
    def identity(self) -> EmbeddingIdentity:
        """The space of the vectors."""
        return self._settings.identity

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts, a few at a time where they are many; raises EmbedderError."""
        window = self.identity.max_tokens
        results: list[Embedding | None] = [None] * len(texts)
        surely_fit = [at for at, text in enumerate(texts) if _most_tokens(text) <= window]
        for start in range(0, len(surely_fit), MOST_TEXTS):
            places = surely_fit[start : start + MOST_TEXTS]
            answer = await self._call([texts[at] for at in places])
            for at, embedding in zip(places, answer.embeddings, strict=True):
                results[at] = _counted(embedding, answer.prompt_tokens if len(places) == 1 else 0)
        for at, text in enumerate(texts):
            if results[at] is None:
                results[at] = await self._embed_long(text)
        return [embedding for embedding in results if embedding is not None]

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def _embed_long(self, text: str) -> Embedding:
        """Embed a text that may be longer than the window, by what the server counts."""
        try:
            answer = await self._call([text])
        except _TooLong:
            return Embedding(array("f"), beyond_window=True)
        embedding = _counted(answer.embeddings[0], answer.prompt_tokens)
        # As many tokens as the window holds may be what a server left after cutting.
        if 0 < embedding.n_tokens < self.identity.max_tokens:
            return embedding
        return Embedding(array("f"), embedding.n_tokens, beyond_window=True)

    async def _call(self, texts: list[str]) -> WireAnswer:
        dimensions = self.identity.dimensions
        asked = self._asks_dimensions
        body = await self._post(texts, asks_dimensions=asked)
        try:
            return read_answer(body, len(texts), dimensions)
        except EmbedderRefused:
            if asked:
                raise
            # Models that can give shorter vectors do so when they are asked; others refuse the question.
            answer = read_answer(await self._post(texts, asks_dimensions=True), len(texts), dimensions)
            self._asks_dimensions = True
            return answer

    async def _post(self, texts: list[str], *, asks_dimensions: bool) -> bytes:
        document: dict[str, Any] = {
            "model": self.identity.model,
            "input": texts,
            "encoding_format": "float",
        }
        if asks_dimensions:
            document["dimensions"] = self.identity.dimensions
        if self._waiting >= MOST_WAITING:
            raise EmbedderOverloaded(f"{self._waiting} calls wait for the embedder already")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._settings.timeout_seconds), self._turns:
                return await self._exchange(orjson.dumps(document), len(texts))
        except TimeoutError as e:
            raise EmbedderUnavailable("the embedder did not answer in time") from e
        except (aiohttp.ClientError, OSError, ValueError) as e:
            raise EmbedderUnavailable(f"the embedder cannot be reached: {type(e).__name__}") from e
        finally:
            self._waiting -= 1

    async def _exchange(self, body: bytes, count: int) -> bytes:
        url = f"{self._settings.url}/embeddings"
        async with self._session.post(url, data=io.BytesIO(body), allow_redirects=False) as response:
            limit_bytes = 4096 + count * (self.identity.dimensions * 32 + 4096)
            parts = bytearray()
            async for part in response.content.iter_any():
                parts += part
                if len(parts) > limit_bytes:
                    response.close()
                    raise EmbedderRefused("the embedder's answer is far too long")
        if response.status == 200:
            return bytes(parts)
        if response.status >= 500 or response.status in _TRYING_AGAIN_HELPS:
            raise EmbedderUnavailable(f"the embedder answered with status {response.status}")
        if count == 1 and response.status in (400, 413, 422):
            raise _TooLong(f"the embedder answered with status {response.status}")
        raise EmbedderRefused(f"the embedder answered with status {response.status}")


class _TooLong(EmbedderRefused):
    """A single text was refused; of one that may be too long, that is the reason."""


def _most_tokens(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + SPECIAL_TOKENS


def _counted(embedding: Embedding, prompt_tokens: int) -> Embedding:
    if embedding.n_tokens or not prompt_tokens:
        return embedding
    return Embedding(embedding.vector, prompt_tokens, embedding.has_unknown)
