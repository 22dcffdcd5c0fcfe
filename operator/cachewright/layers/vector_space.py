"""The space of the semantic keyspace in use: made once, and checked each minute against the embedder.

A space's marker holds what its first maker's embedder made of a probe text. An embedder that now makes
something else of it was replaced behind its name: its vectors must neither be looked up nor stored there, so
until it agrees again whoever asks for the space gets EmbedderMismatch. Asked by the semantic layer.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from cachewright.embedders.protocol import Embedder
from cachewright.errors import CachewrightError, EmbedderMismatch, SpaceNotFound
from cachewright.keys.embedding_identity import PROBE_TEXT
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.background import retrieved
from cachewright.stores.vectors import Hnsw, Marker, Quantization, VectorSpace, VectorStore

PROBE_SECONDS: Final = 60.0
"""Between two checks; questions that a replaced embedder embeds meanwhile are compared all the same."""

LEAST_COSINE: Final = 0.995
"""The same model on another processor stays above; another model, or a retrained one, falls below."""


@dataclass(frozen=True, slots=True)
class SpaceSettings:
    """How spaces are made."""

    cache_id: str
    hnsw: Hnsw = field(default_factory=Hnsw)
    quantization: Quantization = Quantization.NONE
    probe_seconds: float = PROBE_SECONDS


class OpenSpace:
    """The one space in use of one cache."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        settings: SpaceSettings,
        on_mismatch: Callable[[bool], None],
    ) -> None:
        """`on_mismatch` is told when the embedder ceases to agree, and when it agrees again."""
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._on_mismatch = on_mismatch
        self._space: VectorSpace | None = None
        self._marker: Marker | None = None
        self._is_mismatched = False
        self._opening: dict[Keyspace, asyncio.Task[None]] = {}
        self._upkeep: asyncio.Task[None] | None = None

    @property
    def is_mismatched(self) -> bool:
        """True while the embedder does not agree with the space."""
        return self._is_mismatched

    async def of(self, keyspace: Keyspace) -> VectorSpace:
        """Return the space of a keyspace, made if need be; raises EmbedderError and StoreError."""
        if self._space is None or self._space.keyspace != keyspace:
            await asyncio.shield(self._open_once(keyspace))
        if self._is_mismatched or self._space is None or self._space.keyspace != keyspace:
            raise EmbedderMismatch("the embedder no longer gives the vectors that the keyspace was made with")
        return self._space

    def forget(self) -> None:
        """Open the space anew when it is next asked for: it has gone."""
        self._space = self._marker = None

    async def check(self) -> None:
        """Compare the embedder with the space in use; raises EmbedderError and StoreError."""
        space = self._space
        if space is None:
            return
        try:
            self._marker = await self._store.read_marker(space)
        except SpaceNotFound:
            self.forget()
            return
        await self._compare(self._marker)

    def start(self) -> None:
        """Check from time to time until closed."""
        self._upkeep = asyncio.create_task(self._check_for_ever())

    async def aclose(self) -> None:
        """Stop checking."""
        tasks = [task for task in (self._upkeep, *self._opening.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _open_once(self, keyspace: Keyspace) -> asyncio.Task[None]:
        """Open, once for all who wait; goes on when nobody waits any more."""
        task = self._opening.get(keyspace)
        if task is None:
            task = self._opening[keyspace] = _task(self._open(keyspace))
            task.add_done_callback(lambda _: self._opening.pop(keyspace, None))
        return task

    async def _open(self, keyspace: Keyspace) -> None:
        settings = self._settings
        dimensions = self._embedder.identity.dimensions
        space = VectorSpace(settings.cache_id, keyspace, dimensions, settings.hnsw, settings.quantization)
        await self._store.check()  # says what its server lacks, and installs what may be installed
        vector = await self._embed(PROBE_TEXT)
        marker = await self._store.ensure(space, PROBE_TEXT, vector)
        await self._compare(marker, vector if marker.probe_text == PROBE_TEXT else None)
        self._space, self._marker = space, marker

    async def _compare(self, marker: Marker, vector: array[float] | None = None) -> None:
        try:
            now = vector if vector is not None else await self._embed(marker.probe_text)
            differs = cosine(marker.probe_vector, now) < LEAST_COSINE
        except EmbedderMismatch:  # it says so itself
            differs = True
        if differs != self._is_mismatched:
            self._is_mismatched = differs
            self._on_mismatch(differs)

    async def _embed(self, text: str) -> array[float]:
        (embedding,) = await self._embedder.embed([text])
        return embedding.vector

    async def _check_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._settings.probe_seconds)
            try:
                await self.check()
            except CachewrightError:
                continue  # trouble is not disagreement, and look-ups report it


def cosine(one: array[float], other: array[float]) -> float:
    """Return the cosine between two vectors; -1 where they have no angle."""
    norms = math.sqrt(_product(one, one) * _product(other, other)) if len(one) == len(other) else 0.0
    return _product(one, other) / norms if norms > 0 and math.isfinite(norms) else -1.0


def _product(one: array[float], other: array[float]) -> float:
    return sum(map(float.__mul__, one, other))


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.ensure_future(work)
    task.add_done_callback(retrieved)
    return task
