"""The stand-in's prefix cache: what a salt keeps apart, and what the analyzer's advice is worth on it."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from cachewright.engines.metrics import PrefixCounts, read_counts
from cachewright.engines.prefix.breakers import BreakerKind
from cachewright.engines.prefix.chat_log import LogFields, LoggedRequest, Passed, read_log
from cachewright.engines.prefix.report import AnalysisSettings, analyze, mended
from cachewright.engines.settings import Engine
from e2e.engine import Engine as StandIn
from e2e.engine import PrefixCache
from tests.support.chat_logs import RULES, log_of

CHAT = "/v1/chat/completions"


def request(question: str, **fields: Any) -> dict[str, Any]:
    """Build a chat request behind a long system prompt."""
    messages = [{"role": "system", "content": RULES}, {"role": "user", "content": question}]
    return {"model": "m", "messages": messages, **fields}


async def cached_tokens(client: aiohttp.ClientSession, body: dict[str, Any]) -> int:
    """Ask, and return how many tokens the engine says it knew."""
    async with client.post(CHAT, json=body) as answer:
        assert answer.status == 200
        usage = (await answer.json())["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])


async def test_a_shared_beginning_is_known() -> None:
    """The second question behind the same system prompt finds its full blocks, and metrics count them."""
    async with StandIn(prefix_cache=PrefixCache()) as engine, aiohttp.ClientSession(engine.url) as client:
        assert await cached_tokens(client, request("one")) == 0
        known = await cached_tokens(client, request("two"))
        assert known >= 64
        async with client.get("/metrics") as answer:
            counts = read_counts(Engine.VLLM, await answer.text())
        assert counts is not None
        assert (counts.known, counts.is_on) == (known, True)


async def test_salts_keep_prompts_apart() -> None:
    """The same salt finds the blocks, another one and none do not."""
    async with StandIn(prefix_cache=PrefixCache()) as engine, aiohttp.ClientSession(engine.url) as client:
        assert await cached_tokens(client, request("one", cache_salt="a")) == 0
        assert await cached_tokens(client, request("two", cache_salt="b")) == 0
        assert await cached_tokens(client, request("three")) == 0
        assert await cached_tokens(client, request("four", cache_salt="a")) > 0


async def test_a_salt_changes_no_answer() -> None:
    """A salt decides what is computed, never what is said."""
    async with StandIn(prefix_cache=PrefixCache()) as engine, aiohttp.ClientSession(engine.url) as client:
        texts = set()
        for fields in ({}, {"cache_salt": "a"}):
            async with client.post(CHAT, json=request("one", **fields)) as answer:
                texts.add((await answer.json())["choices"][0]["message"]["content"])
        assert len(texts) == 1


@pytest.mark.parametrize("salt", ["", "a@b", "a/b", "x" * 129, 7])
async def test_a_salt_that_vllm_refuses_is_refused(salt: Any) -> None:
    """Empty, too long, of another type, or with a forbidden character: 400."""
    body = request("one", cache_salt=salt)
    async with (
        StandIn(prefix_cache=PrefixCache()) as engine,
        aiohttp.ClientSession(engine.url) as client,
        client.post(CHAT, json=body) as answer,
    ):
        assert answer.status == 400


async def test_without_a_prefix_cache_nothing_is_said_of_one() -> None:
    """An engine with prefix caching off reports no cached tokens, and its metrics say that it is off."""
    async with StandIn() as engine, aiohttp.ClientSession(engine.url) as client:
        async with client.post(CHAT, json=request("one")) as answer:
            assert "prompt_tokens_details" not in (await answer.json())["usage"]
        async with client.get("/metrics") as answer:
            assert read_counts(Engine.VLLM, await answer.text()) == PrefixCounts(is_on=False)


async def test_the_analyzers_advice_acts_on_an_engine() -> None:
    """Requests with the time up front share nothing; mended as advised, the engine knows most of each."""
    log = log_of(20, lambda n: f"It is 2026-11-28T10:{n:02}:00Z.\n{RULES}")
    requests = list(read_log(log.splitlines(), LogFields(), Passed()))
    report = analyze(requests, AnalysisSettings())
    assert [broken.kind for broken in report.breakers] == [BreakerKind.TIMESTAMP]
    before, after = await known_share(requests), await known_share(mended(requests, AnalysisSettings()))
    assert before < 0.1
    assert after > 0.6
    assert abs(after - report.mended.rate) < 0.1


async def known_share(requests: list[LoggedRequest]) -> float:
    """Send requests to an engine of their own; returns the share of their tokens that it knew."""
    cache = PrefixCache()
    async with StandIn(prefix_cache=cache) as engine, aiohttp.ClientSession(engine.url) as client:
        for one in requests:
            await cached_tokens(client, {"model": "m", "messages": list(one.messages)})
    return cache.hit_tokens / cache.queried_tokens
