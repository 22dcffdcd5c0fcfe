"""Retraction through the admin port: counted beforehand, done everywhere when it says so, at one cost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from cachewright.cli.main import main
from cachewright.keys.record import KeyspaceState, PastKeyspace
from cachewright.stores.redis_record import open_record_store
from e2e.engine import Engine
from tests.gateway.harness import ADMIN_TOKEN, TENANT, Answered, Gateway, root_client, running
from tests.support.redis_servers import RedisServer, run_redis
from tests.support.waiting import until

OTHER = {"X-Tenant-Id": "evil"}
QUOTING = {**TENANT, "Cachewright-Documents": "manual-7, faq"}


@pytest.fixture
async def pair(tmp_path: Path, redis: RedisServer, engine: Engine) -> AsyncIterator[tuple[Gateway, Gateway]]:
    """Two replicas with roles and users."""
    both = (Gateway(tmp_path / "first", redis, engine.url), Gateway(tmp_path / "second", redis, engine.url))
    for gateway in both:
        gateway.enact(tenancy={"role_header": "x-role", "user_header": "x-user"})
    async with running(both[0]), running(both[1]):
        yield both


async def warm(gateways: tuple[Gateway, ...], headers: dict[str, str], **fields: Any) -> None:
    """Ask until each replica answers from its own memory."""
    for gateway in gateways:
        before = await gateway.metric("cachewright_requests_total", layer="local", outcome="hit")

        async def is_local(gateway: Gateway = gateway, before: float = before) -> bool:
            await gateway.call(headers=headers, **fields)
            return await gateway.metric("cachewright_requests_total", layer="local", outcome="hit") > before

        await until(is_local)


async def retract(gateway: Gateway, **wanted: Any) -> Answered:
    """Retract for good."""
    return await gateway.admin("/retract", {**wanted, "dryRun": False})


def asking(headers: dict[str, str], role: str = "guest", user: str = "bob") -> dict[str, str]:
    """Add a role and a user."""
    return {**headers, "X-Role": role, "X-User": user}


@pytest.mark.parametrize(
    ("wanted", "gone", "kept"),
    [
        ({"tenant": "acme"}, asking(TENANT), asking(OTHER)),
        ({"document": "manual-7"}, asking(QUOTING), asking(TENANT)),
        ({"role": "admin"}, asking(TENANT, "admin"), asking(TENANT)),
        ({"user": "älice"}, asking(TENANT, user="älice"), asking(TENANT)),
    ],
    ids=["tenant", "document", "role", "user"],
)
async def test_when_it_is_done_no_replica_serves_it(
    pair: tuple[Gateway, Gateway], wanted: dict[str, str], gone: dict[str, str], kept: dict[str, str]
) -> None:
    """Neither from the store nor from its memory; everything else is served on, and new answers are kept."""
    for headers in (gone, kept):
        await warm(pair, headers)
    done = await retract(pair[0], **wanted)
    assert (done.status, done.json()["done"]) == (200, True)
    assert 2 <= done.json()["seconds"] < 4
    for gateway in pair:
        assert (await gateway.call(headers=kept)).is_hit
    assert not (await pair[1].call(headers=gone)).is_hit
    await warm(pair, gone)


@pytest.mark.parametrize("wanted", [{"layer": "Exact"}, {"all": True}])
async def test_a_layer_and_all_are_retracted(pair: tuple[Gateway, Gateway], wanted: dict[str, Any]) -> None:
    """Whoever asked; the keyspace stays, and fills again."""
    for headers in (asking(TENANT), asking(OTHER)):
        await warm(pair, headers)
    assert (await retract(pair[1], **wanted)).status == 200
    for headers in (asking(TENANT), asking(OTHER)):
        assert not (await pair[0].call(headers=headers)).is_hit
        await warm(pair, headers)


async def test_one_answer_is_retracted_by_its_id(gateway: Gateway) -> None:
    """As purge does it."""
    await warm((gateway,), TENANT)
    name = (await gateway.call()).entry_id
    told = (await gateway.admin("/retract", {"id": name})).json()
    assert (told["found"], told["dryRun"]) == (True, True)
    assert (await retract(gateway, id=name)).json()["removed"] is True
    assert not (await gateway.call()).is_hit


async def test_a_rollback_brings_back_nothing_retracted(gateway: Gateway) -> None:
    """What was retained meanwhile is out of reach too; the rest of it hits again."""
    first = gateway.record
    for headers in (QUOTING, TENANT):
        await warm((gateway,), headers)
    operator = open_record_store(gateway.redis.url("operator"))
    await operator.publish_record(gateway.rotate())
    assert not (await gateway.call(headers=QUOTING)).is_hit
    assert (await retract(gateway, document="faq")).status == 200
    await operator.publish_record(replace(first, revision=3, incarnation=2))
    await operator.aclose()
    assert (await gateway.call()).is_hit
    assert not (await gateway.call(headers=QUOTING)).is_hit


async def count(gateway: Gateway, **wanted: Any) -> int:
    """Return how many entries a retraction would reach."""
    told = (await gateway.admin("/retract", wanted)).json()
    assert (told["dryRun"], told["complete"]) == (True, True)
    return int(told["entries"])


async def test_a_dry_run_counts_and_changes_nothing(gateway: Gateway) -> None:
    """Entries by what they depend on, in keyspaces in use and retained, as far as they are in reach."""
    for seed in range(3):
        await warm((gateway,), QUOTING, seed=seed)
    for headers in (TENANT, OTHER):
        await warm((gateway,), headers)
    layer = gateway.record.layers["Exact"]
    expected = {"tenant": ("acme", 4), "document": ("faq", 3), "layer": ("Exact", 5), "role": ("admin", 0)}
    for kind, (name, entries) in expected.items():
        assert await count(gateway, **{kind: name}) == entries, kind
    assert await count(gateway, all=True) == 5
    past = PastKeyspace("Exact", layer.keyspace, layer.binding, KeyspaceState.RETAINED, "t", "t")
    operator = open_record_store(gateway.redis.url("operator"))
    await operator.publish_record(replace(gateway.rotate(), past=(past,)))
    await operator.aclose()
    await gateway.call(headers=QUOTING)

    async def is_counted() -> bool:
        return await count(gateway, document="faq") == 4

    await until(is_counted)
    told = (await gateway.admin("/retract", {"document": "faq"})).json()["keyspaces"]
    assert {(each["state"], each["entries"]) for each in told} == {("active", 1), ("retained", 3)}
    assert (await gateway.call(headers=QUOTING)).is_hit
    await retract(gateway, document="manual-7")
    assert await count(gateway, document="manual-7") == 0


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"tenant": "acme", "document": "faq"},
        {"tenant": ""},
        {"tenant": 7},
        {"tenant": "acme", "dryRun": "no"},
        {"all": False},
        {"all": "yes"},
        {"layer": "Prefix"},
        {"user": "alice"},  # as users are not set apart
        {"colour": "red"},
        {"id": "no-id"},
        ["tenant"],
    ],
    ids=str,
)
async def test_what_is_not_understood_is_refused(gateway: Gateway, wanted: Any) -> None:
    """Nothing is guessed at, and a wish that names two things is no wish."""
    answer = await gateway.admin("/retract", wanted)
    assert (answer.status, answer.error_code) == (400, "invalid_retract")


async def test_no_name_is_told_or_logged(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the tenant's nor the document's."""
    for wanted in ({"tenant": "zanzibar"}, {"document": "zanzibar-7"}):
        answers = [await gateway.admin("/retract", wanted), await retract(gateway, **wanted)]
        assert all(b"zanzibar" not in answer.body for answer in answers)
    told = capsys.readouterr()
    assert "zanzibar" not in told.out + told.err


