"""Exact answers through HTTP: who shares one, who does not, and what the headers say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from e2e.engine import Engine
from tests.gateway.harness import CHAT, QUESTION, TENANT, Answered, Gateway, root_client, running


async def test_the_second_identical_request_is_a_hit(gateway: Gateway, engine: Engine) -> None:
    """The same bytes come from the cache, with age and what remains of the TTL."""
    first = await gateway.call()
    second = await gateway.call()
    assert (first.status, first.cache) == (200, "cachewright; fwd=miss")
    assert second.cache in ("cachewright; hit; ttl=1799", "cachewright; hit; ttl=1800")
    assert second.headers["Age"] == "0"
    assert second.headers["Content-Type"] == "application/json"
    assert second.body == first.body
    assert engine.calls[CHAT] == 1


async def test_other_spellings_are_the_same_request(gateway: Gateway, engine: Engine) -> None:
    """Order of keys, white space, 0 and 0.0, and fields that are no part of the answer."""
    await gateway.call()
    spellings = [
        json.dumps(dict(reversed(QUESTION.items())), indent=1).encode(),
        json.dumps({**QUESTION, "temperature": 0.0}).encode(),
        json.dumps({**QUESTION, "stream": False, "metadata": {"a": "b"}, "user": "u"}).encode(),
    ]
    for body in spellings:
        assert (await gateway.call(data=body)).is_hit
    assert engine.calls[CHAT] == 1


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [{"role": "system", "content": "Be brief."}, *QUESTION["messages"]]},
        {"messages": [{"role": "assistant", "content": QUESTION["messages"][0]["content"]}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"max_tokens": 100},
        {"seed": 1},
        {"logit_bias": {"50256": -100}},
        {"a_field_nobody_knows": 1},
    ],
)
async def test_another_request_is_a_miss(gateway: Gateway, engine: Engine, other: dict[str, Any]) -> None:
    """Whatever differs in a request goes to the upstream."""
    await gateway.call()
    assert (await gateway.call(**other)).cache == "cachewright; fwd=miss"
    assert engine.calls[CHAT] == 2


async def test_two_tenants_never_share(gateway: Gateway, engine: Engine) -> None:
    """The same body of another tenant goes to the upstream, whatever the case or spacing of its name."""
    for name in ("acme", "Acme", "acme2", "acme,acme", "akme"):
        assert (await gateway.call(headers={"X-Tenant-Id": name})).cache == "cachewright; fwd=miss"
    assert (await gateway.call(headers={"x-tenant-id": " acme "})).is_hit
    assert engine.calls[CHAT] == 5


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("X-Tenant-Id", "")],
        [("X-Tenant-Id", " ")],
        [("X-Tenant-Id", "acme"), ("X-Tenant-Id", "acme")],
        [("X-Tenant-Id", "acme"), ("X-Tenant-Id", "evil")],
    ],
)
async def test_without_one_tenant_nothing_is_cached(
    gateway: Gateway, engine: Engine, headers: list[tuple[str, str]]
) -> None:
    """Missing, empty or doubled: answered by the upstream each time, and never stored."""
    await gateway.call()
    for _ in range(2):
        answer = await gateway.call(headers=headers)
        assert (answer.status, answer.reason) == (200, "no_tenant")
    assert engine.calls[CHAT] == 3


async def test_roles_are_set_apart(mounts: Gateway, engine: Engine) -> None:
    """One tenant's roles do not share, and a request without exactly one role is not cached."""
    mounts.enact(tenancy={"role_header": "x-role"})
    async with running(mounts):
        admin, guest = {**TENANT, "X-Role": "admin"}, {**TENANT, "X-Role": "guest"}
        assert [(await mounts.call(headers=headers)).is_hit for headers in (admin, admin, guest, guest)] == [
            False,
            True,
            False,
            True,
        ]
        for headers in ([("X-Role", "")], [], [("X-Role", "admin"), ("X-Role", "admin")]):
            assert (await mounts.call(headers=[*TENANT.items(), *headers])).reason == "no_role"
    assert engine.calls[CHAT] == 5


@pytest.mark.parametrize("source", ["header", "field"])
async def test_users_are_set_apart(mounts: Gateway, engine: Engine, source: str) -> None:
    """Where declared, one tenant's users do not share, and a request without exactly one is not cached."""
    is_header = source == "header"
    mounts.enact(tenancy={"user_header": "x-user"} if is_header else {"user_field": "safety_identifier"})

    async def ask(*users: object) -> Answered:
        if is_header:
            return await mounts.call(headers=[*TENANT.items(), *(("X-User", str(user)) for user in users)])
        named: dict[str, Any] = {"safety_identifier": users[0]} if users else {}
        return await mounts.call(**named, user="whoever")

    async with running(mounts):
        hits = [(await ask(user)).is_hit for user in ("alice", "alice", "bob", "bob")]
        assert hits == [False, True, False, True]
        for users in ((), (" ",), ("alice", "alice") if is_header else (7,)):
            assert (await ask(*users)).reason == "no_user"
    assert engine.calls[CHAT] == 5


