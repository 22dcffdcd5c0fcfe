"""Endpoints beyond chat: their answers are cached where a route names their path."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cachewright.policy.document import RoutePolicy
from cachewright.policy.sse import read_events
from e2e.engine import Engine
from e2e.engine.http11 import Request, Response
from tests.gateway.harness import MODEL, TENANT, Answered, Gateway, ScriptedUpstream, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
REQUESTS: dict[str, dict[str, Any]] = {
    COMPLETIONS: {"model": MODEL, "prompt": ["Once upon"], "temperature": 0},
    RESPONSES: {"model": MODEL, "input": "Hello?", "temperature": 0, "store": False},
}


async def _answer(request: Request) -> Response:
    text = f"answer to {request.body.decode()} on {request.path}"
    documents: dict[str, dict[str, Any]] = {
        COMPLETIONS: {"choices": [{"index": 0, "text": text, "finish_reason": "stop"}]},
        RESPONSES: {
            "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}],
        },
    }
    body = json.dumps({"id": "1", "model": MODEL, **documents[request.path]}).encode()
    return Response(200, body)


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    """An upstream that answers both endpoints."""
    async with ScriptedUpstream(_answer) as started:
        yield started


@pytest.fixture
async def routed(tmp_path: Path, redis: RedisServer, upstream: ScriptedUpstream) -> AsyncIterator[Gateway]:
    """A gateway with a route for each endpoint."""
    gateway = Gateway(tmp_path, redis, upstream.url)
    gateway.enact(
        routes=tuple(
            RoutePolicy(name=path.rpartition("/")[2], path=path, layers=("Exact",)) for path in REQUESTS
        )
    )
    async with running(gateway):
        yield gateway


async def ask(gateway: Gateway, path: str, tenant: str = "acme", **changes: Any) -> Answered:
    """Send the endpoint's request with some fields changed."""
    body = json.dumps({**REQUESTS[path], **changes}).encode()
    return await gateway.call(path, data=body, headers={**TENANT, "X-Tenant-Id": tenant})


async def stored(gateway: Gateway, path: str, **changes: Any) -> Answered:
    """Ask until the answer comes from the cache."""
    last: list[Answered] = []

    async def is_hit() -> bool:
        last[:] = [await ask(gateway, path, **changes)]
        return last[0].is_hit

    await until(is_hit)
    return last[0]


@pytest.mark.parametrize("path", list(REQUESTS))
async def test_the_second_answer_comes_from_the_cache(
    routed: Gateway, upstream: ScriptedUpstream, path: str
) -> None:
    """Byte for byte, and for this tenant alone."""
    first = await ask(routed, path)
    assert first.cache.startswith("cachewright; fwd=miss")
    again = await stored(routed, path)
    assert again.body == first.body
    calls = len(upstream.requests)
    assert not (await ask(routed, path, tenant="other")).is_hit
    assert len(upstream.requests) == calls + 1


async def test_equal_bodies_on_two_paths_share_nothing(routed: Gateway) -> None:
    """The path is part of the key."""
    both = {**REQUESTS[COMPLETIONS], **REQUESTS[RESPONSES]}
    await ask(routed, COMPLETIONS, **both)
    await stored(routed, COMPLETIONS, **both)
    assert not (await ask(routed, RESPONSES, **both)).is_hit


@pytest.mark.parametrize(
    ("path", "changes", "reason"),
    [
        (COMPLETIONS, {"stream": "yes"}, "ambiguous_json"),
        (RESPONSES, {"stream": "yes"}, "ambiguous_json"),
        (RESPONSES, {"stream": True, "stream_options": {"include_obfuscation": False}}, "stream"),
        (RESPONSES, {"store": True}, "stateful"),
        (RESPONSES, {"previous_response_id": "resp_1"}, "stateful"),
    ],
)
async def test_what_is_not_cached_is_passed_on(
    routed: Gateway, upstream: ScriptedUpstream, path: str, changes: dict[str, Any], reason: str
) -> None:
    """Every time, with the reason."""
    for _ in range(2):
        answered = await ask(routed, path, **changes)
        assert (answered.status, answered.reason) == (200, reason)
    assert len(upstream.requests) == 2


async def test_without_a_route_nothing_is_cached(
    tmp_path: Path, redis: RedisServer, upstream: ScriptedUpstream
) -> None:
    """The default route is for chat alone."""
    async with running(Gateway(tmp_path, redis, upstream.url)) as gateway:
        for path in REQUESTS:
            assert (await ask(gateway, path)).reason == "no_route"


async def test_streams_of_completions_share_their_entry(
    tmp_path: Path, redis: RedisServer, engine: Engine
) -> None:
    """Stream then whole, and whole then stream: one call each, the same text, every chunk well-formed."""
    gateway = Gateway(tmp_path, redis, engine.url)
    gateway.enact(routes=(RoutePolicy(name="completions", path=COMPLETIONS, layers=("Exact",)),))
    async with running(gateway):
        for seed, order in enumerate(((True, True, False), (False, True, True))):
            texts, hits = set(), []
            for stream in order:
                answered = await ask(gateway, COMPLETIONS, stream=stream, seed=seed)
                hits.append(answered.is_hit)
                if stream:
                    *chunks, end = [event.data or b"" for event in read_events(answered.body)]
                    assert end == b"[DONE]"
                    parsed = [json.loads(chunk) for chunk in chunks]
                    assert {chunk["object"] for chunk in parsed} == {"text_completion"}
                    assert parsed[-1]["choices"][0]["finish_reason"] == "stop"
                    texts.add("".join(chunk["choices"][0]["text"] for chunk in parsed))
                else:
                    texts.add(answered.json()["choices"][0]["text"])
            assert hits == [False, True, True]
            assert len(texts) == 1
    assert engine.calls[COMPLETIONS] == 2
