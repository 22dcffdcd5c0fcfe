"""Who asks: API keys, trusted headers and the upstream's own key, seen from both sides of the gateway."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachewright.errors import InvalidDocument
from cachewright.gateway.api_keys import ApiKeys, KeyHolder
from cachewright.policy.document import TenancyPolicy
from e2e.engine import Engine
from tests.gateway.harness import CHAT, TENANT, Gateway, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

KEYS = """
- {key: sk-acme, tenant: acme}
- {key: sk-acme-2, tenant: acme}
- {key: sk-acme-admin, tenant: acme, role: admin}
- {key: sk-evil, tenant: evil}
"""


def bearer(key: str) -> dict[str, str]:
    """Return the header that presents a key."""
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def with_keys(tmp_path: Path, redis: RedisServer, engine: Engine) -> Gateway:
    """A gateway, not started yet, whose tenants come from API keys."""
    gateway = Gateway(tmp_path, redis, engine.url)
    gateway.enact(tenancy=TenancyPolicy(mode="Required", api_keys=True, role_header="x-role").model_dump())
    gateway.mount("api-keys/keys", KEYS)
    return gateway


async def test_keys_of_one_tenant_share_and_others_do_not(with_keys: Gateway, engine: Engine) -> None:
    """Two keys of a tenant are one asker; a role or another tenant is not."""
    async with running(with_keys):
        hits = [
            (await with_keys.call(headers=bearer(key))).is_hit
            for key in ("sk-acme", "sk-acme-2", "sk-acme-admin", "sk-acme-admin", "sk-evil", "sk-evil")
        ]
    assert hits == [False, True, False, True, False, True]
    assert engine.calls[CHAT] == 3


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "")],
        [("Authorization", "Bearer ")],
        [("Authorization", "Bearer sk-nobody")],
        [("Authorization", "Bearer sk-acm")],
        [("Authorization", "Basic sk-acme")],
        [("Authorization", "sk-acme")],
        [("Authorization", "Bearer sk-acme"), ("Authorization", "Bearer sk-evil")],
        [("X-Tenant-Id", "acme")],
    ],
)
async def test_unknown_keys_are_401(
    with_keys: Gateway, engine: Engine, headers: list[tuple[str, str]]
) -> None:
    """On every path, also for what is cached; the upstream hears nothing of it."""
    async with running(with_keys):
        await with_keys.call(headers=bearer("sk-acme"))
        for path in (CHAT, "/v1/embeddings"):
            answer = await with_keys.call(path, headers=headers)
            assert (answer.status, answer.error_code) == (401, "invalid_api_key")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert len(engine.requests) == 1


async def test_the_role_comes_from_the_key_and_not_from_the_client(
    with_keys: Gateway, engine: Engine
) -> None:
    """With API keys a client's role header is worth nothing and goes nowhere."""
    async with running(with_keys):
        await with_keys.call(headers=bearer("sk-acme"))
        assert (await with_keys.call(headers={**bearer("sk-acme"), "X-Role": "admin"})).is_hit
        assert not (await with_keys.call(headers={**bearer("sk-acme-admin"), "X-Role": "guest"})).is_hit
    assert engine.requests[-1].header("x-role") == ""


async def test_an_api_key_never_reaches_the_upstream(with_keys: Gateway, engine: Engine) -> None:
    """It is between the client and the gateway."""
    async with running(with_keys):
        await with_keys.call(headers=bearer("sk-acme"))
    assert engine.requests[-1].header("authorization") == ""


async def test_the_upstreams_own_key_takes_its_place(with_keys: Gateway, engine: Engine) -> None:
    """For whoever presented a known key."""
    with_keys.enact(upstream={"sends_own_key": True})
    with_keys.mount("upstream/key", "sk-upstream\n")
    async with running(with_keys):
        await with_keys.call(headers=bearer("sk-acme"))
        await with_keys.call("/v1/embeddings", headers=bearer("sk-acme"), input="x")
    assert {request.header("authorization") for request in engine.requests} == {"Bearer sk-upstream"}


async def test_only_known_clients_spend_the_upstreams_key(mounts: Gateway, engine: Engine) -> None:
    """Behind a trusted header, a request without it keeps what credential it has."""
    mounts.enact(upstream={"sends_own_key": True})
    mounts.mount("upstream/key", "sk-upstream")
    async with running(mounts):
        await mounts.call(headers={**TENANT, **bearer("client")})
        await mounts.call(headers=bearer("client"), seed=1)
        await mounts.call(headers=[], seed=2)
    sent = [request.header("authorization") for request in engine.requests]
    assert sent == ["Bearer sk-upstream", "Bearer client", ""]


