"""`/v1/embeddings` through the gateway: cached one by one, in order, always what the embedder would give."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import time
from array import array
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from openai import AsyncOpenAI
from psycopg.sql import SQL, Identifier

from cachewright.keys.digest import tenant_tag
from cachewright.keys.embedding_identity import PROBE_TEXT, EmbeddingIdentity
from cachewright.keys.generations import tenant_counter
from cachewright.keys.record import KeyspaceState, PastKeyspace
from cachewright.layers.embedding_probe import PROBE_TENANT
from cachewright.policy.document import EmbedderPolicy, EmbeddingPolicy, PostgresPolicy
from cachewright.stores.redis_entries import open_cache_store
from e2e.engine import Engine
from tests.embedders.server import DIMENSIONS, EmbeddingServer, vector_of
from tests.gateway.harness import TENANT, UNHURRIED_SECONDS, Answered, Gateway, root_client, running
from tests.support.postgres_servers import PostgresServer
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

PATH = "/v1/embeddings"
EMBEDDER = "bge-small"
IDENTITY = EmbeddingIdentity("endpoint", EMBEDDER, "1", DIMENSIONS, 512)
OTHER_TENANT = {"X-Tenant-Id": "globex"}
FULL_MISS = "cachewright; fwd=miss"
PATIENCE_SECONDS = 60.0


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    """Return an embedder on loopback."""
    started = EmbeddingServer()
    await started.start()
    yield started
    await started.aclose()


@pytest.fixture
def embedding(mounts: Gateway, server: EmbeddingServer) -> Gateway:
    """Return a gateway with the embedding layer, not started yet."""
    declare(mounts, server)
    return mounts


@pytest.fixture
async def gateway(embedding: Gateway, server: EmbeddingServer) -> AsyncIterator[Gateway]:
    """Return it, running, with its probe done and forgotten."""
    async with running(embedding):
        await once(lambda: bool(server.requests))
        server.requests.clear()
        yield embedding


def declare(gateway: Gateway, server: EmbeddingServer, **changes: Any) -> None:
    """Give a gateway the layer and its keyspace."""
    gateway.enact(
        embedder=EmbedderPolicy(url=server.url, identity=IDENTITY, timeout_seconds=UNHURRIED_SECONDS),
        embedding=EmbeddingPolicy(binding="e-binding", hot_ttl_seconds=3600, shared=False, cold=False),
    )
    if changes:
        gateway.enact(embedding=changes)
    gateway.record = gateway.record.with_layer("Embedding", "e" * 16, "e-binding", "2026-11-30T00:00:00Z")
    gateway.mount("record/record.json", gateway.record.to_json())


async def ask(gateway: Gateway, given: Any, headers: Any = TENANT, **fields: Any) -> Answered:
    """Send one request."""
    body = {"model": EMBEDDER, "input": given, **fields}
    return await gateway.call(PATH, headers=headers, data=json.dumps(body).encode())


def vectors(answered: Answered) -> list[list[float]]:
    """Return the vectors of an answer by index, as float32."""
    document = answered.json()
    assert [item["index"] for item in document["data"]] == list(range(len(document["data"])))
    return [list(floats(item["embedding"])) for item in document["data"]]


def floats(value: Any) -> array[float]:
    """Read one vector."""
    return array("f", base64.b64decode(value) if isinstance(value, str) else value)


async def once(condition: Callable[[], bool]) -> None:
    """Wait for a condition that needs no waiting itself."""

    async def holds() -> bool:
        return condition()

    await until(holds, PATIENCE_SECONDS)


async def stored(gateway: Gateway, n_vectors: int) -> None:
    """Wait until this many vectors were stored beside the probe's."""

    async def enough() -> bool:
        async with root_client(gateway.redis) as client:
            keys = [key async for key in client.scan_iter("*" + "e" * 16 + "-*")]
        return len(keys) >= n_vectors + 1

    await until(enough, PATIENCE_SECONDS)


