"""What `cachewright size` works out, held against real servers that are filled by the layers' own code."""

from __future__ import annotations

import pytest

from cachewright.api.semantic import HnswSpec
from cachewright.sizing.load import Load, Need
from cachewright.sizing.postgres import postgres_need
from cachewright.sizing.qdrant import qdrant_need
from cachewright.sizing.redis import redis_need
from cachewright.stores.vectors import Quantization
from tests.support.postgres_servers import PostgresServer
from tests.support.qdrant_servers import run_qdrant
from tests.support.redis_servers import FLAVORS, Flavor, run_redis
from tests.support.sized_stores import fill_postgres, fill_qdrant, fill_redis

POINTS = {
    "short": Load(entries=600, answer_bytes=600, dimensions=384, embeddings=600, retained=0),
    "usual": Load(entries=400, answer_bytes=2000, dimensions=768, embeddings=400, retained=0),
    "long": Load(entries=250, answer_bytes=6000, dimensions=1024, embeddings=250, retained=0),
}
"""Sizes of answers and vectors; `python -m bench.sizing` takes more entries."""

TOLERANCE = 0.25

points = pytest.mark.parametrize("load", POINTS.values(), ids=POINTS.keys())


def of(need: Need, *whats: str) -> tuple[int, int]:
    """Add up memory and disk of some parts."""
    parts = [part for part in need.parts if part.what in whats]
    assert len(parts) == len(whats)
    return sum(part.memory_bytes for part in parts), sum(part.disk_bytes for part in parts)


@points
@pytest.mark.parametrize("flavor", FLAVORS)
async def test_memory_of_redis(flavor: Flavor, load: Load) -> None:
    """Answers and tickets take what was worked out, within a quarter, on both servers."""
    with run_redis(flavor) as server:
        before = await fill_redis(server, Load(entries=0))
        measured = await fill_redis(server, load) - before
    need = redis_need(load, exact=True, semantic=load.entries, hot=False)
    assert of(need, "exact answers", "tickets of similar answers")[0] == pytest.approx(
        measured, rel=TOLERANCE
    )


@pytest.mark.parametrize(
    ("name", "quantization"),
    [("short", Quantization.NONE), ("usual", Quantization.SCALAR), ("long", Quantization.NONE)],
)
async def test_disk_of_postgres(postgres: PostgresServer, name: str, quantization: Quantization) -> None:
    """So do rows, graph and cold vectors in PostgreSQL with pgvector, each by itself."""
    load = POINTS[name]
    measured = await fill_postgres(postgres, load, quantization)
    rounded = quantization is Quantization.SCALAR
    need = postgres_need(
        load, semantic=load.entries, expired_share=0.0, cold=True, hnsw=HnswSpec(), rounded=rounded
    )
    assert of(need, "similar answers")[1] == pytest.approx(measured.table, rel=TOLERANCE)
    assert of(need, "graph of their vectors")[1] == pytest.approx(measured.graph, rel=TOLERANCE)
    assert of(need, "cold vectors")[1] == pytest.approx(measured.cold, rel=TOLERANCE)


@points
async def test_disk_of_qdrant(load: Load) -> None:
    """And points with their log in Qdrant's engine; graphs are not built for so few."""
    with run_qdrant() as server:
        measured = await fill_qdrant(server, load, Quantization.NONE)
    need = qdrant_need(load, semantic=load.entries, expired_share=0.0, hnsw=HnswSpec(), quantized=False)
    assert of(need, "similar answers", "write-ahead log")[1] == pytest.approx(measured, rel=TOLERANCE)
