"""Probing: this gateway tries its layers now and then, and leaves in Redis what came of it, for the operator.

A task of the process: once a minute while all is well, every 5 s while something is not, and at once when the
operator asks for it, a store is left alone or used again, or the configuration is another one. Of several
gateways the one in trouble is heard: one that is well does not write over what another has just found wrong.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from cachewright.embedders.protocol import Embedder
from cachewright.errors import CachewrightError, EmbedderError, EmbedderMismatch, StoreError
from cachewright.gateway.serving import Serving
from cachewright.keys.embedding import EMBEDDING
from cachewright.keys.embedding_identity import PROBE_TEXT
from cachewright.keys.record import Record
from cachewright.layers.exact import LAYER as EXACT
from cachewright.layers.probe import probe_cold, probe_entries, probe_vectors
from cachewright.layers.similar import LAYER as SEMANTIC
from cachewright.layers.vector_space import OpenSpace
from cachewright.stores.embeddings import EmbeddingSpace, EmbeddingStore
from cachewright.stores.probes import ProbeReport, ProbeState
from cachewright.stores.protocols import CacheStore
from cachewright.stores.vectors import VectorStore

LOOK_SECONDS: Final = 1.0
"""Between two looks whether there is something to try."""

TURN_SECONDS: Final = 5.0
"""Between two tries while a layer is in trouble."""

WELL_SECONDS: Final = 60.0
"""Between two tries while all is well."""

PROBE_SECONDS: Final = 30.0
"""Longest wait for one layer: each call of a store is bounded itself, and a try makes a few of them."""

HEARD_SECONDS: Final = 30.0
"""How long the word of a gateway in trouble stands against those of others."""

MOST_PROBLEM: Final = 300

_log = structlog.get_logger(__name__)

Probe = Callable[[Record], Awaitable[None]]
"""Tries one layer under a record. Raises StoreError and EmbedderError."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the layers of a configuration consist of, as far as it can be tried."""

    serving: Serving
    vectors: VectorStore | None
    space: OpenSpace | None
    cold: EmbeddingStore | None


def probes_of(parts: Parts) -> dict[str, Probe]:
    """Return how each layer of a configuration is tried."""
    serving, store = parts.serving, parts.serving.store
    probes: dict[str, Probe] = {}
    if store is None:
        return probes
    if serving.exact is not None:
        probes[EXACT] = lambda record: probe_entries(store, record, EXACT, serving.digest_key)
    if serving.semantics is not None:
        probes[SEMANTIC] = lambda record: _probe_semantic(parts, record)
    if serving.embeddings is not None:
        probes[EMBEDDING] = lambda record: _probe_embedding(parts, store, record)
    return probes


class ProbeDuty:
    """Tries the layers of the configuration in use under the best record known."""

    def __init__(self, current: Callable[[], tuple[Parts, Record] | None]) -> None:
        """`current` gives what is in use; None while there is nothing to try."""
        self._current = current
        self._by = secrets.token_hex(8)
        self._tried: Serving | None = None
        self._request = ""
        """Of the operator, as last read."""
        self._connections_changed = False
        self._next = 0.0
        self._told: dict[str, ProbeState] = {}

    async def run(self) -> None:
        """Try until cancelled."""
        while True:
            try:
                await self.take_turn()
            except Exception:  # noqa: BLE001 - the edge of a task that must live as long as the process
                _log.exception("probing_failed")
            await asyncio.sleep(LOOK_SECONDS)

    def connections_changed(self) -> None:
        """Have everything tried in the next turn: a store was left alone, or is used again."""
        self._connections_changed = True

    async def take_turn(self) -> None:
        """Try what is due."""
        current = self._current()
        if current is None:
            return
        parts, record = current
        request = await self._read_request(parts.serving.store, record.cache_id)
        is_new = self._tried is not parts.serving or request != self._request or self._connections_changed
        if not is_new and time.monotonic() < self._next:
            return
        self._tried, self._request, self._connections_changed = parts.serving, request, False
        well = True
        for layer, probe in probes_of(parts).items():
            if layer in record.layers:
                report = await self._try(probe, record)
                well = well and report.state is ProbeState.WELL
                await self._tell(parts.serving.store, record.cache_id, layer, report)
        # What was just told to be back may need a moment, or old connections to it one more failure.
        again_seconds = LOOK_SECONDS if is_new else TURN_SECONDS
        self._next = time.monotonic() + (WELL_SECONDS if well else again_seconds)

    async def _read_request(self, store: CacheStore | None, cache_id: str) -> str:
        if store is None:
            return self._request
        try:
            return await store.read_probe_request(cache_id)
        except StoreError:
            return self._request

    async def _try(self, probe: Probe, record: Record) -> ProbeReport:
        state, problem = ProbeState.WELL, ""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await probe(record)
        except TimeoutError:
            state, problem = ProbeState.STORE, f"no end within {PROBE_SECONDS:g} s"
        except EmbedderMismatch as e:
            state, problem = ProbeState.MISMATCH, str(e)
        except EmbedderError as e:
            state, problem = ProbeState.EMBEDDER, str(e)
        except CachewrightError as e:
            state, problem = ProbeState.STORE, str(e)
        return ProbeReport(state, problem[:MOST_PROBLEM], self._by, time.time(), self._request)

    async def _tell(self, store: CacheStore | None, cache_id: str, layer: str, report: ProbeReport) -> None:
        if report.state is not self._told.get(layer, ProbeState.WELL):
            _log.warning("layer_probed", layer=layer, state=report.state.value, problem=report.problem)
        self._told[layer] = report.state
        if store is None:
            return
        try:
            if report.state is ProbeState.WELL:
                last = (await store.read_probes(cache_id, [layer])).get(layer)
                if last is not None and _stands_against(last, report):
                    return
            await store.write_probe(cache_id, layer, report)
        except StoreError:
            return  # the operator cannot read it either


def _stands_against(last: ProbeReport, report: ProbeReport) -> bool:
    is_another = last.by != report.by and last.state is not ProbeState.WELL
    return is_another and last.request == report.request and abs(report.at - last.at) < HEARD_SECONDS


async def _probe_semantic(parts: Parts, record: Record) -> None:
    if parts.space is None or parts.vectors is None:
        return
    await parts.space.check()
    space = await parts.space.of(record.layers[SEMANTIC].keyspace)
    await probe_vectors(parts.vectors, space, parts.serving.digest_key, time.time())


async def _probe_embedding(parts: Parts, store: CacheStore, record: Record) -> None:
    serving = parts.serving
    if serving.embedder is not None:
        await _probe_embedder(serving.embedder)
    if serving.embeddings is not None and not serving.embeddings.is_trusted():
        raise EmbedderMismatch("the embedder no longer gives the vectors that are kept")
    await probe_entries(store, record, EMBEDDING, serving.digest_key)
    if parts.cold is not None:
        keyspace = record.layers[EMBEDDING].keyspace
        await probe_cold(parts.cold, EmbeddingSpace(record.cache_id, keyspace), serving.digest_key)


async def _probe_embedder(embedder: Embedder) -> None:
    await embedder.embed([PROBE_TEXT])
