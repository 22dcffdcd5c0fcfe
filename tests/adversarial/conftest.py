"""A gateway as the adversarial set wants it, in front of the fake upstream and a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bench.upstream import Upstream
from tests.adversarial.cases import ALIAS, ARM_HEADER, ROLE_HEADER, VARY_HEADER
from tests.gateway.harness import Gateway, running
from tests.support.redis_servers import RedisServer, run_redis


@pytest.fixture(scope="session")
def store() -> Iterator[RedisServer]:
    """One server for all tests of this folder."""
    with run_redis("valkey") as server:
        yield server


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    """The fake upstream."""
    async with Upstream() as started:
        yield started


@pytest.fixture
async def gateway(tmp_path: Path, store: RedisServer, upstream: Upstream) -> AsyncIterator[Gateway]:
    """A gateway with roles, an experiment, an alias and a vary header of its own."""
    mounts = Gateway(tmp_path, store, upstream.url)
    mounts.enact(
        tenancy={"role_header": ROLE_HEADER.lower()},
        upstream={"vary_headers": (*mounts.policy.upstream.vary_headers, VARY_HEADER.lower())},
        model_aliases=(ALIAS,),
        routes=(mounts.policy.routes[0].model_copy(update={"arm_header": ARM_HEADER.lower()}),),
    )
    async with running(mounts):
        yield mounts
