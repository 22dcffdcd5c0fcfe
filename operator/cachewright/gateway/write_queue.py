"""The write queue: answers on their way into the store, off every request's path.

Bounded in number and bytes; when full it drops the newest and counts it, since a lost write is only a miss.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from cachewright.gateway.metrics import GatewayMetrics
from cachewright.policy.reasons import RefusalReason, SemanticRefusal

MOST_WRITES: Final = 1024
MOST_BYTES: Final = 32 * 1024 * 1024
WORKERS: Final = 4

Write = Callable[[], Awaitable[RefusalReason | SemanticRefusal | None]]

_log = structlog.get_logger(__name__)


class WriteQueue:
    """Writes waiting, and the tasks that carry them out."""

    def __init__(
        self,
        metrics: GatewayMetrics,
        most_writes: int = MOST_WRITES,
        most_bytes: int = MOST_BYTES,
        *,
        is_semantic: bool = False,
    ) -> None:
        """With `is_semantic` writes count as the semantic layer's; it has a queue of its own.

        Its writes wait for an embedder, and must not hold up those that flights wait for.
        """
        self._metrics = metrics
        self._stored = metrics.semantic_stored if is_semantic else metrics.stored
        self._not_stored = metrics.semantic_not_stored if is_semantic else metrics.not_stored
        self._depth = metrics.semantic_write_queue if is_semantic else metrics.write_queue
        self._most_writes = most_writes
        self._most_bytes = most_bytes
        self._waiting: deque[tuple[Write, int]] = deque()
        self._bytes = 0
        self._workers: set[asyncio.Task[None]] = set()

    def offer(self, write: Write, size_bytes: int) -> bool:
        """Carry out a write soon, or drop it if too many wait; tells whether it will be carried out."""
        if len(self._waiting) >= self._most_writes or self._bytes + size_bytes > self._most_bytes:
            self._metrics.writes_dropped.inc()
            self._not_stored.labels(RefusalReason.QUEUE_FULL).inc()
            return False
        self._waiting.append((write, size_bytes))
        self._bytes += size_bytes
        self._depth.set(len(self._waiting))
        if len(self._workers) < WORKERS:
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        return True

    async def drain(self, deadline_seconds: float) -> int:
        """Wait until all is written, but no longer; returns how many writes were given up."""
        workers = list(self._workers)
        if workers:
            await asyncio.wait(workers, timeout=deadline_seconds)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return len(self._waiting)

    async def _work(self) -> None:
        while self._waiting:
            write, size_bytes = self._waiting.popleft()
            self._depth.set(len(self._waiting))
            try:
                refused = await write()
            except Exception:  # noqa: BLE001 - the edge of a task; one bad write must not stop the others
                _log.exception("write_failed")
                refused = RefusalReason.STORE
            finally:
                self._bytes -= size_bytes
            if refused is None:
                self._stored.inc()
            else:
                self._not_stored.labels(refused).inc()
