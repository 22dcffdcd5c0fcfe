"""One peer's semantic cache in that peer's own environment. Called by `bench.vector_peers`.

    python bench/vector_peer.py NAME STORE_URL STORE_PID look-ups VECTORS.npy QUERIES.npy SIZES ROUNDS
    python bench/vector_peer.py NAME STORE_URL STORE_PID questions FILE.json

The first stores vectors up to each size, looks all queries up, and prints one line of JSON for each size.
The second keeps the answer to the first of each pair of conversations in an empty cache, asks the second, and
prints for which of them that answer came back.
Every peer gets the same embedder: a table from text to vector, or a server of `/v1/embeddings`.
"""
# ruff: noqa: ANN401, D102, SLF001 - the peers' own types are not known where this is checked

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

STORE_BATCH = 500

Conversation = list[dict[str, Any]]
"""Messages of a chat completion."""


def load(module: str) -> Any:
    """Import what only this environment has."""
    return import_module(module)


class Embed(Protocol):
    """The embedder that every peer is given."""

    dimensions: int

    def __call__(self, text: str, **_: Any) -> Any:
        """Return a vector of numpy."""


class Table:
    """Texts are numbers of rows, `q` before those of the queries."""

    def __init__(self, vectors: Any, queries: Any) -> None:
        self.vectors, self.queries = vectors, queries
        self.dimensions: int = vectors.shape[1]

    def __call__(self, text: str, **_: Any) -> Any:
        if text[:1] == "q":
            return self.queries[int(text[1:])]
        return self.vectors[int(text) if text.isdigit() else 0]  # some peers embed a word to learn the length


class Server:
    """A server of `/v1/embeddings`, asked once for each text."""

    def __init__(self, url: str, model: str, dimensions: int) -> None:
        self._url, self._model, self.dimensions = url, model, dimensions
        self._known: dict[str, Any] = {}

    def __call__(self, text: str, **_: Any) -> Any:
        if text not in self._known:
            body = json.dumps({"model": self._model, "input": text}).encode()
            request = urllib.request.Request(  # noqa: S310 - our own loopback address
                f"{self._url}/embeddings", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                vector = json.load(answer)["data"][0]["embedding"]
            self._known[text] = np.asarray(vector, dtype=np.float32)
        return self._known[text]


def last_text(messages: Conversation) -> str:
    """Return the text of the last message, as the peers' own examples take it for the question."""
    content = messages[-1]["content"]
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content or () if part.get("type") == "text")


class GptCache:
    """GPTCache with SQLite and FAISS in a folder."""

    def __init__(self, _: str, embed: Embed, threshold: float | None) -> None:
        self.embed, self.threshold = embed, threshold
        self._open()

    def _open(self) -> None:
        gptcache, manager = load("gptcache"), load("gptcache.manager")
        evaluation = load("gptcache.similarity_evaluation.distance").SearchDistanceEvaluation()
        os.chdir(tempfile.mkdtemp(prefix="gptcache-"))
        self.data = manager.get_data_manager(
            manager.CacheBase("sqlite"),
            manager.VectorBase("faiss", dimension=self.embed.dimensions),
            max_size=10**6,
        )
        # its scale: 4 minus the squared distance, as a part of 4
        told = {} if self.threshold is None else {"similarity_threshold": 1 - 2 * (1 - self.threshold) / 4}
        self.cache = gptcache.Cache()
        self.cache.init(
            pre_embedding_func=load("gptcache.processor.pre").get_prompt,
            embedding_func=lambda text, **_: np.asarray(self.embed(text)),
            data_manager=self.data,
            similarity_evaluation=evaluation,
            config=gptcache.Config(**told),
        )

    async def store(self, rows: range) -> None:
        texts = [str(row) for row in rows]
        vectors = [np.asarray(self.embed(text)) for text in texts]
        self.data.import_data(texts, [f"answer {text}" for text in texts], vectors, [None] * len(texts))

    async def look_up(self, text: str) -> bool:
        return load("gptcache.adapter.api").get(text, cache_obj=self.cache) is not None

    async def keep(self, messages: Conversation) -> None:
        load("gptcache.adapter.api").put(last_text(messages), "the answer", cache_obj=self.cache)

    async def ask(self, messages: Conversation) -> bool:
        return await self.look_up(last_text(messages))

    async def forget(self) -> None:
        self._open()


class RedisVl:
    """RedisVL's SemanticCache, vectors given."""

    def __init__(self, url: str, embed: Embed, threshold: float | None) -> None:
        self.embed = embed
        made = load("redisvl.utils.vectorize").CustomVectorizer(
            embed=lambda text, **_: embed(text).tolist(), dtype="float32"
        )
        told = {} if threshold is None else {"distance_threshold": 1 - threshold}
        self.cache = load("redisvl.extensions.cache.llm").SemanticCache(
            name="bench", redis_url=url, vectorizer=made, overwrite=True, **told
        )

    async def store(self, rows: range) -> None:
        for row in rows:
            self.cache.store(str(row), f"answer {row}", vector=self.embed(str(row)).tolist())

    async def look_up(self, text: str) -> bool:
        return bool(await self.cache.acheck(vector=self.embed(text).tolist()))

    async def keep(self, messages: Conversation) -> None:
        self.cache.store(last_text(messages), "the answer")

    async def ask(self, messages: Conversation) -> bool:
        return bool(await self.cache.acheck(prompt=last_text(messages)))

    async def forget(self) -> None:
        self.cache.clear()


