"""How clients narrow what the cache does with their requests."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.engine import Engine
from tests.gateway.harness import CHAT, TENANT, Answered, Gateway
from tests.support.waiting import until


async def ask(gateway: Gateway, control: str, **fields: Any) -> Answered:
    """Ask the usual question with a `Cache-Control`."""
    return await gateway.call(headers={**TENANT, "Cache-Control": control}, **fields)


async def warm(gateway: Gateway) -> None:
    """Ask until the answer comes from the cache."""

    async def is_hit() -> bool:
        return (await gateway.call()).is_hit

    await until(is_hit)


async def test_an_answer_older_than_max_age_is_fetched_anew(gateway: Gateway, engine: Engine) -> None:
    """And takes the old one's place, so that the next one is young enough again."""
    await warm(gateway)
    assert (await ask(gateway, "max-age=3600")).is_hit
    before = engine.calls[CHAT]
    refused: list[Answered] = []

    async def is_too_old() -> bool:
        answer = await ask(gateway, "max-age=1")
        refused.append(answer)
        return not answer.is_hit

    await until(is_too_old)
    assert "; fwd=request; detail=client" in refused[-1].cache
    assert engine.calls[CHAT] == before + 1

    async def is_young() -> bool:
        return (await ask(gateway, "max-age=1")).is_hit

    await until(is_young)


@pytest.mark.parametrize("control", ["max-age=0", "max-age=soon", "no-cache, max-age=3600"])
async def test_no_age_is_young_enough(gateway: Gateway, engine: Engine, control: str) -> None:
    """What cannot be read counts as 0, and the narrower wish wins."""
    await warm(gateway)
    before = engine.calls[CHAT]
    assert "; fwd=request; detail=client" in (await ask(gateway, control)).cache
    assert engine.calls[CHAT] == before + 1


async def test_a_stored_answer_or_none(gateway: Gateway, engine: Engine) -> None:
    """only-if-cached never reaches the upstream; RFC 9111, section 5.2.1.7."""
    answer = await ask(gateway, "only-if-cached")
    assert (answer.status, answer.error_code) == (504, "not_cached")
    assert answer.cache == "cachewright; detail=client"
    assert not engine.requests
    await warm(gateway)
    assert (await ask(gateway, "only-if-cached")).is_hit
    before = len(engine.requests)
    assert (await ask(gateway, "only-if-cached, max-age=0")).status == 504
    uncached = await ask(gateway, "only-if-cached", temperature=1)
    assert (uncached.status, uncached.cache) == (504, "cachewright; detail=sampling")
    assert len(engine.requests) == before
