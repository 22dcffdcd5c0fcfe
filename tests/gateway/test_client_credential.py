"""Tenants known by what they present to the upstream: nothing is served to whom the upstream would refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cachewright.policy.document import TenancyPolicy
from e2e.engine.http11 import Request
from tests.gateway.harness import (
    CHAT,
    QUESTION,
    Answered,
    Gateway,
    Response,
    ScriptedUpstream,
    chat_answer,
    running,
)
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until


class Provider:
    """An upstream with keys of its own."""

    def __init__(self) -> None:
        self.good = {"Bearer sk-a", "Bearer sk-b"}
        self.answers = 0
        self.held: asyncio.Event | None = None
        """Set: answers wait for it."""
        self.held_refusals: asyncio.Event | None = None
        """Set: refusals wait for it."""
        self.upstream = ScriptedUpstream(self._answer)

    async def _answer(self, request: Request) -> Response:
        if request.path == "/v1/models":
            return Response(body=b'{"data": []}')
        if request.header("authorization") not in self.good:
            if self.held_refusals is not None:
                await self.held_refusals.wait()
            return Response(401, b'{"error": {"message": "no", "code": "invalid_api_key"}}')
        if self.held is not None:
            await self.held.wait()
        self.answers += 1
        return Response(body=chat_answer(f"Answer {self.answers}."))


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    """A provider that runs."""
    made = Provider()
    async with made.upstream:
        yield made


def in_front_of(
    provider: Provider, redis: RedisServer, folder: Path, ttl_seconds: float = 60, mode: str = "Required"
) -> Gateway:
    """Return a gateway, not started yet."""
    gateway = Gateway(folder, redis, provider.upstream.url)
    policy = TenancyPolicy.model_validate({"mode": mode, "client_credential_ttl_seconds": ttl_seconds})
    gateway.enact(tenancy=policy.model_dump())
    return gateway


@pytest.fixture
def required(provider: Provider, redis: RedisServer, tmp_path: Path) -> Gateway:
    """A gateway to which each credential is a tenant."""
    return in_front_of(provider, redis, tmp_path)


@pytest.fixture
def single(provider: Provider, redis: RedisServer, tmp_path: Path) -> Gateway:
    """A gateway whose good credentials share one tenant."""
    return in_front_of(provider, redis, tmp_path, mode="Single")


async def ask(gateway: Gateway, key: str, **fields: Any) -> Answered:
    """Ask the usual question with a key of the provider's."""
    return await gateway.call(headers={"Authorization": f"Bearer {key}"}, **fields)


async def warm(gateway: Gateway, key: str) -> None:
    """Ask until the answer comes from the cache."""

    async def is_hit() -> bool:
        return (await ask(gateway, key)).is_hit

    await until(is_hit)


async def test_each_credential_is_a_tenant(required: Gateway, provider: Provider) -> None:
    """The upstream sees it as it came; another one shares nothing with it."""
    async with running(required):
        await warm(required, "sk-a")
        assert provider.upstream.requests[0].header("authorization") == "Bearer sk-a"
        assert not (await ask(required, "sk-b")).is_hit
        assert (await ask(required, "sk-a")).is_hit
        assert (await ask(required, "sk-bad")).status == 401


async def test_a_revoked_credential_is_refused_within_the_ttl(
    provider: Provider, redis: RedisServer, tmp_path: Path
) -> None:
    """Though its answer is stored for much longer; a hit prolongs nothing."""
    gateway = in_front_of(provider, redis, tmp_path, ttl_seconds=0.5)
    async with running(gateway):
        await warm(gateway, "sk-a")
        provider.good.clear()
        began = asyncio.get_running_loop().time()

        async def is_refused() -> bool:
            return (await ask(gateway, "sk-a")).status == 401

        await until(is_refused)
        assert asyncio.get_running_loop().time() - began < 2
        for _ in range(5):
            assert (await ask(gateway, "sk-a")).status == 401
        provider.good.add("Bearer sk-a")
        await warm(gateway, "sk-a")


async def test_a_refusal_ends_it_at_once(required: Gateway, provider: Provider) -> None:
    """A 401 to any question of a credential closes the cache to it."""
    async with running(required):
        await warm(required, "sk-a")
        provider.good.clear()
        assert (await ask(required, "sk-a")).is_hit
        assert (await ask(required, "sk-a", seed=1)).status == 401
        answer = await ask(required, "sk-a")
        assert answer.status == 401
        assert "detail=credential" in answer.cache


