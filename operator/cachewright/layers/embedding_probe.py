"""The live probe of the embedding layer: it sees when an embedder was replaced behind its name.

A probe text is embedded on start and each minute, and compared with the vector that was kept for it, in the
same tiers as all others. An embedder that now makes something else of it was replaced behind its name: until
it agrees again, its vectors are neither looked up nor stored. Run by the gateway; asked by its embeddings.
"""

from __future__ import annotations

import asyncio
import math
import sys
from array import array
from collections.abc import Callable
from typing import Final

import structlog

from cachewright.embedders.protocol import Embedder
from cachewright.embedders.wire import little_endian
from cachewright.errors import EmbedderError
from cachewright.keys.digest import tenant_tag
from cachewright.keys.embedding_identity import PROBE_TEXT
from cachewright.layers.embedding import Computed, EmbeddingLayer, Held, Place
from cachewright.layers.vector_space import LEAST_COSINE, PROBE_SECONDS

PROBE_TENANT: Final = b"\0probe"
"""Whose the probe's vector is; no header and no API key can name it."""

_log = structlog.get_logger(__name__)


class EmbeddingProbe:
    """Compares one embedder with one layer."""

    def __init__(
        self,
        embedder: Embedder,
        layer: EmbeddingLayer,
        key: bytes,
        on_mismatch: Callable[[bool], None],
    ) -> None:
        """`on_mismatch` is told when the embedder ceases to agree, and when it agrees again."""
        self._embedder = embedder
        self._layer = layer
        self._tag = tenant_tag(key, PROBE_TENANT)
        self._on_mismatch = on_mismatch
        self._task: asyncio.Task[None] | None = None
        self.is_trusted = True
        """False from the first check that failed to the first that succeeded; trouble changes nothing."""

    def start(self) -> None:
        """Check now and from time to time."""
        self._task = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        """Check no more."""
        if self._task is not None:
            self._task.cancel()

    async def aclose(self) -> None:
        """Check no more, and return once nothing runs any more."""
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def check(self) -> None:
        """Compare once; raises EmbedderError where the embedder gives nothing."""
        (now,) = await self._embedder.embed([PROBE_TEXT])
        (kept,) = await self._layer.look_up(self._tag, [PROBE_TEXT], {})
        if isinstance(kept, Held):
            self._judge(_cosine(now.vector, kept.vector) >= LEAST_COSINE)
        elif not isinstance(kept, Place):
            return  # the store or the record is in trouble, and nothing is looked up anyhow
        if self.is_trusted:
            # Each time anew, so that it outlives whatever is stored beside it.
            place = kept.place if isinstance(kept, Held) else kept
            vector = kept.vector if isinstance(kept, Held) else little_endian(now.vector).tobytes()
            await self._layer.write([Computed(place, vector, now.n_tokens)])

    def _judge(self, agrees: bool) -> None:
        if agrees != self.is_trusted:
            self.is_trusted = agrees
            self._on_mismatch(not agrees)

    async def _run(self) -> None:
        while True:
            try:
                await self.check()
            except EmbedderError as e:
                _log.debug("embedder_not_probed", error=str(e))
            except Exception:  # noqa: BLE001 - the edge of a task that must live as long as its layer
                _log.exception("probe_failed")
            await asyncio.sleep(PROBE_SECONDS)


def _cosine(now: array[float], kept: bytes) -> float:
    before = array("f", kept)
    if sys.byteorder == "big":
        before.byteswap()
    if len(before) != len(now):
        return 0.0
    lengths = math.hypot(*now) * math.hypot(*before)
    return sum(map(float.__mul__, now, before)) / lengths if lengths else 0.0
