"""What `cachewright size` works out beside what real servers take: `python -m bench.sizing` prints a table.

The same as tests/stores/test_sizing.py at any size, with memory and graphs of Qdrant's engine as well, which
show only where there are many entries: below some 8,000 nothing is rewritten, and buffers outweigh them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cachewright.api.semantic import HnswSpec
from cachewright.sizing.load import MEBIBYTE, Load, Need, Part
from cachewright.sizing.postgres import postgres_need
from cachewright.sizing.qdrant import qdrant_need
from cachewright.sizing.redis import redis_need
from cachewright.stores.vectors import Quantization, space_name
from tests.support.postgres_servers import run_postgres
from tests.support.qdrant_servers import QdrantServer, run_qdrant
from tests.support.redis_servers import FLAVORS, run_redis
from tests.support.sized_stores import (
    CACHE,
    KEYSPACE,
    disk_bytes,
    fill_postgres,
    fill_qdrant,
    fill_redis,
)

EXAMPLES: Final = """\
examples:
  python -m bench.sizing                                    # 20,000 entries of three shapes; some minutes
  python -m bench.sizing --entries 100000 --shape 384x2000  # one shape, and more of it
"""

SHAPES: Final = ("384x600", "768x2000", "1024x6000")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, in bytes."""

    what: str
    told: int
    measured: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", type=int, default=20_000, metavar="N")
    parser.add_argument(
        "--shape", action="append", metavar="DIMENSIONSxBYTES", help=f"default: {', '.join(SHAPES)}"
    )
    asked = parser.parse_args()
    print(f"{'':44}{'told':>10}{'measured':>10}{'ratio':>8}")
    for shape in asked.shape or SHAPES:
        dimensions, answer_bytes = map(int, shape.split("x"))
        load = Load(asked.entries, answer_bytes, 200, dimensions, embeddings=asked.entries, retained=0)
        for row in asyncio.run(measure(load)):
            told, measured = row.told / MEBIBYTE, row.measured / MEBIBYTE
            what = f"{shape} {row.what}"
            print(f"{what:44}{told:9,.1f}M{measured:9,.1f}M{told / measured:8.2f}", flush=True)


async def measure(load: Load) -> list[Row]:
    """Fill every store with a load, one after the other."""
    rows: list[Row] = []
    for flavor in FLAVORS:
        with run_redis(flavor) as server:
            before = await fill_redis(server, Load(entries=0))
            measured = await fill_redis(server, load) - before
        need = redis_need(load, exact=True, semantic=load.entries, hot=False)
        rows.append(
            Row(f"{flavor}: memory", _memory(need, "exact answers", "tickets of similar answers"), measured)
        )
    rows += await _postgres(load)
    rows += await _qdrant(load)
    return rows


async def _postgres(load: Load) -> list[Row]:
    with run_postgres() as server:
        sizes = await fill_postgres(server, load, Quantization.NONE)
    need = postgres_need(
        load, semantic=load.entries, expired_share=0.0, cold=True, hnsw=HnswSpec(), rounded=False
    )
    return [
        Row("postgres: rows", _disk(need, "similar answers"), sizes.table),
        Row("postgres: graph", _disk(need, "graph of their vectors"), sizes.graph),
        Row("postgres: cold vectors", _disk(need, "cold vectors"), sizes.cold),
    ]


async def _qdrant(load: Load) -> list[Row]:
    with run_qdrant() as server:
        empty = _anonymous_bytes(server)
        log = "write-ahead log"
        measured = await fill_qdrant(server, load, Quantization.SCALAR)
        need = qdrant_need(load, semantic=load.entries, expired_share=0.0, hnsw=HnswSpec(), quantized=True)
        rows = [Row("qdrant: disk, as written", _disk(need, "similar answers", log), measured)]
        while _optimize(server):
            pass
        server.restart()
        folder = server.folder / "storage"
        rows.append(
            Row(
                "qdrant: disk, rewritten with graphs",
                _disk(need, "similar answers", log, "graphs of their vectors", "room to rewrite segments"),
                disk_bytes(folder),
            )
        )
        grown = _anonymous_bytes(server) - empty
        wanted = _memory(need, "similar answers", "graphs of their vectors", "8-bit copies of vectors")
        rows.append(Row("qdrant: memory of its own", wanted, grown))
    return rows


def _optimize(server: QdrantServer) -> bool:
    """Let the stand-in build what a real server builds by itself; tells whether it did something."""
    request = urllib.request.Request(  # noqa: S310 - the server's own address
        f"{server.url}/collections/{space_name(CACHE, KEYSPACE)}/optimize",
        data=b"{}",
        headers={"api-key": server.api_key},
        method="POST",
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - the server's own address
        return bool(json.load(answer)["result"])


def _anonymous_bytes(server: QdrantServer) -> int:
    """Return the memory that is no file's: what cannot be given back under pressure."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")))


def _memory(need: Need, *whats: str) -> int:
    return sum(part.memory_bytes for part in _parts(need, whats))


def _disk(need: Need, *whats: str) -> int:
    return sum(part.disk_bytes for part in _parts(need, whats))


def _parts(need: Need, whats: tuple[str, ...]) -> Iterator[Part]:
    return (part for part in need.parts if part.what in whats)


if __name__ == "__main__":
    main()
