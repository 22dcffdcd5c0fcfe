"""Look-ups of similar questions beside the peers: `python -m bench.vectors` writes its part of the document.

Our stores are measured through the same Protocol that the semantic layer uses; peers through their own
libraries (`bench.vector_peer`). The embedder is left out on both sides: vectors are given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from bench.processes import weigh
from bench.vector_peers import PEERS, run_search_redis, time_peer
from bench.vector_report import Figure, Round, render, write
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import VectorStore
from tests.support.crowds import Crowd, fill, find
from tests.support.postgres_servers import run_postgres
from tests.support.qdrant_servers import QdrantServer, given_server, run_qdrant
from tests.support.vectors import VectorSubject

DIMENSIONS: Final = 384
SIZES: Final = (1000, 10_000, 50_000)
OTHERS: Final = 100_000
QUERIES: Final = 200
ROUNDS: Final = 5

EXAMPLES = """\
examples:
  python -m bench.vectors                   # everything, into docs/benchmarks.md; long
  python -m bench.vectors --quick           # small, printed only
  python -m bench.vectors --without-peers   # our stores alone, printed only
"""


@dataclass
class Measurement:
    """What is measured, and what came out."""

    sizes: tuple[int, ...]
    others: int
    rounds: int
    figures: list[Figure] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    file: Path | None = None
    """Where figures are kept as they come, since a whole measurement takes long."""

    def add(self, figure: Figure) -> None:
        """Keep a figure."""
        self.figures.append(figure)
        if self.file is not None:
            self.file.write_text(json.dumps([asdict(one) for one in self.figures]))

    def say(self, text: str) -> None:
        """Tell how far it is."""
        self.loads.append(psutil.getloadavg()[0])
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Ours:
    """One of our stores."""

    title: str
    store: VectorStore
    server: psutil.Process | None
    """None: there is none, or it runs elsewhere."""

    def cpu_seconds(self) -> float:
        """Return what this process and the store's server have used."""
        return time.process_time() + (weigh(self.server).cpu_seconds if self.server else 0.0)


async def measure_ours(measurement: Measurement, ours: Ours) -> None:
    """Measure one of our stores at every size, and in a crowd."""
    title, store = ours.title, ours.store
    await store.check()
    for size in measurement.sizes:
        measurement.say(f"{title}: {size:,} entries of one partition")
        crowd = Crowd(0, own=size, dimensions=DIMENSIONS)
        await _measure_crowd(measurement, ours, "alone", size, crowd)
    measurement.say(f"{title}: 10 entries among {measurement.others:,} of others")
    crowd = Crowd(measurement.others, dimensions=DIMENSIONS)
    await _measure_crowd(measurement, ours, "crowd", measurement.others, crowd)
    await store.aclose()


async def _measure_crowd(measurement: Measurement, ours: Ours, kind: str, size: int, crowd: Crowd) -> None:
    store = ours.store
    subject = VectorSubject(store, dimensions=DIMENSIONS)
    space = await subject.opened()
    began = time.perf_counter()
    await fill(store, space, crowd)
    filled_seconds = time.perf_counter() - began
    await find(store, space, crowd, 20)
    rounds = []
    for _ in range(measurement.rounds):
        cpu_before = ours.cpu_seconds()
        finding = await find(store, space, crowd, QUERIES)
        cpu_ms = 1000 * (ours.cpu_seconds() - cpu_before) / QUERIES
        rounds.append(Round(finding.recall, [1000 * one for one in finding.seconds], cpu_ms))
    measurement.add(Figure(ours.title, kind, size, rounds, filled_seconds))
    await store.drop(subject.cache_id, space.keyspace)


def measure_peers(measurement: Measurement, folder: Path) -> None:
    """Measure the peers at every size, on vectors made like ours."""
    rng = np.random.default_rng(20261130)
    crowd = Crowd(0, own=max(measurement.sizes), dimensions=DIMENSIONS)
    chosen = rng.integers(min(measurement.sizes), size=QUERIES)
    np.save(folder / "vectors.npy", crowd.own)
    np.save(folder / "queries.npy", crowd.turned(crowd.own[chosen], 0.96))
    for name, (title, _) in PEERS.items():
        measurement.say(f"{title}: up to {max(measurement.sizes):,} entries")
        try:
            with run_search_redis(folder) as redis:
                files = (folder / "vectors.npy", folder / "queries.npy")
                for found in time_peer(name, redis, *files, measurement.sizes, measurement.rounds):
                    rounds = [
                        Round(one["hits"] / QUERIES, sorted(one["ms"]), one["cpu_ms"])
                        for one in found["rounds"]
                    ]
                    measurement.add(Figure(title, "alone", found["size"], rounds, found["fill_seconds"]))
                    measurement.say(f"{title}: {found['size']:,} done")
        except Exception:  # noqa: BLE001 - the process edge: one that fails must not cost the others' figures
            traceback.print_exc()
            measurement.failed.append(title)


def main() -> int:
    """Parse the command line, measure, and report."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.vectors",
        description="Measure look-ups of similar questions beside other semantic caches, on this machine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, and no change of the document")
    parser.add_argument("--without-peers", action="store_true", help="our stores alone, printed")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="write the figures as JSON too, as they come"
    )
    asked = parser.parse_args()
    measurement = Measurement((200, 1000), 2000, 2) if asked.quick else Measurement(SIZES, OTHERS, ROUNDS)
    measurement.file = asked.results
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cachewright-vectors-")))
        postgres = stack.enter_context(run_postgres())
        qdrant = given_server() or stack.enter_context(run_qdrant())
        kind = " (stand-in)" if isinstance(qdrant, QdrantServer) else ""
        stores = [
            Ours("cachewright, process memory", open_vector_store(f"memory://?max_bytes={2**31}"), None),
            Ours(
                "cachewright, PostgreSQL",
                open_vector_store(postgres.dsn()),
                psutil.Process(postgres.process.pid),
            ),
            Ours(
                f"cachewright, Qdrant{kind}",
                open_vector_store(qdrant.url, api_key=qdrant.api_key),
                psutil.Process(qdrant.process.pid) if isinstance(qdrant, QdrantServer) else None,
            ),
        ]
        for ours in stores:
            asyncio.run(measure_ours(measurement, ours))
        if not asked.without_peers:
            measure_peers(measurement, folder)
    text = render(measurement.figures, measurement.loads, measurement.failed)
    if asked.quick or asked.without_peers:
        print(text)
    else:
        write(text, measurement.figures)
    return 1 if measurement.failed else 0


if __name__ == "__main__":
    sys.exit(main())
