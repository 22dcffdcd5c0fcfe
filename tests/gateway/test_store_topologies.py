"""A gateway over TLS, Sentinels and a cluster: the same misses and hits, from the store and from memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.engine import Engine
from tests.gateway.harness import Gateway, running
from tests.support.redis_servers import RedisServer
from tests.support.redis_topologies import run_cluster, run_sentinels, run_tls
from tests.support.waiting import until

TOPOLOGIES = {"tls": run_tls, "sentinel": run_sentinels, "cluster": run_cluster}


@pytest.mark.parametrize("kind", TOPOLOGIES)
async def test_a_gateway_serves_hits(kind: str, tmp_path: Path, redis: RedisServer, engine: Engine) -> None:
    """With nothing but the URL changed, and the authority of a server with TLS mounted beside it."""
    with TOPOLOGIES[kind]() as topology:
        made = Gateway(tmp_path, redis, engine.url)
        made.mount("redis/url", topology.url.partition("?")[0])
        if topology.ca_file is not None:
            made.mount("redis-ca/ca.crt", topology.ca_file.read_text())
        async with running(made):
            assert (await made.call()).cache == "cachewright; fwd=miss"

            async def is_local() -> bool:
                assert (await made.call()).status == 200
                return await made.metric("cachewright_requests_total", layer="local", outcome="hit") > 0

            await until(is_local)
            assert await made.metric("cachewright_requests_total", layer="exact", outcome="hit") > 0
            assert engine.calls.total() == 1
