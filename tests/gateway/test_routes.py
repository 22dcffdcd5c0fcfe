"""What a route says: sampling, documents, experiments and templates, seen from both sides of the gateway."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cachewright.keys.generations import Subject, subject_counter
from cachewright.stores.redis_entries import open_cache_store
from e2e.engine import Engine
from tests.gateway.harness import CHAT, QUESTION, TENANT, Answered, Gateway, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

KEY = bytes.fromhex("ab" * 32)


def enact_route(gateway: Gateway, **changes: Any) -> None:
    """Change the one route."""
    gateway.enact(routes=(gateway.policy.routes[0].model_copy(update=changes),))


async def warm(gateway: Gateway, headers: dict[str, str] | None = None, **fields: Any) -> Answered:
    """Ask until the answer comes from the cache."""
    hits: list[Answered] = []

    async def is_hit() -> bool:
        answer = await gateway.call(headers=TENANT | (headers or {}), **fields)
        hits.append(answer)
        return answer.is_hit

    await until(is_hit)
    return hits[-1]


def sent(engine: Engine, number: int = -1) -> dict[str, Any]:
    """Return the body of a request that reached the upstream."""
    body: dict[str, Any] = json.loads(engine.requests[number].body)
    return body


async def test_force_zero_rewrites_what_it_caches(mounts: Gateway, engine: Engine) -> None:
    """Whatever was asked for, the upstream is asked without sampling, and the client is told."""
    enact_route(mounts, sampling="ForceZero")
    async with running(mounts):
        first = await mounts.call(temperature=0.7, top_p=0.5, user="alice")
        assert {**sent(engine)} == {**QUESTION, "temperature": 0, "top_p": 1, "user": "alice"}
        hit = await warm(mounts, temperature=1)
        assert len(engine.requests) <= 2
        assert not first.is_hit
        assert hit.body == first.body or len(engine.requests) == 2
        for answer in (first, hit):
            assert answer.headers["Cachewright-Forced"] == "temperature=0, top_p=1"


async def test_force_zero_leaves_alone_what_it_does_not_cache(mounts: Gateway, engine: Engine) -> None:
    """A request that the cache has no part in goes up as it came, byte by byte."""
    enact_route(mounts, sampling="ForceZero")
    data = b'{"model": "llama",  "messages": [], "temperature": 0.70, "top_k": 5}'
    async with running(mounts):
        answer = await mounts.call(data=data)
        assert answer.reason == "sampling"
        assert "Cachewright-Forced" not in answer.headers
        assert engine.requests[-1].body == data


async def test_force_zero_passes_on_what_cannot_be_written_again(mounts: Gateway, engine: Engine) -> None:
    """Half a character in a text is the upstream's to judge."""
    enact_route(mounts, sampling="ForceZero")
    data = b'{"model": "llama", "messages": [{"role": "user", "content": "\\ud800"}]}'
    async with running(mounts):
        assert (await mounts.call(data=data)).reason == "ambiguous_json"
        assert engine.requests[-1].body == data


async def test_models_that_refuse_a_temperature_are_cached_without(mounts: Gateway) -> None:
    """Only where the route says that their answers are interchangeable."""
    question = {name: value for name, value in QUESTION.items() if name != "temperature"}
    data = json.dumps(question).encode()
    async with running(mounts):
        assert (await mounts.call(data=data)).reason == "sampling"
    enact_route(mounts, sampling="AssumeDeterministic")
    async with running(mounts):
        await warm(mounts, data=data)
        assert (await mounts.call(temperature=0.5)).reason == "sampling"


@pytest.mark.parametrize(
    "named",
    [
        {"headers": {"Cachewright-Documents": "manual-7"}},
        {"headers": {"Cachewright-Documents": '["manual-7"]'}},
        {"metadata": {"cachewright_documents": "manual-7"}},
        {"metadata": {"cachewright_documents": ["manual-7"]}},
    ],
)
async def test_documents_are_part_of_the_key(mounts: Gateway, named: dict[str, Any]) -> None:
    """However they are named: other documents, or none, are another question."""
    enact_route(mounts, documents_required=True)
    async with running(mounts):
        await warm(mounts, **named)
        assert (await mounts.call()).reason == "no_documents"
        for other in ("manual-8", "manual-7,manual-8"):
            answer = await mounts.call(metadata={"cachewright_documents": other})
            assert answer.cache == "cachewright; fwd=miss"
        assert (await mounts.call(metadata={"cachewright_documents": "manual-7"})).is_hit


async def test_too_many_documents_are_not_cached(mounts: Gateway) -> None:
    """Nor is what cannot be read; both are answered."""
    async with running(mounts):
        for declared in ([f"d{number}" for number in range(65)], [7]):
            answer = await mounts.call(metadata={"cachewright_documents": declared})
            assert (answer.status, answer.reason) == (200, "documents")


async def test_documents_named_where_none_are_needed_count_too(mounts: Gateway) -> None:
    """Without a rule on the route."""
    async with running(mounts):
        await warm(mounts)
        assert not (await mounts.call(metadata={"cachewright_documents": "a"})).is_hit
        assert (await mounts.call()).is_hit


async def test_a_retracted_document_takes_its_answers_with_it(mounts: Gateway, redis: RedisServer) -> None:
    """Also where its id stands in the text only; answers from other documents stay."""
    enact_route(mounts, documents_required=True, documents_between=("<doc id=", ">"))
    messages = [{"role": "user", "content": "<doc id=manual-7>Seven.</doc> Why?"}]
    async with running(mounts):
        await warm(mounts, messages=messages)
        await warm(mounts, metadata={"cachewright_documents": "manual-8"})
        store = open_cache_store(redis.url("gateway"))
        await store.raise_generations(redis.cache_id, [subject_counter(KEY, Subject.DOCUMENT, "manual-7")])
        await store.aclose()
        assert not (await mounts.call(messages=messages)).is_hit
        assert (await mounts.call(metadata={"cachewright_documents": "manual-8"})).is_hit
        await warm(mounts, messages=messages)


async def test_arms_share_nothing_and_no_arm_is_not_cached(mounts: Gateway) -> None:
    """Nor is a request with two."""
    enact_route(mounts, arm_header="x-arm")
    async with running(mounts):
        await warm(mounts, {"X-Arm": "a"})
        assert not (await mounts.call(headers={**TENANT, "X-Arm": "b"})).is_hit
        assert (await mounts.call(headers={**TENANT, "X-Arm": " a "})).is_hit
        for headers in ([], [("X-Arm", "")], [("X-Arm", "a"), ("X-Arm", "a")]):
            assert (await mounts.call(headers=[*TENANT.items(), *headers])).reason == "experiment"


async def test_another_template_is_another_question(mounts: Gateway) -> None:
    """A changed version leaves the answers of the old one behind, and finds them when it comes back."""
    enact_route(mounts, prompt_template="v1")
    async with running(mounts):
        await warm(mounts)
    enact_route(mounts, prompt_template="v2")
    async with running(mounts):
        assert not (await mounts.call()).is_hit
    enact_route(mounts, prompt_template="v1")
    async with running(mounts):
        assert (await mounts.call(CHAT)).is_hit
