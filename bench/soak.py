"""The soak: mixed requests by the hundred thousand, with a failure each second, and what must hold meanwhile.

`python -m bench.soak`; the tests run the same at a small size. Nothing may be lost or crossed, and memory and
connections of the gateway's process must stay flat.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import psutil

from bench.contenders import Contender, run_ours
from bench.load import Connection, Timing, wire
from bench.processes import free_port, running
from bench.traffic import Ask, Fate, draw, judge
from tests.support.redis_servers import RedisServer, run_redis

CONNECTIONS: Final = 32
GIVE_UP_SECONDS: Final = 30.0
EXTRA_FACTOR: Final = 10
SHORTEST_PEACE_SECONDS: Final = 0.1

SEED: Final = 20261130

SPARE_RSS_BYTES: Final = 24_000_000
"""How much memory may grow between the second fifth of the run, when all caches are warm, and its last."""

SPARE_DESCRIPTORS: Final = 24

CALM: Final[dict[str, float]] = {
    "latency_seconds": 0.002,
    "event_seconds": 0.0,
    "failing": 0.0,
    "cutting": 0.0,
}


@dataclass
class Tally:
    """What has happened so far."""

    fates: Counter[Fate] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    rss_bytes: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    slowest_seconds: float = 0.0
    examples: list[str] = field(default_factory=list)
    """Of what must not happen."""

    @property
    def requests(self) -> int:
        """How many requests have come to an end."""
        return self.fates.total()

    def problems(self) -> list[str]:
        """Say what did not hold; empty when all did."""
        found = [
            f"{self.fates[fate]} answers {fate}" for fate in (Fate.LOST, Fate.CROSSED) if self.fates[fate]
        ]
        grown = _growth(self.rss_bytes)
        if grown > SPARE_RSS_BYTES:
            found.append(f"memory grew by {grown / 1e6:.0f} MB")
        more = _growth(self.descriptors)
        if more > SPARE_DESCRIPTORS:
            found.append(f"{more} more file descriptors are open")
        if not self.fates[Fate.ANSWERED]:
            found.append("nothing was answered")
        return [*found, *self.examples]


def _growth(samples: list[int]) -> int:
    """Compare the highest of the last fifth with the highest of the second fifth."""
    fifth = len(samples) // 5
    return max(samples[-fifth:]) - max(samples[fifth : 2 * fifth]) if fifth else 0


class Soak:
    """One run."""

    def __init__(self, gateway: Contender, upstream_url: str, store: RedisServer, requests: int) -> None:
        self.tally = Tally()
        self._gateway = gateway
        self._upstream_url = upstream_url
        self._store = store
        self._left = requests
        self._extra = EXTRA_FACTOR * requests
        """How many more may be sent while some trouble was not had yet."""
        self._dice = random.Random(SEED)  # noqa: S311 - a trace
        self._troubles = (
            self._freeze_store,
            self._fail_upstream,
            self._restart_store,
            self._cut_upstream,
            self._slow_upstream,
        )
        self._trouble = 0
        """Counts the times at which the upstream began or ceased to misbehave; odd while it does."""

    async def run(self, say: Callable[[str], None], period_seconds: float = 1.0) -> Tally:
        """Send everything, with one trouble after the other, and return what happened."""
        await self._conduct(filling=800, **CALM)
        others = [
            asyncio.create_task(self._trouble_everything(period_seconds)),
            asyncio.create_task(self._watch(say)),
        ]
        try:
            await asyncio.gather(*(self._ask_on() for _ in range(CONNECTIONS)))
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self._store.thaw()
        return self.tally

    async def _ask_on(self) -> None:
        connection = await Connection.open(self._gateway.url)
        while self._may_go_on():
            ask = draw(self._dice)
            if ask.leaves:
                await self._leave(ask)
                continue
            before = self._trouble
            timing = await connection.ask(wire(self._gateway, ask.body, ask.tenant), GIVE_UP_SECONDS)
            troubled = before % 2 == 1 or before != self._trouble
            self._count(ask, timing, judge(ask, timing, troubled))
            if timing.status == 0:
                connection = await Connection.open(self._gateway.url)
        connection.close()

    def _may_go_on(self) -> bool:
        """Take the right to one more request: as many as were asked for, and until each trouble was had."""
        if self._left > 0:
            self._left -= 1
            return True
        self._extra -= 1
        return len(self.tally.troubles) < len(self._troubles) and self._extra > 0

    async def _leave(self, ask: Ask) -> None:
        connection = await Connection.open(self._gateway.url)
        asking = asyncio.create_task(connection.ask(wire(self._gateway, ask.body, ask.tenant)))
        await asyncio.sleep(self._dice.random() * 0.01)
        connection.abort()
        await asking
        self.tally.fates[Fate.LEFT] += 1

    def _count(self, ask: Ask, timing: Timing, fate: Fate) -> None:
        tally = self.tally
        tally.fates[fate] += 1
        tally.slowest_seconds = max(tally.slowest_seconds, timing.total_seconds)
        if fate in (Fate.LOST, Fate.CROSSED) and len(tally.examples) < 5:
            kind = "stream" if ask.streamed else "whole"
            tally.examples.append(
                f"{fate}: {ask.tenant}, {ask.text}, {kind}: {timing.status} {timing.body[:200]!r}"
            )

    async def _trouble_everything(self, period_seconds: float) -> None:
        """Begin a trouble every period, or as soon as the one before has ended."""
        while True:
            for trouble in self._troubles:
                began = time.monotonic()
                await trouble()
                self.tally.troubles[trouble.__name__.strip("_")] += 1
                await asyncio.sleep(max(SHORTEST_PEACE_SECONDS, began + period_seconds - time.monotonic()))

    async def _freeze_store(self) -> None:
        self._store.freeze()
        try:
            await asyncio.sleep(0.4)
        finally:
            self._store.thaw()

    async def _restart_store(self) -> None:
        await asyncio.to_thread(self._store.restart)

    async def _fail_upstream(self) -> None:
        await self._misbehave(failing=0.3)

    async def _cut_upstream(self) -> None:
        await self._misbehave(cutting=0.3)

    async def _slow_upstream(self) -> None:
        await self._misbehave(latency_seconds=0.1)

    async def _misbehave(self, **changes: float) -> None:
        self._trouble += 1
        await self._conduct(**changes)
        await asyncio.sleep(0.5)
        await self._conduct(**CALM)
        # Whatever the upstream began in that time may still be under way.
        await asyncio.sleep(0.3)
        self._trouble += 1

    async def _watch(self, say: Callable[[str], None]) -> None:
        process = self._gateway.process
        started = told = time.monotonic()
        while True:
            self.tally.rss_bytes.append(process.memory_info().rss)
            self.tally.descriptors.append(process.num_fds())
            if time.monotonic() - told >= 5:
                told = time.monotonic()
                rate = self.tally.requests / (told - started)
                rss = self.tally.rss_bytes[-1] / 1e6
                say(f"{self.tally.requests:,} requests, {rate:,.0f}/s, {rss:.0f} MB")
            await asyncio.sleep(0.25)

    async def _conduct(self, **changes: float) -> Any:  # noqa: ANN401 - JSON
        connection = await Connection.open(self._upstream_url)
        body = orjson.dumps(
            {name: int(value) if name == "filling" else value for name, value in changes.items()}
        )
        head = f"POST /bench/conduct HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        timing = await connection.ask(head.encode() + body)
        connection.close()
        return orjson.loads(timing.body)


def soak(requests: int, say: Callable[[str], None], period_seconds: float = 1.0) -> Tally:
    """Start everything, run, and end everything."""
    with run_redis("redis") as store, tempfile.TemporaryDirectory(prefix="cachewright-soak-") as name:
        folder = Path(name)
        upstream_url = f"http://127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "bench.upstream", "--port", upstream_url.rpartition(":")[2]]
        with (
            running(command, folder / "upstream.log", f"{upstream_url}/bench/calls"),
            run_ours(folder / "gateway", store.cache_id, store.url("gateway"), upstream_url) as gateway,
        ):
            return asyncio.run(Soak(gateway, upstream_url, store, requests).run(say, period_seconds))


def report(tally: Tally, seconds: float) -> str:
    """Render the outcome as a few lines."""
    fates = ", ".join(f"{count:,} {fate}" for fate, count in sorted(tally.fates.items()))
    troubles = ", ".join(f"{count} x {name}" for name, count in sorted(tally.troubles.items()))
    rss = f"{min(tally.rss_bytes) / 1e6:.0f} to {max(tally.rss_bytes) / 1e6:.0f} MB"
    return "\n".join(
        [
            f"requests     {tally.requests:,} in {seconds:.0f} s: {fates}",
            f"troubles     {troubles}",
            f"slowest      {tally.slowest_seconds:.1f} s",
            f"memory       {rss}, growth once warm {_growth(tally.rss_bytes) / 1e6:.1f} MB",
            f"descriptors  {min(tally.descriptors)} to {max(tally.descriptors)}",
            f"load         {psutil.getloadavg()[0]:.1f}",
            *(f"PROBLEM      {problem}" for problem in tally.problems()),
        ]
    )


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000, help="default: 200,000")
    asked = parser.parse_args()
    began = time.monotonic()
    tally = soak(asked.requests, lambda text: print(text, file=sys.stderr, flush=True))
    print(report(tally, time.monotonic() - began))
    return 1 if tally.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
