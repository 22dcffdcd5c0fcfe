"""The adversarial set on our gateway, with a real store: no wrong hit, and the others do hit."""

from __future__ import annotations

import asyncio
import json
import random

from tests.adversarial.cases import ARM, ARM_HEADER, ROLE, ROLE_HEADER, TENANT, TENANT_HEADER, load_cases
from tests.adversarial.runner import Verdict, run_cases, told_by
from tests.gateway.harness import Gateway

UNCACHEABLE = frozenset(
    {
        "huge_integer/beyond-64-bits",
        "number_format/two-infinities",
        "unicode/two-lone-surrogates",
    }
)
"""Pairs whose first request is never cached, which is the point of them."""

TENANTS = 40
HEADERS = {TENANT_HEADER: TENANT, ROLE_HEADER: ROLE, ARM_HEADER: ARM}


async def test_no_pair_is_mixed_up(gateway: Gateway) -> None:
    """Not one request of the whole set gets an answer that was computed for another."""
    results = await run_cases(gateway.url, load_cases())
    assert [result.case.id for result in results if result.is_wrong] == []
    assert [result.case.id for result in results if result.is_lost] == []
    idle = {result.case.id for result in results if result.verdict is Verdict.NOT_CACHED}
    assert idle == UNCACHEABLE


async def test_tenants_share_nothing_whoever_asks_first(gateway: Gateway) -> None:
    """Many tenants ask the same few questions in a random order; each answer names the tenant who got it."""
    asking = random.Random(4)  # noqa: S311 - not a secret
    names = [f"tenant{number}" for number in range(TENANTS)] + [TENANT, TENANT.upper(), f"{TENANT}0"]

    async def ask(tenant: str, question: int) -> bool:
        messages = [{"role": "user", "content": f"question {question}"}]
        answer = await gateway.call(headers={**HEADERS, TENANT_HEADER: tenant}, messages=messages)
        told = told_by(answer.body)
        assert told is not None
        assert told["tenant"] == tenant
        assert told["asked"] == f"question {question}"
        return answer.is_hit

    asked = [(tenant, question) for tenant in names for question in range(3)] * 4
    asking.shuffle(asked)
    hits = 0
    for start in range(0, len(asked), 16):
        hits += sum(await asyncio.gather(*(ask(*pair) for pair in asked[start : start + 16])))
    assert hits > len(asked) // 2


async def test_upstream_sees_what_it_digests(gateway: Gateway) -> None:
    """The decision rests on the call number in the answer, so equal requests without a cache differ in it."""
    answers = [await gateway.call(headers=HEADERS, temperature=1) for _ in "12"]
    calls = [json.loads(answer.json()["choices"][0]["message"]["content"])["call"] for answer in answers]
    assert len(set(calls)) == 2
