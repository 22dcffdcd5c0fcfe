"""Generations through HTTP: what is retracted is never served again by any replica; nothing else is lost."""

from __future__ import annotations

from pathlib import Path

from cachewright.keys.digest import tenant_tag
from cachewright.keys.generations import Subject, subject_counter, tenant_counter
from cachewright.stores.redis_entries import open_cache_store
from e2e.engine import Engine
from tests.gateway.harness import TENANT, Gateway, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

KEY = bytes.fromhex("ab" * 32)
OTHER = {"X-Tenant-Id": "evil"}


async def raise_counters(redis: RedisServer, *counters: str) -> None:
    """Do what a retraction does."""
    store = open_cache_store(redis.url("gateway"))
    await store.raise_generations(redis.cache_id, counters)
    await store.aclose()


async def warm(gateway: Gateway, headers: dict[str, str]) -> None:
    """Ask until the answer comes from the cache."""

    async def is_hit() -> bool:
        return (await gateway.call(headers=headers)).is_hit

    await until(is_hit)


async def test_a_retracted_tenant_misses_on_every_replica_and_others_hit(
    tmp_path: Path, redis: RedisServer, engine: Engine
) -> None:
    """The raise is seen by the very next request of each gateway."""
    first = Gateway(tmp_path / "first", redis, engine.url)
    second = Gateway(tmp_path / "second", redis, engine.url)
    async with running(first), running(second):
        for headers in (TENANT, OTHER):
            await warm(first, headers)
        await raise_counters(redis, tenant_counter(tenant_tag(KEY, b"acme")))
        assert not (await first.call()).is_hit
        await raise_counters(redis, tenant_counter(tenant_tag(KEY, b"acme")))
        assert not (await second.call()).is_hit
        for gateway in (first, second):
            assert (await gateway.call(headers=OTHER)).is_hit
        await warm(first, TENANT)
        assert (await second.call()).is_hit


async def test_retracted_roles_miss(mounts: Gateway, redis: RedisServer) -> None:
    """Whoever does not carry what was retracted keeps what is stored."""
    mounts.enact(tenancy={"role_header": "x-role"})
    carriers, others = ({**TENANT, "X-Role": role} for role in ("admin", "guest"))
    async with running(mounts):
        for headers in (carriers, others):
            await warm(mounts, headers)
        await raise_counters(redis, subject_counter(KEY, Subject.ROLE, "admin"))
        assert not (await mounts.call(headers=carriers)).is_hit
        assert (await mounts.call(headers=others)).is_hit
