"""The admin port: stats, and the removal of single entries, for whoever holds the token."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from cachewright.keys.digest import EntryName, tenant_tag
from cachewright.keys.entry_id import entry_id
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.retraction import SETTLE_SECONDS
from e2e.engine.http11 import Request, Response
from tests.gateway.harness import TENANT, Answered, Engine, Gateway, ScriptedUpstream, chat_answer, running
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

KEY = bytes.fromhex("ab" * 32)


async def stored(gateway: Gateway) -> str:
    """Ask until the answer comes from the cache, and return the entry's id."""
    answers: list[Answered] = []

    async def is_hit() -> bool:
        answers.append(await gateway.call())
        return answers[-1].is_hit

    await until(is_hit)
    return answers[-1].entry_id


@pytest.mark.parametrize("token", [None, "", "wrong", "let-me-in-too", "let-me-i"])
@pytest.mark.parametrize("path", ["/stats", "/purge", "/nowhere"])
async def test_without_the_token_nothing_is_told(gateway: Gateway, path: str, token: str | None) -> None:
    """Not even which paths there are."""
    answer = await gateway.admin(path, token=token)
    assert (answer.status, answer.error_code) == (401, "invalid_admin_token")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_two_tokens_are_none(gateway: Gateway) -> None:
    """Who reads which is not left to chance."""
    url = f"http://127.0.0.1:{gateway.process.admin_port}/stats"
    headers = [("Authorization", "Bearer let-me-in")] * 2
    async with gateway.client.get(url, headers=headers) as response:
        assert response.status == 401


async def test_other_paths_and_methods_are_refused(gateway: Gateway) -> None:
    """As errors in JSON."""
    missing = await gateway.admin("/nowhere")
    assert (missing.status, missing.error_code) == (404, "not_found")
    for path, method, allowed in [
        ("/stats", "POST", "GET"),
        ("/purge", "GET", "POST"),
        ("/stats", "DELETE", "GET"),
    ]:
        answer = await gateway.admin(path, method=method)
        assert (answer.status, answer.headers["Allow"]) == (405, allowed)
        assert answer.error_code == "method_not_allowed"


async def test_without_a_mounted_token_the_port_is_not_opened(mounts: Gateway) -> None:
    """No token, no door."""
    (mounts.folder / "admin" / "token").unlink()
    async with running(mounts):
        assert mounts.process.admin_port is None


async def test_a_changed_token_holds_without_a_restart(gateway: Gateway) -> None:
    """The old one opens nothing any more; an empty file changes nothing."""
    gateway.mount("admin/token", "another")

    async def is_known() -> bool:
        return (await gateway.admin("/stats", token="another")).status == 200

    await until(is_known)
    assert (await gateway.admin("/stats")).status == 401
    gateway.mount("admin/token", "")
    errors = "cachewright_configuration_errors_total"

    async def is_counted() -> bool:
        return await gateway.metric(errors) == 1

    await until(is_counted)
    assert (await gateway.admin("/stats", token="another")).status == 200


async def test_nothing_of_it_is_on_the_other_ports(gateway: Gateway) -> None:
    """Clients and scrapers do not reach it."""
    for path in ("/stats", "/purge"):
        assert (await gateway.call(path, method="GET")).status == 404
        assert (await gateway.management(path)).status == 404


async def test_stats_tell_what_was_done(gateway: Gateway) -> None:
    """Hits, misses, reasons, times and keyspaces, but no tenant, prompt or key."""
    await stored(gateway)
    await gateway.call(temperature=1)
    answer = await gateway.admin("/stats")
    assert answer.headers["Cache-Control"] == "no-store"
    stats = answer.json()
    assert (stats["cache"], stats["cacheID"]) == ("ml/support-bot", gateway.policy.cache_id)
    assert stats["notCached"] == {"sampling": 1}
    assert stats["stored"] == 1
    local, exact = stats["layers"]
    misses = stats["requests"]["miss"]
    assert (local["name"], local["hits"], local["misses"]) == ("local", 0, misses + 1)
    assert (exact["name"], exact["hits"], exact["misses"]) == ("exact", 1, misses)
    assert exact["hitRate"] == round(1 / (1 + misses), 4)
    assert exact["ageAtHit"]["count"] == 1
    assert stats["lookup"]["count"] == misses + 1
    assert 0 < stats["lookup"]["p50Seconds"] <= stats["lookup"]["p99Seconds"]
    assert stats["stores"] == [{"name": "redis", "breakerOpen": False}]
    assert stats["record"]["revision"] == 1
    assert stats["record"]["keyspaces"] == [
        {"layer": "Exact", "keyspace": f"{'1' * 16}-1", "since": "2026-11-30T00:00:00Z", "inUse": True}
    ]
    assert "acme" not in answer.body.decode()
    assert "sky" not in answer.body.decode()