async def test_keys_are_reloaded_when_the_file_changes(with_keys: Gateway) -> None:
    """A revoked key is refused and a new one known, without a restart; a broken file changes nothing."""
    async with running(with_keys):
        assert (await with_keys.call(headers=bearer("sk-acme"))).status == 200
        with_keys.mount("api-keys/keys", json.dumps([{"key": "sk-new", "tenant": "acme"}]))

        async def is_revoked() -> bool:
            return (await with_keys.call(headers=bearer("sk-acme"))).status == 401

        await until(is_revoked)
        assert (await with_keys.call(headers=bearer("sk-new"))).is_hit
        with_keys.mount("api-keys/keys", "- {key: }")

        async def is_counted() -> bool:
            return await with_keys.metric("cachewright_configuration_errors_total") == 1

        await until(is_counted)
        assert (await with_keys.call(headers=bearer("sk-new"))).is_hit


async def test_reject_refuses_what_bypass_passes_on(mounts: Gateway, engine: Engine) -> None:
    """Under Reject, a request without exactly one tenant is 400, on every path."""
    mounts.enact(tenancy={"on_missing": "Reject"})
    async with running(mounts):
        for headers in ([], [("X-Tenant-Id", "")], [("X-Tenant-Id", "a"), ("X-Tenant-Id", "b")]):
            for path in (CHAT, "/v1/models"):
                answer = await mounts.call(path, method="POST" if path == CHAT else "GET", headers=[*headers])
                assert (answer.status, answer.error_code) == (400, "tenant_missing")
        assert (await mounts.call()).status == 200
    assert len(engine.requests) == 1


async def test_single_mode_is_one_tenant(mounts: Gateway) -> None:
    """Everybody shares, with and without a tenant header that means nothing there."""
    mounts.enact(tenancy={"mode": "Single", "trusted_header": None})
    async with running(mounts):
        await mounts.call(headers=[])
        assert (await mounts.call(headers=TENANT)).is_hit


async def test_a_source_under_single_mode_only_authenticates(mounts: Gateway) -> None:
    """Tenants share, and who has none is not served from the cache."""
    mounts.enact(tenancy={"mode": "Single"})
    async with running(mounts):
        await mounts.call()
        assert (await mounts.call(headers={"X-Tenant-Id": "other"})).is_hit
        assert (await mounts.call(headers=[])).reason == "no_tenant"


SECRET = bytes(32)


def test_keys_are_read_from_yaml_and_json() -> None:
    """Both are lists of the same entries."""
    as_json = json.dumps([{"key": "a", "tenant": "t", "role": "r"}, {"key": "b", "tenant": "t"}])
    for text in ("- {key: a, tenant: t, role: r}\n- {key: b, tenant: t}\n", as_json):
        keys = ApiKeys.parse(text, SECRET, tenant_needed=True)
        assert keys.find(b"a") == KeyHolder("t", "r")
        assert keys.find(b"b") == KeyHolder("t", "")
        assert keys.find(b"c") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sk-hunter2",
        "{",
        "{key: sk-hunter2, tenant: t}",
        "- sk-hunter2",
        "- {key: sk-hunter2}",
        "- {key: sk-hunter2, tenant: ''}",
        "- {key: '', tenant: t}",
        "- {key: 12345678, tenant: t}",
        "- {key: sk-hunter2, tenant: 5}",
        "- {key: sk-hunter2, tenant: t, rol: admin}",
        "- {key: sk-hunter2, tenant: t}\n- {key: sk-hunter2, tenant: u}",
        "- {key: sk-hunter2, tenant: t}\n- {key: sk-hunter2, tenant: t}",
        "- !!python/object/apply:os.system [sk-hunter2]",
    ],
)
def test_a_wrong_list_of_keys_is_refused_without_quoting_it(text: str) -> None:
    """Nothing of the file stands in the message, which is logged."""
    with pytest.raises(InvalidDocument) as caught:
        ApiKeys.parse(text, SECRET, tenant_needed=True)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_keys_need_no_tenant_where_there_is_only_one() -> None:
    """Under Single a key only authenticates."""
    assert ApiKeys.parse("- {key: a}", SECRET, tenant_needed=False).find(b"a") == KeyHolder("", "")