async def test_vary_headers_and_query_are_part_of_the_key(mounts: Gateway, engine: Engine) -> None:
    """The declared headers and the query string set answers apart; other headers do not."""
    async with running(mounts):
        await mounts.call()
        assert (await mounts.call(headers={**TENANT, "X-Request-Id": "1"})).is_hit
        for headers in ({"OpenAI-Beta": "x"}, {"OpenAI-Organization": "o"}, {"api-version": "2"}):
            assert not (await mounts.call(headers={**TENANT, **headers})).is_hit
            assert (await mounts.call(headers={**TENANT, **headers})).is_hit
        assert not (await mounts.call(f"{CHAT}?b=1&a=2")).is_hit
        assert (await mounts.call(f"{CHAT}?a=2&b=1")).is_hit
    assert engine.calls[CHAT] == 5


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"temperature": 0.7}, "sampling"),
        ({"temperature": None}, "sampling"),
        ({"temperature": "0"}, "sampling"),
        ({"top_p": 0.5}, "sampling"),
        ({"top_k": 1}, "sampling"),
        ({"n": 2}, "n"),
        ({"model": "another"}, "model"),
        ({"stream": "yes"}, "ambiguous_json"),
        ({"seed": 2**64}, "ambiguous_json"),
        ({"seed": float("nan")}, "ambiguous_json"),
    ],
)
async def test_what_is_not_cached_says_why(
    gateway: Gateway, engine: Engine, fields: dict[str, Any], reason: str
) -> None:
    """Each time the upstream answers, and the reason is in the header and counted."""
    for _ in range(2):
        answer = await gateway.call(**fields)
        assert answer.cache == f"cachewright; fwd=bypass; detail={reason}"
    assert engine.calls[CHAT] == 2
    assert await gateway.metric("cachewright_not_cached_total", reason=reason) == 2


async def test_duplicate_keys_are_passed_on_as_sent(gateway: Gateway, engine: Engine) -> None:
    """What two readers could understand differently is neither looked up nor rewritten."""
    body = b'{"model":"llama","model":"other","messages":[{"role":"user","content":"hi"}],"temperature":0}'
    assert (await gateway.call(data=body)).reason == "ambiguous_json"
    assert engine.requests[-1].body == body


async def test_routes_decide(mounts: Gateway) -> None:
    """A route without layers, with side effects, or for another path caches nothing, each with its reason."""
    route = mounts.policy.routes[0]
    for changes, reason in (
        ({"layers": ()}, "disabled"),
        ({"side_effects": True}, "side_effects"),
        ({"path": "/v1/completions"}, "no_route"),
    ):
        mounts.enact(routes=(route.model_copy(update=changes),))
        async with running(mounts):
            assert (await mounts.call()).reason == reason


async def test_clients_may_narrow(gateway: Gateway, engine: Engine) -> None:
    """no-store neither reads nor writes; no-cache fetches a fresh answer, which replaces the stored one."""
    await gateway.call()
    answer = await gateway.call(headers={**TENANT, "Cache-Control": "max-age=0, No-Store"})
    assert answer.cache == "cachewright; fwd=bypass; detail=client"
    engine.version = "2"
    for headers in ({"Cache-Control": "no-cache"}, {"Pragma": "no-cache"}):
        fresh = await gateway.call(headers={**TENANT, **headers})
        assert fresh.cache == "cachewright; fwd=request; detail=client"
    assert engine.calls[CHAT] == 4
    replaced = await gateway.call()
    assert replaced.is_hit
    assert replaced.body == fresh.body


async def test_no_store_leaves_nothing_behind(gateway: Gateway) -> None:
    """Nothing about the request reaches the store."""
    await gateway.call(headers={**TENANT, "Cache-Control": "no-store"})
    async with root_client(gateway.redis) as client:
        assert await client.keys("*:11*-*") == []
    assert (await gateway.call()).cache == "cachewright; fwd=miss"


async def test_keys_and_headers_betray_nothing(gateway: Gateway) -> None:
    """Neither tenant nor prompt stands in a key, and no header shows a digest that others could compare."""
    first, second = await gateway.call(), await gateway.call()
    async with root_client(gateway.redis) as client:
        keys = [str(key, "ascii") for key in await client.keys("*") if isinstance(key, bytes)]
    entries = [key for key in keys if not key.endswith(":record")]
    assert len(entries) == 1
    assert "acme" not in entries[0]
    digest = entries[0].rpartition(":")[2]
    for answer in (first, second):
        assert not any(digest[:16] in value for value in answer.headers.values())


async def test_the_models_other_name_in_an_answer_is_fine(mounts: Gateway, engine: Engine) -> None:
    """An alias may answer; any other model's answer is relayed and not stored."""
    mounts.enact(model_aliases=("llama-2026-11",))
    async with running(mounts):
        engine._model = "llama-2026-11"
        await mounts.call()
        assert (await mounts.call()).is_hit
        engine._model = "fallback"
        for _ in range(2):
            assert (await mounts.call(seed=1)).cache == "cachewright; fwd=miss"
        assert await mounts.metric("cachewright_not_stored_total", reason="model") == 2