async def test_the_second_request_is_a_hit_with_the_same_vector(
    gateway: Gateway, server: EmbeddingServer
) -> None:
    """A text is embedded once; the hit has its usage, and says how long it stays."""
    first = await ask(gateway, "two words")
    await stored(gateway, 1)
    second = await ask(gateway, "two words")
    assert first.cache == FULL_MISS
    assert second.cache.startswith("cachewright; hit; ttl=")
    assert vectors(first) == vectors(second) == [vector_of("two words")]
    assert first.json()["usage"] == second.json()["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    assert len(server.requests) == 1


async def test_only_what_is_missing_is_computed(gateway: Gateway, server: EmbeddingServer) -> None:
    """Of a batch with hits and duplicates the embedder sees each missing input once; order and index hold."""
    await ask(gateway, ["a", "b"])
    await stored(gateway, 2)
    answered = await ask(gateway, ["c", "a", "c", "b", "d", "a"])
    assert vectors(answered) == [vector_of(text) for text in "cacbda"]
    assert server.requests[-1]["input"] == ["c", "d"]
    assert answered.cache == "cachewright; fwd=partial; detail=3-of-6"


async def test_random_batches_equal_what_the_embedder_gives(gateway: Gateway) -> None:
    """With hits, misses, duplicates, tokens and both encodings mixed by chance, nothing ever differs."""
    rng = random.Random(7)  # noqa: S311 - the same batches each time
    pool: list[Any] = [f"text {number}" for number in range(12)]
    tokens: list[Any] = [[number, 7] for number in range(6)]
    for _ in range(60):
        source = rng.choice([pool, pool, tokens])
        batch = [rng.choice(source) for _ in range(rng.randint(1, 9))]
        encoding = rng.choice(["float", "base64"])
        headers = rng.choice([TENANT, OTHER_TENANT])
        answered = await ask(gateway, batch, headers, encoding_format=encoding)
        assert answered.status == 200
        assert vectors(answered) == [vector_of(given) for given in batch]
        shown = {type(item["embedding"]) for item in answered.json()["data"]}
        assert shown == {str if encoding == "base64" else list}
    assert await gateway.metric("cachewright_embedding_inputs_total", tier="hot") > 50


async def test_tenants_do_not_share_vectors(gateway: Gateway) -> None:
    """What one tenant had embedded is a miss for another."""
    await ask(gateway, "secret plan")
    await stored(gateway, 1)
    assert (await ask(gateway, "secret plan", OTHER_TENANT)).cache == FULL_MISS


async def test_tenants_share_vectors_where_the_object_says_so(embedding: Gateway) -> None:
    """With shareAcrossTenants one tenant's text is a hit for all, though never for nobody."""
    embedding.enact(embedding={"shared": True})
    async with running(embedding):
        await ask(embedding, "hello")
        await stored(embedding, 1)
        assert (await ask(embedding, "hello", OTHER_TENANT)).is_hit
        assert (await ask(embedding, "hello", {})).reason == "no_tenant"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"given": "1"}, {"given": [1]}),
        ({"given": [1, 2]}, {"given": [[1], [2]]}),
        ({"given": "a"}, {"given": "A"}),
        ({"given": "a"}, {"given": "a "}),
        ({"given": "a"}, {"given": "a", "dimensions": 4}),
        ({"given": "a"}, {"given": "a", "input_type": "query"}),
        ({"given": "é"}, {"given": "e\u0301"}),
    ],
    ids=str,
)
async def test_what_may_change_a_vector_is_another_entry(
    gateway: Gateway, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Other text, tokens, length or any field that we do not know: never the same vector."""
    await ask(gateway, **first)
    await stored(gateway, 1)
    assert (await ask(gateway, **second)).cache == FULL_MISS


async def test_what_changes_no_vector_is_the_same_entry(gateway: Gateway) -> None:
    """The form, the end user and the model's own length are no part of the key."""
    await ask(gateway, "a")
    await stored(gateway, 1)
    for fields in ({"encoding_format": "base64"}, {"user": "u-1"}, {"dimensions": DIMENSIONS}):
        assert (await ask(gateway, ["a"], **fields)).is_hit


async def test_shorter_vectors_have_their_own_length(gateway: Gateway) -> None:
    """`dimensions` is passed on, and kept apart."""
    for _ in range(2):
        answered = await ask(gateway, "a", dimensions=4)
        assert [len(vector) for vector in vectors(answered)] == [4]
        await stored(gateway, 1)
    assert answered.is_hit


async def test_another_model_is_the_upstreams(gateway: Gateway, server: EmbeddingServer) -> None:
    """A request for a model that is not the embedder's goes where it always went."""
    answered = await gateway.call(PATH, data=b'{"model": "ada", "input": "a"}')
    assert answered.reason == "model"
    assert server.requests == []


@pytest.mark.parametrize(
    "fields",
    [{"given": None}, {"given": []}, {"given": [1, "a"]}, {"given": "a", "encoding_format": "int8"}],
    ids=str,
)
async def test_what_we_do_not_understand_the_embedder_judges(
    gateway: Gateway, server: EmbeddingServer, fields: dict[str, Any]
) -> None:
    """The request goes to the embedder as it is, and is not cached."""
    server.status = 400
    answered = await ask(gateway, **fields)
    assert (answered.status, answered.reason) == (400, "unparsable")


async def test_an_error_of_the_embedder_is_about_the_whole_request(
    gateway: Gateway, server: EmbeddingServer
) -> None:
    """Where one missing input is refused, the client sees what the embedder says of the request it sent."""
    await ask(gateway, "a")
    await stored(gateway, 1)
    server.status = 400
    answered = await ask(gateway, ["a", "b"])
    assert answered.status == 400
    assert server.requests[-1]["input"] == ["a", "b"]


@pytest.mark.parametrize("spoilt", [[0.0] * DIMENSIONS, [1.0] * 3, [1e39] * DIMENSIONS])
async def test_vectors_that_cannot_be_used_are_passed_on_and_not_kept(
    gateway: Gateway, server: EmbeddingServer, spoilt: list[float]
) -> None:
    """A wrong vector harms the one who asked for it, as it would without the gateway, and nobody later."""
    server.change = lambda document: document | {"data": [document["data"][0] | {"embedding": spoilt}]}
    assert (await ask(gateway, "a")).status == 200
    server.change = lambda document: document
    assert vectors(await ask(gateway, "a")) == [vector_of("a")]


async def test_a_dead_embedder_still_gives_hits(gateway: Gateway, server: EmbeddingServer) -> None:
    """What was computed stays; what was not is an error, soon."""
    await ask(gateway, "a")
    await stored(gateway, 1)
    await server.aclose()
    assert (await ask(gateway, "a")).is_hit
    assert (await ask(gateway, "b")).status == 502


async def test_the_same_text_at_the_same_time_is_embedded_once(
    gateway: Gateway, server: EmbeddingServer
) -> None:
    """Twenty who ask at once get one computation's vector, alone and in batches."""
    server.hold = asyncio.Event()
    tasks = [asyncio.ensure_future(ask(gateway, "a")) for _ in range(20)]
    await once(lambda: bool(server.requests))
    tasks.append(asyncio.ensure_future(ask(gateway, ["b", "a"])))
    await once(lambda: len(server.requests) > 1)
    server.hold.set()
    answers = await asyncio.gather(*tasks)
    assert [asked["input"] for asked in server.requests] == ["a", ["b"]]
    assert all(vectors(answered)[-1] == vector_of("a") for answered in answers)
    assert sum("collapsed" in answered.cache for answered in answers) == 19


async def test_who_waited_for_somebody_that_failed_asks_by_itself(
    gateway: Gateway, server: EmbeddingServer
) -> None:
    """A failed leader fails no follower."""
    server.hold = asyncio.Event()
    leader = asyncio.ensure_future(ask(gateway, "a"))
    await once(lambda: bool(server.requests))
    follower = asyncio.ensure_future(ask(gateway, "a"))
    await asyncio.sleep(0.05)
    leader.cancel()
    server.hold.set()
    assert vectors(await follower) == [vector_of("a")]


async def test_clients_may_narrow(gateway: Gateway, server: EmbeddingServer) -> None:
    """no-store has no part in the cache, no-cache computes anew, only-if-cached computes nothing."""
    await ask(gateway, "a")
    await stored(gateway, 1)
    assert (await ask(gateway, "a", {**TENANT, "Cache-Control": "no-store"})).reason == "client"
    assert (await ask(gateway, "a", {**TENANT, "Cache-Control": "no-cache"})).cache == FULL_MISS
    only = {**TENANT, "Cache-Control": "only-if-cached"}
    assert (await ask(gateway, "a", only)).is_hit
    assert (await ask(gateway, ["a", "b"], only)).error_code == "not_cached"
    assert len(server.requests) == 3


async def test_a_raised_tenant_counter_retracts_vectors(gateway: Gateway) -> None:
    """After a retraction of the tenant its vectors are computed anew."""
    await ask(gateway, "a")
    await stored(gateway, 1)
    store = open_cache_store(gateway.redis.url("gateway"))
    tag = tenant_tag(bytes.fromhex("ab" * 32), b"acme")
    await store.raise_generations(gateway.policy.cache_id, [tenant_counter(tag)])
    await store.aclose()
    assert (await ask(gateway, "a")).cache == FULL_MISS


async def test_a_cache_of_embeddings_alone_is_whole(embedding: Gateway) -> None:
    """Without the exact layer there are hits, retraction by the admin port, and answers of the model."""
    embedding.enact(exact=None)
    async with running(embedding):
        await ask(embedding, "a")
        await stored(embedding, 1)
        assert (await ask(embedding, "a")).is_hit
        assert (await embedding.call()).reason == "disabled"
        told = await embedding.admin("/retract", {"tenant": "acme", "dryRun": False})
        assert (told.status, told.json()["done"]) == (200, True)
        assert (await ask(embedding, "a")).cache == FULL_MISS


async def test_another_keyspace_has_none_of_the_vectors(gateway: Gateway) -> None:
    """The first request after a switch misses, and a bump of the language model switches nothing."""
    await ask(gateway, "a")
    await stored(gateway, 1)
    store = open_cache_store(gateway.redis.url("gateway"))
    await store.publish_record(gateway.rotate())
    assert (await ask(gateway, "a")).is_hit
    rotated = gateway.record.with_layer("Embedding", "f" * 16, "e-binding", "2026-11-30T02:00:00Z")
    await store.publish_record(rotated)
    await store.aclose()
    assert (await ask(gateway, "a")).cache == FULL_MISS


async def test_a_frozen_store_adds_the_budget_and_no_more(
    tmp_path: Path, own_redis: RedisServer, engine: Engine, server: EmbeddingServer
) -> None:
    """The embedder is asked as if there were no cache."""
    gateway = Gateway(tmp_path, own_redis, engine.url)
    declare(gateway, server)
    gateway.enact(total_budget_seconds=0.2, exact={"budget_seconds": 0.2})
    async with running(gateway):
        await ask(gateway, "a")
        own_redis.freeze()
        try:
            started = time.monotonic()
            answered = await ask(gateway, "b")
            assert (answered.status, answered.reason) == (200, "store")
            assert time.monotonic() - started < 2
            assert vectors(answered) == [vector_of("b")]
        finally:
            own_redis.thaw()


async def test_an_embedder_that_was_replaced_is_found_out(
    embedding: Gateway, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another model behind the same name: its vectors meet no old ones, and the reason says so."""
    monkeypatch.setattr("cachewright.layers.embedding_probe.PROBE_SECONDS", 0.05)
    async with running(embedding):
        await ask(embedding, "a")
        await stored(embedding, 1)
        server.change = _negated

        async def is_noticed() -> bool:
            return (await ask(embedding, "a")).reason == "embedder_mismatch"

        async def is_forgiven() -> bool:
            return (await ask(embedding, "a")).is_hit

        await until(is_noticed, PATIENCE_SECONDS)
        assert await embedding.metric("cachewright_embedder_mismatch") == 1
        server.change = lambda document: document
        await until(is_forgiven, PATIENCE_SECONDS)
        assert vectors(await ask(embedding, "a")) == [vector_of("a")]


def _negated(document: dict[str, Any]) -> dict[str, Any]:
    items = [
        item | {"embedding": [-number if at % 2 else number for at, number in enumerate(item["embedding"])]}
        for item in document["data"]
    ]
    return document | {"data": items}


async def test_the_openai_client_reads_hits_and_misses(gateway: Gateway) -> None:
    """A standard client, which asks for base64 by itself, sees no difference."""
    async with AsyncOpenAI(
        base_url=f"{gateway.url}/v1", api_key="x", default_headers=TENANT, max_retries=0
    ) as client:
        for _ in range(2):
            answer = await client.embeddings.create(model=EMBEDDER, input=["x y", "z"])
            assert [item.embedding for item in answer.data] == [vector_of("x y"), vector_of("z")]
            assert answer.usage.prompt_tokens == 3
            await stored(gateway, 2)


@pytest.fixture
async def cold(embedding: Gateway, dsn: str) -> AsyncIterator[Gateway]:
    """Return a running gateway with a cold tier, its table made."""
    embedding.enact(embedding={"cold": True}, postgres=PostgresPolicy())
    embedding.mount("postgres/dsn", dsn)
    async with running(embedding):
        await once(lambda: bool(tables(dsn)))
        yield embedding


def tables(dsn: str) -> list[str]:
    """List the tables of vectors."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'emb_%'").fetchall()
    return [name for (name,) in rows]


def rows(dsn: str) -> int:
    """Count the vectors of all tables."""
    with psycopg.connect(dsn) as connection:
        counted = [
            connection.execute(SQL("SELECT count(*) FROM {}").format(Identifier(name))).fetchone()
            for name in tables(dsn)
        ]
    return sum(row[0] for row in counted if row)


async def emptied(gateway: Gateway) -> None:
    """Lose everything in Redis."""
    async with root_client(gateway.redis) as client:
        await client.flushall()


async def test_what_redis_lost_comes_from_the_cold_tier_and_goes_back(
    cold: Gateway, dsn: str, server: EmbeddingServer
) -> None:
    """After Redis was emptied no text is embedded anew, and the second look-up is hot again."""
    await ask(cold, ["a", "b"])
    await once(lambda: rows(dsn) >= 2)
    await emptied(cold)
    server.requests.clear()
    answered = await ask(cold, ["b", "a", "b"])
    assert answered.cache == "cachewright; hit"
    assert vectors(answered) == [vector_of(text) for text in "bab"]
    await stored(cold, 1)
    assert await cold.metric("cachewright_embedding_inputs_total", tier="cold") == 2

    async def is_hot() -> bool:
        return "hit; ttl=" in (await ask(cold, ["a", "b"])).cache

    await until(is_hot, PATIENCE_SECONDS)
    assert all(PROBE_TEXT in asked["input"] for asked in server.requests)


async def test_what_was_retracted_stays_so_after_redis_lost_its_counters(cold: Gateway, dsn: str) -> None:
    """The cold tier keeps count by itself."""
    await ask(cold, "a")
    await once(lambda: rows(dsn) >= 1)
    assert (await cold.admin("/retract", {"tenant": "acme", "dryRun": False})).status == 200
    await emptied(cold)
    assert (await ask(cold, "a")).cache == FULL_MISS


async def test_what_the_record_gave_up_goes_from_the_database_too(cold: Gateway, dsn: str) -> None:
    """The janitor drops the table of a keyspace that is being deleted, and leaves the one in use."""
    await ask(cold, "a")
    await once(lambda: rows(dsn) >= 1)
    (before,) = tables(dsn)
    former = cold.record.layers["Embedding"]
    cold.record = cold.record.with_layer("Embedding", "f" * 16, "e-binding", "2026-11-30T02:00:00Z")
    gone = PastKeyspace(
        "Embedding",
        former.keyspace,
        former.binding,
        KeyspaceState.DELETING,
        "2026-11-30T02:00:00Z",
        "2026-11-30T02:00:00Z",
    )
    cold.record = replace(cold.record, past=(gone,))
    cold.mount("record/record.json", cold.record.to_json())
    store = open_cache_store(cold.redis.url("operator"))
    await store.publish_record(cold.record)
    await store.aclose()
    await once(lambda: before not in tables(dsn))
    assert (await ask(cold, "a")).status == 200


async def test_a_frozen_database_costs_the_budget_once(cold: Gateway, postgres: PostgresServer) -> None:
    """Cold trouble is a miss, and then the tier is left alone until it answers again."""
    await ask(cold, "a")
    cold.enact(total_budget_seconds=0.2)
    await asyncio.sleep(0)
    postgres.freeze()
    try:
        started = time.monotonic()
        assert vectors(await ask(cold, "b")) == [vector_of("b")]
        assert time.monotonic() - started < 8
        started = time.monotonic()
        assert vectors(await ask(cold, "c")) == [vector_of("c")]
        assert time.monotonic() - started < 2
    finally:
        postgres.thaw()


def test_no_header_can_name_the_probes_tenant() -> None:
    """HTTP forbids NUL in a header's value, so no client reads or writes the probe's entry."""
    assert b"\0" in PROBE_TENANT
