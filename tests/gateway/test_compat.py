"""Clients of other gateways: what they send narrows, and LiteLLM's controls go no further than here."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from cachewright.policy.compat import BODY_CONTROLS, HEADER_CONTROLS
from tests.gateway.harness import QUESTION, TENANT, Answered, Engine, Gateway
from tests.support.waiting import until


async def hit(gateway: Gateway, headers: dict[str, str] | None = None, **fields: Any) -> Answered:
    """Ask until the answer comes from the cache."""
    answers: list[Answered] = []

    async def is_hit() -> bool:
        answers.append(await gateway.call(headers={**TENANT, **(headers or {})}, **fields))
        return answers[-1].is_hit

    await until(is_hit)
    return answers[-1]


def ttl(answer: Answered) -> int:
    """Return how long an answer lives on."""
    return int(answer.cache.partition("ttl=")[2])


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({"x-portkey-cache-force-refresh": "true"}, {}),
        ({}, {"cache": {"no-cache": True}}),
        ({"x-bf-cache-type": "semantic"}, {}),
    ],
)
async def test_a_fresh_answer_replaces_the_stored_one(
    gateway: Gateway, headers: dict[str, str], fields: dict[str, Any]
) -> None:
    """As with `Cache-Control: no-cache`."""
    old = await hit(gateway)
    fresh = await gateway.call(headers={**TENANT, **headers}, **fields)
    assert fresh.cache == "cachewright; fwd=request; detail=client"
    assert fresh.entry_id == old.entry_id


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({"cf-aig-skip-cache": "true"}, {}),
        ({"x-bf-cache-no-store": "true"}, {}),
        ({"cf-aig-cache-ttl": "soon"}, {}),
        ({}, {"cache": {"no-store": True}}),
        ({}, {"cache": {"ttl": 0}}),
    ],
)
async def test_the_cache_can_be_left_out(
    gateway: Gateway, headers: dict[str, str], fields: dict[str, Any]
) -> None:
    """Nothing is served from it or stored in it."""
    for _ in range(2):
        answer = await gateway.call(headers={**TENANT, **headers}, **fields)
        assert answer.cache == "cachewright; fwd=bypass; detail=client"
    assert await gateway.metric("cachewright_stored_total") == 0


async def test_old_answers_can_be_refused(gateway: Gateway) -> None:
    """A fresh enough one is taken."""
    await hit(gateway)
    assert (await gateway.call(cache={"s-maxage": 600})).is_hit
    assert not (await gateway.call(cache={"s-maxage": 0})).is_hit


@pytest.mark.parametrize(
    ("headers", "fields"),
    [({"cf-aig-cache-ttl": "60"}, {}), ({"x-bf-cache-ttl": "1m"}, {}), ({}, {"cache": {"ttl": 60}})],
)
async def test_an_answers_life_can_be_shortened(
    gateway: Gateway, headers: dict[str, str], fields: dict[str, Any]
) -> None:
    """For everybody who shares it, in the store and in memory."""
    await hit(gateway, headers, **fields)
    assert ttl(await gateway.call()) <= 60


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({"cf-aig-cache-ttl": "999999"}, {}),
        ({"x-bf-cache-ttl": "999h"}, {}),
        ({}, {"cache": {"ttl": 999_999}}),
    ],
)
async def test_no_life_is_lengthened(
    gateway: Gateway, headers: dict[str, str], fields: dict[str, Any]
) -> None:
    """What is declared is the most."""
    assert ttl(await hit(gateway, headers, **fields)) <= 1800


@pytest.mark.parametrize("name", ["x-portkey-cache-namespace", "cf-aig-cache-key", "x-bf-cache-key"])
async def test_a_partition_is_shared_within_alone(gateway: Gateway, name: str) -> None:
    """It joins the key; two questions with the same one stay two questions."""
    first = await hit(gateway, {name: "one"})
    other = await gateway.call(headers={**TENANT, name: "two"})
    none = await gateway.call()
    question = await gateway.call(headers={**TENANT, name: "one"}, seed=1)
    assert not any(answer.is_hit for answer in (other, none, question))
    assert len({answer.entry_id for answer in (first, other, none, question)}) == 4


async def test_a_namespace_in_the_body_is_a_partition(gateway: Gateway) -> None:
    """LiteLLM's, apart from a header of that name."""
    first = await hit(gateway, cache={"namespace": "one"})
    assert not (await gateway.call(cache={"namespace": "two"})).is_hit
    assert not (await gateway.call(headers={**TENANT, "namespace": "one"})).is_hit
    assert (await gateway.call(cache={"namespace": "one"})).entry_id == first.entry_id


@pytest.mark.parametrize(
    "changes", [{}, {"temperature": 1}, {"stream": True}], ids=["miss", "bypass", "stream"]
)
async def test_the_object_goes_no_further(gateway: Gateway, engine: Engine, changes: dict[str, Any]) -> None:
    """Neither to the upstream nor into the key; everything else does."""
    await gateway.call(cache={"ttl": 600, "anything": 1}, a_field=[1, 2.5], **changes)
    sent = json.loads(engine.requests[-1].body)
    assert "cache" not in sent
    assert sent["a_field"] == [1, 2.5]
    assert sent["messages"] == QUESTION["messages"]


async def test_the_object_is_no_part_of_the_key(gateway: Gateway) -> None:
    """With and without it, the answer is the same."""
    plain = await hit(gateway)
    assert (await gateway.call(cache={"ttl": 600})).entry_id == plain.entry_id


async def test_the_object_in_a_compressed_body(gateway: Gateway, engine: Engine) -> None:
    """What goes on is ours, and plain."""
    packed = gzip.compress(json.dumps({**QUESTION, "cache": {}}).encode())
    await gateway.call(headers={**TENANT, "Content-Encoding": "gzip"}, data=packed)
    assert json.loads(engine.requests[-1].body) == QUESTION
    assert engine.requests[-1].header("content-encoding") == ""


async def test_another_field_of_that_name_goes_on(gateway: Gateway, engine: Engine) -> None:
    """What is no object is the upstream's, and part of the key."""
    await hit(gateway)
    assert not (await gateway.call(cache=True)).is_hit
    assert json.loads(engine.requests[-1].body)["cache"] is True


EAGER: dict[str, Any] = {"no-cache": False, "no-store": False, "use-cache": True, "ttl": 600, "s-maxage": 600}


@pytest.mark.parametrize("control", [*HEADER_CONTROLS, *BODY_CONTROLS], ids=lambda control: control.name)
async def test_none_makes_a_request_cacheable(gateway: Gateway, control: Any) -> None:
    """Nor shares it between tenants, whatever it says."""
    is_header = control in HEADER_CONTROLS
    for value in ("true", "600", "shared"):
        headers: dict[str, str] = {control.name: value} if is_header else {}
        fields: dict[str, Any] = (
            {} if is_header else {"cache": {**EAGER, control.name: EAGER.get(control.name, value)}}
        )
        for _ in range(2):
            sampled = await gateway.call(headers={**TENANT, **headers}, temperature=1, **fields)
            nobody = await gateway.call(headers={"x-other": "y", **headers}, **fields)
            assert not sampled.is_hit
            assert not nobody.is_hit
        await gateway.call(headers={**TENANT, **headers}, **fields)
        theirs = await gateway.call(headers={"X-Tenant-Id": f"umbrella-{value}", **headers}, **fields)
        assert not theirs.is_hit
