"""A gateway with the semantic layer: an embedding server that a test scripts, and vectors in memory.

Used by the tests of the semantic layer in this folder, in `adversarial` and in the bench.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from cachewright.api.guard import DEFAULT_GUARD
from cachewright.keys.embedding_identity import EmbeddingIdentity
from cachewright.policy.document import EmbedderPolicy, SemanticPolicy
from tests.embedders.server import DIMENSIONS, EmbeddingServer
from tests.gateway.harness import UNHURRIED_SECONDS, Answered, Gateway
from tests.support.redis_servers import RedisServer
from tests.support.vectors import random_vector
from tests.support.waiting import until

BINDING: Final = "semantic binding"
QUESTION: Final = "How do I reset the password of my account?"
PARAPHRASE: Final = "How can I reset the password of my account?"
OTHER: Final = "What is the capital of France?"


def alike(*texts: str) -> Callable[[str | list[int], int], list[float]]:
    """Give these texts one vector, and every other text one of its own."""

    def vector(value: str | list[int], dimensions: int) -> list[float]:
        return list(random_vector("alike" if value in texts else value, dimensions))

    return vector


def one_direction(_value: str | list[int], dimensions: int) -> list[float]:
    """Give every text the same vector, so that every cosine is 1.0."""
    return list(random_vector("one", dimensions))


class SemanticGateway(Gateway):
    """A gateway whose only route has both layers."""

    embeddings: EmbeddingServer
    """Where the embedder is one that the test scripts."""

    def __init__(
        self, folder: Path, redis: RedisServer, upstream_url: str, embeddings: EmbeddingServer | str
    ) -> None:
        """`embeddings` may be the URL of another embedder."""
        super().__init__(folder, redis, upstream_url)
        if isinstance(embeddings, EmbeddingServer):
            self.embeddings = embeddings
        embedder_url = embeddings if isinstance(embeddings, str) else embeddings.url
        self.record = self.record.with_layer("Semantic", "5" * 16, BINDING, "2026-11-30T00:00:00Z")
        self.mount("record/record.json", self.record.to_json())
        route = self.policy.routes[0].model_copy(update={"layers": ("Exact", "Semantic")})
        identity = EmbeddingIdentity("endpoint", "stub", "1", DIMENSIONS, 16_384)
        self.enact(
            routes=(route,),
            embedder=EmbedderPolicy(url=embedder_url, identity=identity, timeout_seconds=UNHURRIED_SECONDS),
            semantic=SemanticPolicy(
                binding=BINDING,
                mode="Serve",
                store="Memory",
                threshold=0.93,
                ttl_seconds=86_400,
                max_entries=1000,
                guard=DEFAULT_GUARD,
                expose_similarity=True,
            ),
        )

    async def ask(self, text: str, system: str = "Be brief.", **how: Any) -> Answered:
        """Ask one question."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        return await self.call(messages=messages, **how)

    async def kept(self, number: int = 1) -> None:
        """Wait until so many answers have been kept in the semantic layer, or were refused."""

        async def is_kept() -> bool:
            stored = await self.metric("cachewright_semantic_stored_total")
            return stored + await self.metric("cachewright_semantic_not_stored_total") >= number

        await until(is_kept)


@asynccontextmanager
async def embedding_server() -> AsyncIterator[EmbeddingServer]:
    """Run the embedding server."""
    server = EmbeddingServer()
    server.vector = alike(QUESTION, PARAPHRASE)
    await server.start()
    try:
        yield server
    finally:
        await server.aclose()
