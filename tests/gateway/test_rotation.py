"""The record: switches, late mounts, emptied stores and old policies, seen from a client."""

from __future__ import annotations

import pytest

from cachewright.keys.record import Record
from cachewright.stores.redis_record import open_record_store
from e2e.engine import Engine
from tests.gateway.harness import CHAT, Gateway, Response, ScriptedUpstream, chat_answer, root_client, running
from tests.support.waiting import until


async def publish(gateway: Gateway, record: Record) -> None:
    """Do as the operator does after it has changed the record."""
    store = open_record_store(gateway.redis.url("operator"))
    await store.publish_record(record)
    await store.aclose()


async def test_the_next_identical_request_after_a_bump_misses(gateway: Gateway, engine: Engine) -> None:
    """From the moment the store's copy is published, before any mounted file changes."""
    await gateway.call()
    assert (await gateway.call()).is_hit
    engine.version = "2"
    await publish(gateway, gateway.rotate())
    after = await gateway.call()
    assert after.cache == "cachewright; fwd=miss"
    assert (await gateway.call()).body == after.body
    assert engine.calls[CHAT] == 2


async def test_a_mounted_record_alone_switches_too(gateway: Gateway, engine: Engine) -> None:
    """Where the store has not heard of it, the gateway tells it and misses."""
    await gateway.call()
    gateway.mount("record/record.json", gateway.rotate().to_json())

    async def misses() -> bool:
        return not (await gateway.call()).is_hit

    await until(misses)
    assert engine.calls[CHAT] == 2
    async with root_client(gateway.redis) as client:
        revisions = {await client.hget(key, "revision") for key in await client.keys("*:record")}
    assert revisions == {b"2"}


async def test_a_lower_mounted_record_changes_nothing(gateway: Gateway) -> None:
    """A stale mount cannot bring an old keyspace back."""
    old = gateway.record
    await publish(gateway, gateway.rotate())
    assert not (await gateway.call()).is_hit
    gateway.mount("record/record.json", old.to_json() + " ")

    async def was_read() -> bool:
        return gateway.process._record == old and "record" in gateway.process._seen

    await until(was_read)
    assert (await gateway.call()).is_hit


async def test_an_answer_from_before_a_switch_is_not_served_after_it(
    mounts: Gateway,
) -> None:
    """The record changes while the upstream computes: the answer is relayed and not stored."""

    async def answer_late(_request: object) -> Response:
        if len(upstream.requests) == 1:
            await publish(mounts, mounts.rotate())
        return Response(body=chat_answer())

    async with ScriptedUpstream(answer_late) as upstream:
        mounts.enact(upstream={"url": f"{upstream.url}/v1"})
        async with running(mounts):
            assert (await mounts.call()).status == 200
            assert (await mounts.call()).cache == "cachewright; fwd=miss"
            assert (await mounts.call()).is_hit
            assert await mounts.metric("cachewright_not_stored_total", reason="changed") == 1
    assert len(upstream.requests) == 2


async def test_an_emptied_store_heals_without_the_operator(gateway: Gateway, engine: Engine) -> None:
    """The first request after it misses and puts the record back; its answer is stored already."""
    await gateway.call()
    async with root_client(gateway.redis) as client:
        await client.flushall()
        assert not (await gateway.call()).is_hit
        assert (await gateway.call()).is_hit
        assert len(await client.keys("*:record")) == 64
    assert engine.calls[CHAT] == 2


async def test_an_empty_store_has_the_record_before_the_first_request(gateway: Gateway) -> None:
    """A gateway brings it when it starts, so that the first answer can be stored within any budget."""
    async with root_client(gateway.redis) as client:
        assert len(await client.keys("*:record")) == 64


async def test_an_old_policy_never_writes_into_a_new_keyspace(gateway: Gateway) -> None:
    """After the record is bound to another policy, a gateway that has not got it only passes on."""
    await gateway.call()
    await publish(gateway, gateway.rotate(binding="another binding"))
    for _ in range(2):
        assert (await gateway.call()).reason == "policy_outdated"
    async with root_client(gateway.redis) as client:
        assert await client.keys(f"*:{'2' * 16}-*") == []


async def test_a_new_policy_is_used_as_soon_as_both_agree(gateway: Gateway) -> None:
    """Policy first, record later: uncached in between, cached once the store's copy names the binding."""
    gateway.enact(binding="another binding")

    async def is_outdated() -> bool:
        return (await gateway.call()).reason == "policy_outdated"

    await until(is_outdated)
    await publish(gateway, gateway.rotate(binding="another binding"))

    async def is_hit() -> bool:
        return (await gateway.call()).is_hit

    await until(is_hit)


@pytest.mark.parametrize("text", ["", "{", '{"format": 2}'])
async def test_a_broken_record_leaves_the_last_good_in_use(gateway: Gateway, text: str) -> None:
    """Hits go on, and the error is counted."""
    await gateway.call()
    gateway.mount("record/record.json", text)

    async def is_counted() -> bool:
        return await gateway.metric("cachewright_configuration_errors_total") >= 1

    await until(is_counted)
    assert (await gateway.call()).is_hit
    assert (await gateway.management("/readyz")).status == 200


async def test_without_a_record_requests_are_answered_uncached(mounts: Gateway) -> None:
    """The gateway is not ready, says so, and still answers whoever asks."""
    (mounts.folder / "record/record.json").unlink()
    async with running(mounts):
        assert (await mounts.management("/readyz")).status == 503
        assert (await mounts.call()).reason == "no_record"


async def test_another_caches_record_is_refused(mounts: Gateway) -> None:
    """A record with another cache id is no record."""
    mounts.mount(
        "record/record.json", Record("f" * 16, 0, 0).with_layer("Exact", "1" * 16, "binding", "t").to_json()
    )
    async with running(mounts):
        assert (await mounts.call()).reason == "no_record"
        assert (await mounts.management("/readyz")).status == 503
