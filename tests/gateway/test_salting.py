"""Salts for the engine's prefix cache, on a stand-in that has one: who shares with whom, and what shows."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cachewright.policy.document import PrefixPolicy
from e2e.engine import Engine, PrefixCache
from e2e.engine.http11 import Request
from tests.gateway.harness import (
    CHAT,
    MODEL,
    TENANT,
    Answered,
    Gateway,
    Response,
    ScriptedUpstream,
    running,
)
from tests.support.chat_logs import RULES

OTHER = {"X-Tenant-Id": "globex"}
NOBODY: dict[str, str] = {}
ASKS_TO_SHARE = {"Cachewright-Prefix": "shared"}
BINDING = "prefix binding"


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    """A stand-in engine with vLLM's prefix cache."""
    async with Engine(port=0, prefix_cache=PrefixCache()) as started:
        yield started


@pytest.fixture
async def gateway(mounts: Gateway) -> AsyncIterator[Gateway]:
    """A gateway that sends salts."""
    mounts.record = mounts.record.with_layer("Prefix", "7" * 16, BINDING, "2026-11-30T00:00:00Z")
    mounts.mount("record/record.json", mounts.record.to_json())
    mounts.enact(prefix=PrefixPolicy(binding=BINDING, paths=(CHAT, "/v1/completions")))
    async with running(mounts):
        yield mounts


async def known_tokens(
    gateway: Gateway, question: str, headers: dict[str, str] = TENANT, **fields: Any
) -> int:
    """Ask behind a long system prompt, sampled, and return how many tokens the engine knew."""
    answered = await ask(gateway, question, headers, **fields)
    assert answered.status == 200, answered.body
    return int(answered.json()["usage"]["prompt_tokens_details"]["cached_tokens"])


async def ask(gateway: Gateway, question: str, headers: dict[str, str] = TENANT, **fields: Any) -> Answered:
    """Ask behind a long system prompt, sampled unless told otherwise."""
    messages = [{"role": "system", "content": RULES}, {"role": "user", "content": question}]
    return await gateway.call(headers=headers, **{"messages": messages, "temperature": 1, **fields})


def salts(engine: Engine) -> list[str | None]:
    """Return the salts of the requests that the engine got."""
    return [json.loads(request.body).get("cache_salt") for request in engine.requests]


@pytest.mark.parametrize("temperature", [0, 1], ids=["cacheable", "sampled"])
async def test_a_tenant_shares_with_itself_alone(gateway: Gateway, temperature: int) -> None:
    """The same tenant's next question finds the system prompt; another tenant's does not."""
    assert await known_tokens(gateway, "one", temperature=temperature) == 0
    assert await known_tokens(gateway, "two", OTHER, temperature=temperature) == 0
    assert await known_tokens(gateway, "three", temperature=temperature) >= 64
    assert await known_tokens(gateway, "four", OTHER, temperature=temperature) >= 64
    assert await gateway.metric("cachewright_prefix_salts_total", scope="tenant") == 4


async def test_nobody_finds_what_was_computed_before_a_switch(gateway: Gateway, engine: Engine) -> None:
    """The first request after the record has moved on carries another salt, and none finds the old blocks."""
    assert await known_tokens(gateway, "one") == 0
    assert await known_tokens(gateway, "two") > 0
    moved = gateway.record.with_layer("Prefix", "8" * 16, BINDING, "2026-11-30T01:00:00Z")
    gateway.process._assembly.known_record(gateway.policy.cache_id).offer(moved)
    assert await known_tokens(gateway, "three") == 0
    assert await known_tokens(gateway, "four") > 0
    assert len(set(salts(engine))) == 2


async def test_a_client_without_a_tenant_shares_with_nobody(gateway: Gateway) -> None:
    """Two such requests may come from two people."""
    assert await known_tokens(gateway, "one", NOBODY) == 0
    assert await known_tokens(gateway, "one", NOBODY) == 0
    assert await gateway.metric("cachewright_prefix_salts_total", scope="alone") == 2


async def test_without_a_keyspace_tenants_stay_apart(gateway: Gateway) -> None:
    """A record that this gateway cannot use gives no reason to send prompts without a salt."""
    gateway.enact(prefix=PrefixPolicy(binding="another", paths=(CHAT,)))
    gateway.process._refresh()
    assert await known_tokens(gateway, "one") == 0
    assert await known_tokens(gateway, "two", OTHER) == 0
    assert await known_tokens(gateway, "three") > 0