async def test_a_dry_run_tells_what_would_go(gateway: Gateway) -> None:
    """And leaves it where it is; it is what happens unless somebody says otherwise."""
    name = await stored(gateway)
    for request in ({"id": name}, {"id": name, "dryRun": True}):
        told = (await gateway.admin("/purge", request)).json()
        assert (told["id"], told["dryRun"], told["found"]) == (name, True, True)
        assert (told["layer"], told["keyspace"]) == ("Exact", f"{'1' * 16}-1")
        assert 0 <= told["ageSeconds"] < 60
        assert 1740 < told["ttlSeconds"] <= 1800
        assert told["sizeBytes"] > 100
        assert "removed" not in told
    assert (await gateway.call()).is_hit


async def test_a_purged_answer_is_asked_for_anew(gateway: Gateway, engine: Engine) -> None:
    """Others stay, and the new answer is stored in its place."""
    name = await stored(gateway)
    told = (await gateway.admin("/purge", {"id": name, "dryRun": False})).json()
    assert (told["found"], told["removed"]) == (True, True)
    calls = len(engine.requests)
    assert not (await gateway.call()).is_hit
    assert len(engine.requests) == calls + 1
    await stored(gateway)


async def test_an_answer_on_its_way_does_not_come_back(tmp_path: Path, redis: RedisServer) -> None:
    """It goes to the client that asked before the purge, and is not stored after it."""
    arrived, released = asyncio.Event(), asyncio.Event()

    async def answer(request: Request) -> Response:
        if request.header("cache-control"):
            arrived.set()
            await released.wait()
        return Response(200, chat_answer())

    async with (
        ScriptedUpstream(answer) as upstream,
        running(Gateway(tmp_path, redis, upstream.url)) as gateway,
    ):
        name = await stored(gateway)
        refresh = asyncio.create_task(gateway.call(headers={**TENANT, "Cache-Control": "no-cache"}))
        await arrived.wait()
        assert (await gateway.admin("/purge", {"id": name, "dryRun": False})).json()["removed"]
        released.set()
        assert (await refresh).status == 200

        async def is_dropped() -> bool:
            return await gateway.metric("cachewright_not_stored_total", reason="changed") == 1

        await until(is_dropped)
        assert not (await gateway.admin("/purge", {"id": name})).json()["found"]


async def test_done_means_that_no_replica_serves_it(
    tmp_path: Path, mounts: Gateway, redis: RedisServer, engine: Engine
) -> None:
    """The report comes late enough for another replica to have forgotten what it holds in memory."""
    other = Gateway(tmp_path / "other", redis, engine.url)
    async with running(mounts), running(other):
        name = await stored(mounts)
        assert await stored(other) == name
        started = asyncio.get_running_loop().time()
        await mounts.admin("/purge", {"id": name, "dryRun": False})
        assert asyncio.get_running_loop().time() - started >= SETTLE_SECONDS
        assert not (await other.call()).is_hit


async def test_what_is_no_id_is_refused(gateway: Gateway) -> None:
    """Ids of other caches too, and fields that nobody reads."""
    tag = tenant_tag(KEY, b"acme")
    foreign = entry_id(b"o" * 32, EntryName("f" * 16, Keyspace("1" * 16, 1), tag, "ab" * 32))
    bad = [
        {},
        [],
        "x",
        {"id": 5},
        {"id": ""},
        {"id": "e" * 129},
        {"id": foreign},
        {"id": foreign, "dryRun": "no"},
    ]
    for request in [*bad, {"id": foreign, "all": True}, {"id": "x" * 20_000}]:
        answer = await gateway.admin("/purge", request)
        assert (answer.status, answer.error_code) == (400, "invalid_purge"), json.dumps(request)[:80]


async def test_a_store_that_is_away_is_told(tmp_path: Path, own_redis: RedisServer, engine: Engine) -> None:
    """A purge that did not happen does not look like one that did."""
    gateway = Gateway(tmp_path, own_redis, engine.url)
    async with running(gateway):
        name = await stored(gateway)
        own_redis.kill()
        answer = await gateway.admin("/purge", {"id": name, "dryRun": False})
        assert (answer.status, answer.error_code) == (503, "store_unavailable")