async def test_replicas_agree(
    required: Gateway, provider: Provider, redis: RedisServer, tmp_path: Path
) -> None:
    """What one has heard from the upstream, another serves by, and forgets as well."""
    other = in_front_of(provider, redis, tmp_path / "other")
    async with running(required), running(other):
        await warm(required, "sk-a")
        answers = provider.answers
        await warm(other, "sk-a")
        assert provider.answers - answers <= 1
        provider.good.clear()
        assert (await ask(required, "sk-a", seed=1)).status == 401
        third = in_front_of(provider, redis, tmp_path / "third")
        async with running(third):

            async def is_refused() -> bool:
                return (await ask(third, "sk-a")).status == 401

            await until(is_refused)


async def test_a_revoked_credential_gains_nothing_by_asking_two_replicas(
    provider: Provider, redis: RedisServer, tmp_path: Path
) -> None:
    """The one that waits for the other's call is not given what was stored before."""
    first, second = (
        in_front_of(provider, redis, tmp_path / name, ttl_seconds=0.5) for name in ("first", "second")
    )
    async with running(first), running(second):
        await warm(first, "sk-a")
        provider.good.clear()
        only_stored = {"Authorization": "Bearer sk-a", "Cache-Control": "only-if-cached"}

        async def has_ended() -> bool:
            answers = [await gateway.call(headers=only_stored) for gateway in (first, second)]
            return all(answer.status == 504 for answer in answers)

        await until(has_ended)
        provider.held_refusals = asyncio.Event()
        seen = len(provider.upstream.requests)
        calls = [asyncio.create_task(ask(first, "sk-a")), asyncio.create_task(ask(second, "sk-a"))]

        async def both_have_arrived() -> bool:
            return len(provider.upstream.requests) == seen + 2 or any(call.done() for call in calls)

        await until(both_have_arrived)
        provider.held_refusals.set()
        assert [answer.status for answer in await asyncio.gather(*calls)] == [401, 401]


async def test_a_shared_answer_is_served_to_whom_the_upstream_accepted(single: Gateway) -> None:
    """A stored answer waits for the credential's own first 2xx, and says why."""
    async with running(single):
        await warm(single, "sk-a")
        first = await ask(single, "sk-b")
        assert "fwd=request; detail=credential" in first.cache
        assert first.status == 200
        assert (await ask(single, "sk-b")).is_hit
        for _ in range(2):
            assert (await ask(single, "sk-bad")).status == 401
        assert await single.metric("cachewright_not_cached_total", reason="credential") >= 3


async def test_nobody_follows_a_stranger(single: Gateway, provider: Provider) -> None:
    """While a good credential's answer is on its way, the same question of another goes to the upstream."""
    async with running(single):
        provider.held = asyncio.Event()
        leader = asyncio.create_task(ask(single, "sk-a"))

        async def has_arrived() -> bool:
            return len(provider.upstream.requests) == 1

        await until(has_arrived)
        assert (await ask(single, "sk-bad")).status == 401
        provider.held.set()
        assert (await leader).status == 200


async def test_one_credential_shares_its_flight(required: Gateway, provider: Provider) -> None:
    """A stampede of one client is one call, also before the upstream ever accepted it."""
    async with running(required):
        answers = await asyncio.gather(*(ask(required, "sk-a") for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
        assert provider.answers == 1


async def test_what_is_open_to_anybody_proves_nothing(single: Gateway) -> None:
    """A list of models is no proof of a good credential."""
    async with running(single):
        await warm(single, "sk-a")
        headers = {"Authorization": "Bearer sk-bad"}
        assert (await single.call("/v1/models", method="GET", headers=headers)).status == 200
        assert (await ask(single, "sk-bad")).status == 401


@pytest.mark.parametrize(
    "headers",
    [[], [("Authorization", "")], [("Authorization", "Bearer sk-a"), ("Authorization", "Bearer sk-b")]],
)
async def test_without_one_credential_nothing_is_cached(
    required: Gateway, provider: Provider, headers: list[tuple[str, str]]
) -> None:
    """The upstream answers it, or the gateway refuses it, as declared."""
    async with running(required):
        answer = await required.call(headers=headers)
        assert (answer.status, answer.reason) == (401, "no_tenant")
    required.enact(tenancy={"on_missing": "Reject"})
    async with running(required):
        answer = await required.call(headers=headers)
        assert (answer.status, answer.error_code) == (400, "tenant_missing")
    assert len(provider.upstream.requests) == 1


async def test_a_stored_answer_or_none_needs_a_credential_too(single: Gateway) -> None:
    """only-if-cached tells a stranger nothing."""
    async with running(single):
        await warm(single, "sk-a")
        data = json.dumps(QUESTION).encode()
        headers = {"Authorization": "Bearer sk-bad", "Cache-Control": "only-if-cached"}
        answer = await single.call(CHAT, headers=headers, data=data)
        assert (answer.status, answer.cache) == (504, "cachewright; detail=credential")