async def test_a_store_that_is_away_gives_no_promise(tmp_path: Path, engine: Engine) -> None:
    """503, and the same again once it is back."""
    with run_redis("valkey") as server:
        gateway = Gateway(tmp_path, server, engine.url)
        async with running(gateway):
            server.kill()
            assert (await retract(gateway, tenant="acme")).status == 503
            assert (await gateway.admin("/retract", {"tenant": "acme"})).status == 503
            server.restart()

            async def is_done() -> bool:
                return (await retract(gateway, tenant="acme")).status == 200

            await until(is_done)


async def commands(client: Redis) -> int:
    """Count the commands that the store has carried out, those within scripts included."""
    stats = await client.info("commandstats")
    counted = ("eval", "evalsha", "hget", "hset", "hincrby", "hmget", "get", "set", "scan", "del", "unlink")
    return sum(int(stats.get(f"cmdstat_{name}", {}).get("calls", 0)) for name in counted)


async def test_the_cost_does_not_grow_with_the_entries(gateway: Gateway, redis: RedisServer) -> None:
    """With 10 entries as with 100,000: a bounded number of commands, and no walk over the keys."""
    await warm((gateway,), TENANT)
    name = gateway.record.layers["Exact"].keyspace
    spent = []
    async with root_client(redis) as client:
        for entries in (10, 100_000):
            for begin in range(0, entries, 10_000):
                numbers = range(begin, min(entries, begin + 10_000))
                keys = [f"{{cw1:{redis.cache_id}:{n % 64:02d}}}:{name}:tag:{n:064x}" for n in numbers]
                await client.mset(dict.fromkeys(keys, b"x"))
            await client.config_resetstat()
            assert (await retract(gateway, document="faq")).status == 200
            spent.append(await commands(client))
    # Nearly all of it are the gateway's own looks at the marks beside; a walk would take 500 steps more.
    assert max(spent) < 2000
    assert abs(spent[1] - spent[0]) < 400


async def test_the_command(gateway: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """First how much would go, then it goes."""
    token = tmp_path / "token"
    token.write_text(ADMIN_TOKEN)
    words = ["--url", f"http://127.0.0.1:{gateway.process.admin_port}", "--token-file", str(token)]
    await warm((gateway,), QUOTING)
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["retract", "--document", "faq", *words]) == 0
    told = capsys.readouterr()
    assert (json.loads(told.out)["entries"], "--yes" in told.err) == (1, True)
    assert (await gateway.call(headers=QUOTING)).is_hit
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["retract", "--document", "faq", "--yes", *words]) == 0
    assert json.loads(capsys.readouterr().out)["done"] is True
    assert not (await gateway.call(headers=QUOTING)).is_hit
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["retract", "--layer", "Prefix", *words]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
