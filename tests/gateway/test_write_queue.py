"""The write queue: bounded, in the background, drained in time."""

from __future__ import annotations

import asyncio

from cachewright.gateway.metrics import GatewayMetrics
from cachewright.gateway.write_queue import WORKERS, WriteQueue
from cachewright.policy.reasons import RefusalReason


def sample(metrics: GatewayMetrics, name: str, **labels: str) -> float:
    """Return a metric's value."""
    return metrics.registry.get_sample_value(f"cachewright_{name}", labels) or 0.0


async def test_writes_are_carried_out_and_counted() -> None:
    """Those that were refused by their reason."""
    metrics = GatewayMetrics()
    queue = WriteQueue(metrics)
    written: list[int] = []

    def write(number: int) -> None:
        async def run() -> RefusalReason | None:
            written.append(number)
            return RefusalReason.CHANGED if number == 7 else None

        queue.offer(run, 1)

    for number in range(50):
        write(number)
    assert await queue.drain(5) == 0
    assert sorted(written) == list(range(50))
    assert sample(metrics, "stored_total") == 49
    assert sample(metrics, "not_stored_total", reason="changed") == 1
    assert sample(metrics, "write_queue_depth") == 0


async def test_when_full_the_newest_is_dropped() -> None:
    """By number and by bytes; what waits is kept."""
    release = asyncio.Event()
    written: list[str] = []

    def offer(queue: WriteQueue, name: str, size_bytes: int) -> None:
        async def run() -> None:
            await release.wait()
            written.append(name)

        queue.offer(run, size_bytes)

    metrics = GatewayMetrics()
    by_number = WriteQueue(metrics, most_writes=2)
    for name in ("a", "b", "c"):
        offer(by_number, name, 1)
    by_bytes = WriteQueue(metrics, most_bytes=10)
    for name, size in (("d", 6), ("e", 6), ("f", 4)):
        offer(by_bytes, name, size)
    release.set()
    assert [await queue.drain(5) for queue in (by_number, by_bytes)] == [0, 0]
    assert sorted(written) == ["a", "b", "d", "f"]
    assert sample(metrics, "writes_dropped_total") == 2
    assert sample(metrics, "not_stored_total", reason="queue_full") == 2


async def test_draining_ends_at_its_deadline() -> None:
    """A store that hangs cannot hold up the end of the process; what was given up is told."""
    queue = WriteQueue(GatewayMetrics())

    async def hang() -> None:
        await asyncio.sleep(3600)

    for _ in range(WORKERS + 3):
        queue.offer(hang, 1)
    assert await asyncio.wait_for(queue.drain(0.05), 5) == 3


async def test_one_bad_write_stops_no_other() -> None:
    """An unexpected error is one lost entry."""
    metrics = GatewayMetrics()
    queue = WriteQueue(metrics)

    async def fail() -> None:
        raise RuntimeError("a fault of ours")

    async def succeed() -> None:
        pass

    for write in (fail, succeed, fail, succeed):
        queue.offer(write, 1)
    await queue.drain(5)
    assert sample(metrics, "stored_total") == 2
    assert sample(metrics, "not_stored_total", reason="store") == 2
