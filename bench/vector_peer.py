"""One peer's semantic cache on given vectors, in that peer's own environment. Called by `bench.vector_peers`.

`python bench/vector_peer.py NAME STORE_URL VECTORS.npy QUERIES.npy SIZES` stores the first vectors up to each
size, looks all queries up, and prints one line of JSON for each size. Every peer gets the same embedder: a
table from text to vector, so that what is measured is its look-up.
"""
# ruff: noqa: ANN401, D102, SLF001 - the peers' own types are not known where this is checked

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

THRESHOLD = 0.93
"""Cosine; each peer is told in its own measure."""

STORE_BATCH = 500


def load(module: str) -> Any:
    """Import what only this environment has."""
    return import_module(module)


class Table:
    """The embedder: texts are numbers of rows, `q` before those of the queries."""

    def __init__(self, vectors: Any, queries: Any) -> None:
        self.vectors, self.queries = vectors, queries

    def __call__(self, text: str, **_: Any) -> Any:
        if text[:1] == "q":
            return self.queries[int(text[1:])]
        return self.vectors[int(text) if text.isdigit() else 0]  # some peers embed a word to learn the length


class GptCache:
    """GPTCache with SQLite and FAISS in a folder."""

    def __init__(self, _: str, table: Table) -> None:
        gptcache, manager = load("gptcache"), load("gptcache.manager")
        evaluation = load("gptcache.similarity_evaluation.distance").SearchDistanceEvaluation()
        os.chdir(tempfile.mkdtemp(prefix="gptcache-"))
        self.table = table
        self.data = manager.get_data_manager(
            manager.CacheBase("sqlite"),
            manager.VectorBase("faiss", dimension=table.vectors.shape[1]),
            max_size=10**6,
        )
        self.cache = gptcache.Cache()
        self.cache.init(
            pre_embedding_func=load("gptcache.processor.pre").get_prompt,
            embedding_func=lambda text, **_: np.asarray(table(text)),
            data_manager=self.data,
            similarity_evaluation=evaluation,
            # its scale: 4 minus the squared distance, as a part of 4
            config=gptcache.Config(similarity_threshold=1 - 2 * (1 - THRESHOLD) / 4),
        )

    async def store(self, rows: range) -> None:
        texts = [str(row) for row in rows]
        vectors = [np.asarray(self.table(text)) for text in texts]
        self.data.import_data(texts, [f"answer {text}" for text in texts], vectors, [None] * len(texts))

    async def look_up(self, text: str) -> bool:
        return load("gptcache.adapter.api").get(text, cache_obj=self.cache) is not None


class RedisVl:
    """RedisVL's SemanticCache, vectors given."""

    def __init__(self, url: str, table: Table) -> None:
        self.table = table
        made = load("redisvl.utils.vectorize").CustomVectorizer(
            embed=lambda text, **_: table(text).tolist(), dtype="float32"
        )
        self.cache = load("redisvl.extensions.cache.llm").SemanticCache(
            name="bench",
            redis_url=url,
            distance_threshold=1 - THRESHOLD,
            vectorizer=made,
            overwrite=True,
        )

    async def store(self, rows: range) -> None:
        for row in rows:
            self.cache.store(str(row), f"answer {row}", vector=self.table(str(row)).tolist())

    async def look_up(self, text: str) -> bool:
        return bool(await self.cache.acheck(vector=self.table(text).tolist()))


class BetterDb:
    """BetterDB's semantic cache on Valkey."""

    def __init__(self, url: str, table: Table) -> None:
        library, types = load("betterdb_semantic_cache"), load("betterdb_semantic_cache.types")

        async def embed(text: str) -> list[float]:
            return list(table(text).tolist())

        self.cache = library.SemanticCache(
            types.SemanticCacheOptions(
                client=load("valkey.asyncio").Valkey.from_url(url),
                embed_fn=embed,
                default_threshold=1 - THRESHOLD,
                embedding_cache=types.EmbeddingCacheOptions(enabled=False),
                analytics=types.AnalyticsOptions(disabled=True),
                discovery=types.DiscoveryOptions(enabled=False),
            )
        )
        self.begun = False

    async def store(self, rows: range) -> None:
        if not self.begun:
            await self.cache.initialize()
            self.begun = True
        for row in rows:
            await self.cache.store(str(row), f"answer {row}")

    async def look_up(self, text: str) -> bool:
        return bool((await self.cache.check(text)).hit)


class LiteLlm:
    """LiteLLM's redis-semantic cache."""

    def __init__(self, url: str, table: Table) -> None:
        os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
        kind = load("litellm.caching.redis_semantic_cache").RedisSemanticCache
        self.cache = kind(redis_url=url, similarity_threshold=THRESHOLD, embedding_model="none")

        def embed(prompt: str, *_: Any, **__: Any) -> list[float]:
            return list(table(prompt).tolist())

        async def embed_async(prompt: str, *_: Any, **__: Any) -> list[float]:
            return embed(prompt)

        self.cache._get_embedding, self.cache._get_async_embedding = embed, embed_async

    async def store(self, rows: range) -> None:
        for row in rows:
            await self.cache.async_set_cache("key", {"answer": row}, messages=self._messages(str(row)))

    async def look_up(self, text: str) -> bool:
        return await self.cache.async_get_cache("key", messages=self._messages(text)) is not None

    @staticmethod
    def _messages(text: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": text}]


PEERS: dict[str, Callable[[str, Table], Any]] = {
    "gptcache": GptCache,
    "redisvl": RedisVl,
    "betterdb": BetterDb,
    "litellm": LiteLlm,
}


async def measure(name: str, url: str, table: Table, sizes: list[int]) -> None:
    """Fill and look up, size by size."""
    made = PEERS[name](url, table)
    peer = await made if inspect.isawaitable(made) else made
    held = 0
    for size in sizes:
        began = time.perf_counter()
        while held < size:
            rows = range(held, min(size, held + STORE_BATCH))
            await peer.store(rows)
            held = rows.stop
        stored_seconds = time.perf_counter() - began
        await look_up_all(peer.look_up, 20)
        hits, seconds = await look_up_all(peer.look_up, len(table.queries))
        print(
            json.dumps({"size": size, "hits": hits, "ms": seconds, "fill_seconds": stored_seconds}),
            flush=True,
        )


async def look_up_all(look_up: Callable[[str], Awaitable[bool]], count: int) -> tuple[int, list[float]]:
    """Look queries up one after the other; returns hits and milliseconds."""
    hits, milliseconds = 0, []
    for number in range(count):
        began = time.perf_counter()
        hits += await look_up(f"q{number}")
        milliseconds.append(1000 * (time.perf_counter() - began))
    return hits, milliseconds


if __name__ == "__main__":
    asyncio.run(
        measure(
            sys.argv[1],
            sys.argv[2],
            Table(np.load(Path(sys.argv[3])), np.load(Path(sys.argv[4]))),
            [int(size) for size in sys.argv[5].split(",")],
        )
    )
