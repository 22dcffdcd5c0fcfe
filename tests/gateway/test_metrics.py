"""What the gateway counts: savings, ages and times by outcome; and traces that pass through it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.engine.http11 import Request, Response
from tests.gateway.harness import TENANT, Engine, Gateway, ScriptedUpstream, chat_answer, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

USAGE = {"prompt_tokens": 8, "completion_tokens": 11, "total_tokens": 19}
TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=1,b=2"}


async def stored(gateway: Gateway) -> None:
    """Return once an answer was stored."""

    async def is_stored() -> bool:
        return await gateway.metric("cachewright_stored_total") == 1

    await until(is_stored)


async def test_hits_count_what_they_save(tmp_path: Path, redis: RedisServer) -> None:
    """Tokens as the upstream counted them and the time that it took; the miss saves nothing."""

    async def answer(_: Request) -> Response:
        return Response(200, chat_answer(usage=USAGE))

    async with (
        ScriptedUpstream(answer) as upstream,
        running(Gateway(tmp_path, redis, upstream.url)) as gateway,
    ):
        await gateway.call()
        await stored(gateway)
        assert await gateway.metric("cachewright_saved_tokens_total") == 0
        for _ in range(3):
            assert (await gateway.call()).is_hit
        for kind, each in (("prompt", 8), ("completion", 11)):
            labels = {"kind": kind}
            assert await gateway.metric("cachewright_saved_tokens_total", **labels) == 3 * each
        assert await gateway.metric("cachewright_hit_age_seconds_count") == 3
        assert await gateway.metric("cachewright_hit_age_seconds_sum") < 60
        saved = (await gateway.admin("/stats")).json()["saved"]
        assert saved["tokens"] == {"prompt": 24, "completion": 33}


async def test_streamed_hits_count_what_they_save(gateway: Gateway, engine: Engine) -> None:
    """Also for clients that did not ask for a stream's usage, and with the whole stream's time."""
    engine.latency_seconds = 0.05
    await gateway.call(stream=True)
    await stored(gateway)
    for streamed in (True, False):
        assert (await gateway.call(stream=streamed)).is_hit
    usage = (await gateway.call()).json()["usage"]
    total = await gateway.metric("cachewright_saved_tokens_total", kind="completion")
    assert total == 3 * usage["completion_tokens"] > 0
    assert await gateway.metric("cachewright_saved_seconds_total") >= 3 * 0.05


async def test_times_are_told_apart_by_outcome(gateway: Gateway, engine: Engine) -> None:
    """Hits from misses, and good answers of the upstream from bad ones."""
    await gateway.call()
    await stored(gateway)
    await gateway.call()
    engine.fail(503)
    await gateway.call(temperature=1)
    for outcome in ("hit", "miss"):
        labels = {"layer": "exact", "outcome": outcome}
        assert await gateway.metric("cachewright_lookup_seconds_count", **labels) == 1
    for outcome in ("2xx", "5xx"):
        assert await gateway.metric("cachewright_upstream_seconds_count", outcome=outcome) == 1


@pytest.mark.parametrize("changes", [{}, {"temperature": 1}], ids=["miss", "bypass"])
async def test_traces_go_on_to_the_upstream(
    gateway: Gateway, engine: Engine, changes: dict[str, Any]
) -> None:
    """W3C trace context is passed on as it came."""
    await gateway.call(headers={**TENANT, **TRACE}, **changes)
    for name, value in TRACE.items():
        assert engine.requests[-1].header(name) == value


async def test_traces_are_no_part_of_the_key(gateway: Gateway, engine: Engine) -> None:
    """Each request has another one."""
    await gateway.call(headers={**TENANT, **TRACE})
    await stored(gateway)
    other = {**TRACE, "traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-00"}
    assert (await gateway.call(headers={**TENANT, **other})).is_hit
    assert len(engine.requests) == 1


async def test_labels_are_bounded(gateway: Gateway) -> None:
    """Whatever clients send, no value of theirs becomes a label."""
    for number in range(5):
        await gateway.call(
            headers={"X-Tenant-Id": f"tenant-{number}", **TRACE}, model=f"model-{number}", user="u-1"
        )
        await gateway.call(f"/path-{number}", data=json.dumps({"a": number}).encode())
    text = (await gateway.management("/metrics")).body.decode()
    for word in ("tenant-", "model-", "path-", "u-1", "4bf92f"):
        assert word not in text