class BetterDb:
    """BetterDB's semantic cache on Valkey."""

    def __init__(self, url: str, embed: Embed, threshold: float | None) -> None:
        library, types = load("betterdb_semantic_cache"), load("betterdb_semantic_cache.types")

        async def vector(text: str) -> list[float]:
            return list(embed(text).tolist())

        told = {} if threshold is None else {"default_threshold": 1 - threshold}
        self.cache = library.SemanticCache(
            types.SemanticCacheOptions(
                client=load("valkey.asyncio").Valkey.from_url(url),
                embed_fn=vector,
                embedding_cache=types.EmbeddingCacheOptions(enabled=False),
                analytics=types.AnalyticsOptions(disabled=True),
                discovery=types.DiscoveryOptions(enabled=False),
                **told,
            )
        )

    async def store(self, rows: range) -> None:
        await self.cache.initialize()
        for row in rows:
            await self.cache.store(str(row), f"answer {row}")

    async def look_up(self, text: str) -> bool:
        return bool((await self.cache.check(text)).hit)

    async def keep(self, messages: Conversation) -> None:
        await self.cache.initialize()
        await self.cache.store(last_text(messages), "the answer")

    async def ask(self, messages: Conversation) -> bool:
        return await self.look_up(last_text(messages))

    async def forget(self) -> None:
        await self.cache.flush()


class LiteLlm:
    """LiteLLM's redis-semantic cache, which takes the text of all messages for the question."""

    def __init__(self, url: str, embed: Embed, threshold: float | None) -> None:
        os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
        kind = load("litellm.caching.redis_semantic_cache").RedisSemanticCache
        # It has no default; 0.8 is what its documentation shows.
        self.cache = kind(redis_url=url, similarity_threshold=threshold or 0.8, embedding_model="none")

        def vector(prompt: str, *_: Any, **__: Any) -> list[float]:
            return list(embed(prompt).tolist())

        async def vector_async(prompt: str, *_: Any, **__: Any) -> list[float]:
            return vector(prompt)

        self.cache._get_embedding, self.cache._get_async_embedding = vector, vector_async

    async def store(self, rows: range) -> None:
        for row in rows:
            await self.keep(self._messages(str(row)))

    async def look_up(self, text: str) -> bool:
        return await self.ask(self._messages(text))

    async def keep(self, messages: Conversation) -> None:
        await self.cache.async_set_cache("key", {"answer": "the answer"}, messages=messages)

    async def ask(self, messages: Conversation) -> bool:
        return await self.cache.async_get_cache("key", messages=messages) is not None

    async def forget(self) -> None:
        self.cache.llmcache.clear()

    @staticmethod
    def _messages(text: str) -> Conversation:
        return [{"role": "user", "content": text}]


PEERS: dict[str, Callable[[str, Embed, float | None], Any]] = {
    "gptcache": GptCache,
    "redisvl": RedisVl,
    "betterdb": BetterDb,
    "litellm": LiteLlm,
}

LOOK_UP_THRESHOLD = 0.93
"""Cosine, where look-ups are timed; each peer is told in its own measure."""


async def time_look_ups(
    name: str, url: str, store_pid: int, table: Table, sizes: list[int], rounds: int
) -> None:
    """Fill and look up, size by size."""
    peer = PEERS[name](url, table, LOOK_UP_THRESHOLD)
    held = 0
    for size in sizes:
        began = time.perf_counter()
        while held < size:
            rows = range(held, min(size, held + STORE_BATCH))
            await peer.store(rows)
            held = rows.stop
        told: dict[str, Any] = {"size": size, "fill_seconds": time.perf_counter() - began, "rounds": []}
        await look_up_all(peer.look_up, 20)
        for _ in range(rounds):
            cpu_before = cpu_seconds(store_pid)
            hits, milliseconds = await look_up_all(peer.look_up, len(table.queries))
            used_ms = 1000 * (cpu_seconds(store_pid) - cpu_before) / len(table.queries)
            told["rounds"].append({"hits": hits, "ms": milliseconds, "cpu_ms": used_ms})
        print(json.dumps(told), flush=True)


async def look_up_all(look_up: Callable[[str], Awaitable[bool]], count: int) -> tuple[int, list[float]]:
    """Look queries up one after the other; returns hits and milliseconds."""
    hits, milliseconds = 0, []
    for number in range(count):
        began = time.perf_counter()
        hits += await look_up(f"q{number}")
        milliseconds.append(1000 * (time.perf_counter() - began))
    return hits, milliseconds


def cpu_seconds(store_pid: int) -> float:
    """Return what this process and the cache's server have used."""
    fields = Path(f"/proc/{store_pid}/stat").read_text().rpartition(") ")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ask_questions(name: str, url: str, document: dict[str, Any]) -> None:
    """Keep the first of each pair in an empty cache, and ask the second."""
    peer = PEERS[name](url, Server(**document["embedder"]), document["threshold"])
    shared: list[bool | None] = []
    for kept, asked in document["pairs"]:
        try:
            await peer.keep(kept)
            shared.append(bool(await peer.ask(asked)))
        except Exception:  # noqa: BLE001 - whatever a peer raises is what it does with this pair
            traceback.print_exc()
            shared.append(None)
        await peer.forget()
    print(json.dumps({"shared": shared}), flush=True)


def main(name: str, url: str, store_pid: str, what: str, *rest: str) -> None:
    """Do what the command line says."""
    if what == "questions":
        asyncio.run(ask_questions(name, url, json.loads(Path(rest[0]).read_text(encoding="utf-8"))))
        return
    vectors, queries, sizes, rounds = rest
    table = Table(np.load(Path(vectors)), np.load(Path(queries)))
    sizes_asked = [int(size) for size in sizes.split(",")]
    asyncio.run(time_look_ups(name, url, int(store_pid), table, sizes_asked, int(rounds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
