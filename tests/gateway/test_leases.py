"""Leases: two gateways over one store make one upstream call, and neither waits long for the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.gateway.harness import TENANT, Gateway, Response, chat_answer, root_client, running
from tests.gateway.test_flights import Held, ask, looked_up, many_connections, texts
from tests.support.redis_servers import RedisServer
from tests.support.waiting import PATIENCE_SECONDS, until

COALESCE_SECONDS = PATIENCE_SECONDS
"""Far longer than anything here takes that waits for nobody."""

SOON_SECONDS = 0.25


@dataclass
class Pair:
    """Two gateways of one cache."""

    first: Gateway
    second: Gateway
    held: Held


@pytest.fixture
async def pair(tmp_path: Path, redis: RedisServer) -> AsyncIterator[Pair]:
    """Both running, in front of one upstream, and patient with each other."""
    async with running_pair(tmp_path, redis, coalesce_timeout_seconds=COALESCE_SECONDS) as made:
        yield made


@asynccontextmanager
async def running_pair(tmp_path: Path, redis: RedisServer, **changes: object) -> AsyncIterator[Pair]:
    """Run both, with their policies changed alike."""
    held = Held()
    async with held.upstream:
        first = Gateway(tmp_path / "first", redis, held.upstream.url)
        second = Gateway(tmp_path / "second", redis, held.upstream.url)
        for gateway in (first, second):
            gateway.enact(**changes)
        async with running(first), running(second):
            for gateway in (first, second):
                gateway.client = await many_connections(gateway)
            yield Pair(first, second, held)


async def test_two_gateways_make_one_call(pair: Pair) -> None:
    """Twenty requests on each: one call, and everybody has its answer once it is stored."""
    calls = [ask(gateway) for gateway in (pair.first, pair.second) for _ in range(20)]
    await looked_up(pair.first, 20)
    await looked_up(pair.second, 20)
    await pair.held.called(1)
    pair.held.answer(0)
    answers = await asyncio.gather(*calls)
    assert {texts(answer) for answer in answers} == {"Because."}
    assert len(pair.held.waiting) == 1
    assert sum(answer.cache == "cachewright; fwd=miss" for answer in answers) == 1


async def test_an_answer_elsewhere_serves_streams_too(pair: Pair) -> None:
    """Who follows in the waiting gateway gets the answer in the form it asked for."""
    leader = ask(pair.first)
    await pair.held.called(1)
    calls = [ask(pair.second)]
    await looked_up(pair.second, 1)
    calls.append(ask(pair.second, stream=True))
    await looked_up(pair.second, 2)
    pair.held.answer(0)
    assert {texts(answer) for answer in await asyncio.gather(leader, *calls)} == {"Because."}
    assert all(answer.is_hit for answer in await asyncio.gather(*calls))
    assert len(pair.held.waiting) == 1


async def test_a_failure_elsewhere_promotes_at_once(pair: Pair) -> None:
    """The other gateway asks as soon as the first has failed, and does not wait to the end."""
    failing = ask(pair.first)
    await pair.held.called(1)
    waiting = ask(pair.second)
    await looked_up(pair.second, 1)
    started = time.monotonic()
    pair.held.answer(0, Response(503, b"{}"))
    await pair.held.called(2)
    assert time.monotonic() - started < 0.75 * COALESCE_SECONDS
    pair.held.answer(1)
    assert (await failing).status == 503
    assert (await waiting).cache == "cachewright; fwd=miss"


async def test_a_client_that_leaves_elsewhere_promotes_at_once(pair: Pair) -> None:
    """A call that was given up holds nobody up."""
    leaving = ask(pair.first)
    await pair.held.called(1)
    waiting = ask(pair.second)
    await looked_up(pair.second, 1)
    started = time.monotonic()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    await pair.held.called(2)
    assert time.monotonic() - started < 0.75 * COALESCE_SECONDS
    pair.held.answer(1)
    assert texts(await waiting) == "Because."


async def test_a_stream_waits_for_the_budget_only(tmp_path: Path, redis: RedisServer) -> None:
    """Its first word matters more than one call less."""
    changes = {"exact": {"budget_seconds": SOON_SECONDS}, "coalesce_timeout_seconds": COALESCE_SECONDS}
    async with running_pair(tmp_path, redis, **changes) as pair:
        first = ask(pair.first)
        await pair.held.called(1)
        started = time.monotonic()
        second = ask(pair.second, stream=True)
        await pair.held.called(2)
        assert time.monotonic() - started < 0.75 * COALESCE_SECONDS
        pair.held.answer(0)
        pair.held.answer(1)
        assert {texts(answer) for answer in await asyncio.gather(first, second)} == {"Because."}


async def test_nobody_waits_for_ever(tmp_path: Path, redis: RedisServer) -> None:
    """An upstream that is slow in one gateway is asked by the other too, after a while."""
    async with running_pair(tmp_path, redis, coalesce_timeout_seconds=SOON_SECONDS) as pair:
        calls = [ask(pair.first), ask(pair.second)]
        await pair.held.called(2)
        for number in (0, 1):
            pair.held.answer(number)
        assert {answer.cache for answer in await asyncio.gather(*calls)} == {"cachewright; fwd=miss"}


async def test_a_refresh_waits_for_nobody(pair: Pair) -> None:
    """A fresh answer is not what another gateway began to fetch earlier."""
    early = ask(pair.first)
    await pair.held.called(1)
    started = time.monotonic()
    refresh = ask(pair.second, headers={**TENANT, "Cache-Control": "no-cache"})
    await pair.held.called(2)
    assert time.monotonic() - started < 0.75 * COALESCE_SECONDS
    pair.held.answer(1, Response(200, chat_answer("fresh")))
    assert texts(await refresh) == "fresh"
    pair.held.answer(0)
    await early


async def test_no_lease_outlives_its_call(pair: Pair) -> None:
    """After answers, failures and departures the store holds none."""
    for number, response in enumerate((None, Response(503, b"{}"), Response(200, chat_answer("")))):
        call = ask(pair.first, seed=number)
        await pair.held.called(number + 1)
        pair.held.answer(number, response)
        await call
    assert (await pair.first.call(seed=0)).is_hit
    async with root_client(pair.first.redis) as client:

        async def none_is_left() -> bool:
            return await client.keys("*:lock") == []

        # Let go of, that is: by itself each would end only after the longest wait.
        await until(none_is_left, seconds=COALESCE_SECONDS / 2)