async def test_sharing_needs_the_objects_permission_and_the_clients_wish(gateway: Gateway) -> None:
    """Tenants share where the route is named and both ask for it; nowhere else."""
    asking, other = {**TENANT, **ASKS_TO_SHARE}, {**OTHER, **ASKS_TO_SHARE}
    assert await known_tokens(gateway, "one", asking) == 0
    assert await known_tokens(gateway, "two", other) == 0
    policy = PrefixPolicy(binding=BINDING, paths=(CHAT,), shared_routes=("default",))
    gateway.enact(prefix=policy)
    gateway.process._refresh()
    assert await known_tokens(gateway, "three", asking) == 0
    assert await known_tokens(gateway, "four", other) > 0
    assert await gateway.metric("cachewright_prefix_salts_total", scope="shared") == 2


async def test_a_clients_own_salt_is_replaced(gateway: Gateway, engine: Engine) -> None:
    """Two tenants whose programs send the same salt do not meet by it, in a parsed body or a long one."""
    long = "x" * 2 * gateway.policy.max_cacheable_body_bytes
    for headers in (TENANT, OTHER):
        assert await known_tokens(gateway, "one", headers, cache_salt="mine") == 0
        assert (await ask(gateway, long, headers, cache_salt="mine")).status == 200
    assert "mine" not in salts(engine)
    assert len(set(salts(engine))) == 2


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_a_body_that_is_passed_by_is_salted(gateway: Gateway, engine: Engine, encoding: str) -> None:
    """Requests that are never looked up carry their salt too, unpacked where they came compressed."""
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "one"}]}).encode()
    for padding in (b"", b" " * 2 * gateway.policy.max_cacheable_body_bytes):
        data = body.rstrip(b"}") + padding + b"}"
        data = gzip.compress(data) if encoding == "gzip" else data
        headers = {**TENANT, "Cache-Control": "no-store", "Content-Encoding": encoding}
        assert (await gateway.call(headers=headers, data=data)).status == 200
    assert len(set(salts(engine))) == 1
    assert None not in salts(engine)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [(b"[]", ""), (b"", ""), ('{"model": "m"}'.encode("utf-16"), ""), (b"{}", "br"), (b"{}", "gzip")],
    ids=["array", "empty", "utf-16", "unknown-encoding", "broken-gzip"],
)
async def test_what_cannot_be_salted_is_refused(
    gateway: Gateway, engine: Engine, data: bytes, encoding: str
) -> None:
    """No engine reads such a body, or one reads it without a salt: neither is passed on."""
    headers = {**TENANT, "Content-Encoding": encoding} if encoding else TENANT
    answered = await gateway.call(headers=headers, data=data)
    assert (answered.status, answered.error_code) == (400, "not_an_object")
    assert not engine.requests


async def test_other_paths_carry_no_salt(gateway: Gateway, engine: Engine) -> None:
    """An engine may refuse a field that it does not know."""
    answered = await gateway.call("/v1/embeddings", data=b'{"model": "m", "input": "a"}')
    assert answered.status == 200
    assert salts(engine) == [None]


async def test_no_client_and_no_log_sees_a_salt(
    gateway: Gateway, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither answer, stream, error, metric nor log shows it."""
    seen = b""
    for fields in ({}, {"stream": True}, {"temperature": 0}, {"messages": "none"}):
        answered = await ask(gateway, "one", **fields)
        seen += answered.body + repr(answered.headers).encode()
    seen += (await gateway.management("/metrics")).body
    seen += "".join(capfd.readouterr()).encode()
    sent = {salt for salt in salts(engine) if salt}
    assert len(sent) == 1
    assert not any(salt.encode() in seen for salt in sent)


@pytest.mark.parametrize("temperature", [0, 1], ids=["cacheable", "sampled"])
async def test_an_error_that_quotes_the_request_hides_its_salt(mounts: Gateway, temperature: int) -> None:
    """Engines name the input that they refuse; what is ours in it comes out as stars."""

    async def quoting(request: Request) -> Response:
        return Response(422, request.body)

    async with ScriptedUpstream(quoting) as upstream:
        prefix = PrefixPolicy(binding=BINDING, paths=(CHAT,))
        mounts.enact(upstream={"url": f"{upstream.url}/v1"}, prefix=prefix)
        async with running(mounts):
            answered = await mounts.call(temperature=temperature)
            assert (answered.status, answered.json()["cache_salt"]) == (422, "*" * 43)
            assert json.loads(upstream.requests[-1].body)["cache_salt"] != "*" * 43


async def test_the_layer_cannot_be_retracted(gateway: Gateway) -> None:
    """What it would take is in the engines; to say that it was done would be a lie."""
    refused = await gateway.admin("/retract", {"layer": "Prefix", "dryRun": True})
    assert refused.status == 400
    assert b"has the layers Exact" in refused.body
    counted = (await gateway.admin("/retract", {"all": True, "dryRun": True})).json()
    assert [each["layer"] for each in counted["keyspaces"]] == ["Exact"]
