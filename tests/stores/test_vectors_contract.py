"""What every vector store promises, on every implementation."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from cachewright.errors import SpaceNotFound, StoreRefused
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.vectors import EntryId, Vector, vector_of
from tests.support.vectors import NOW, PROBE_TEXT, VectorSubject, near, random_vector, vector_entry

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
"""What qdrant-client's local mode says of itself."""

TENANT, PARTITION = "tenant-a", "partition-1"


async def found(
    subject: VectorSubject,
    vector: Vector,
    *,
    tenant: str = TENANT,
    partition: str = PARTITION,
    now: float = NOW,
    limit: int = 5,
) -> list[str]:
    """Search the subject's first space and return the questions found, best first."""
    hits = await subject.store.search(subject.space(), vector, tenant, partition, now, limit)
    return [hit.question for hit in hits]


async def test_a_server_says_what_it_is(vectors: VectorSubject) -> None:
    """And a server that can do everything passes the check."""
    capabilities = await vectors.store.check()
    assert capabilities.product
    assert capabilities.version


async def test_a_space_is_made_with_its_marker(vectors: VectorSubject) -> None:
    """Whoever comes later reads what the first maker wrote, also one with another embedder."""
    space = vectors.space()
    with pytest.raises(SpaceNotFound):
        await vectors.store.read_marker(space)
    first = await vectors.ensure(space)
    assert (first.cache_id, first.keyspace, first.dimensions) == (space.cache_id, space.keyspace, 8)
    assert first.probe_text == PROBE_TEXT
    assert first.probe_vector == pytest.approx(random_vector("probe"), abs=1e-6)
    later = await vectors.ensure(space, random_vector("another embedder"))
    assert later.probe_vector == pytest.approx(first.probe_vector)
    assert (await vectors.store.read_marker(space)).probe_vector == pytest.approx(first.probe_vector)


async def test_many_make_a_space_at_once(vectors: VectorSubject) -> None:
    """All gateways of a cache start together: none fails, and all go on with one marker."""
    space = vectors.space()
    await asyncio.gather(*(vectors.ensure(space) for _ in range(5)))
    assert await vectors.store.list_spaces(vectors.cache_id) == [space.keyspace]
    assert await vectors.store.count(space) == 0


async def test_a_space_that_does_not_exist_says_so(vectors: VectorSubject) -> None:
    """Whatever is asked of it, so that the layer can make it and go on."""
    space, entry = vectors.space(), vector_entry(1)
    for call in (
        vectors.store.put(space, entry),
        vectors.store.search(space, entry.vector, TENANT, PARTITION, NOW),
        vectors.store.read_body(space, entry.id, entry.nonce),
        vectors.store.remove(space, [entry.id]),
        vectors.store.count(space),
        vectors.store.count(space, TENANT),
        vectors.store.evict_oldest(space, 1),
        vectors.store.delete_expired(space, NOW, 10),
    ):
        with pytest.raises(SpaceNotFound):
            await call


async def test_an_entry_is_found_as_it_was_put(vectors: VectorSubject) -> None:
    """With everything but its body, which is read alone."""
    space = await vectors.opened()
    entry = replace(
        vector_entry("ünï \N{SNOWMAN} 'quoted' \\ \n \0 %s"), body=bytes(range(256)), expires_at=NOW + 60.5
    )
    await vectors.store.put(space, entry)
    (hit,) = await vectors.store.search(space, entry.vector, TENANT, PARTITION, NOW)
    assert hit.score == pytest.approx(1.0, abs=1e-5)
    assert (hit.id, hit.question, hit.nonce) == (entry.id, entry.question, entry.nonce)
    assert (hit.metadata, hit.stored_at, hit.expires_at) == (entry.metadata, NOW, NOW + 60.5)
    assert await vectors.store.read_body(space, entry.id, entry.nonce) == bytes(range(256))


async def test_an_empty_body_is_a_body(vectors: VectorSubject) -> None:
    """Nothing in it is not the same as no entry."""
    space = await vectors.opened()
    entry = replace(vector_entry(1), body=b"", metadata="", question="")
    await vectors.store.put(space, entry)
    (hit,) = await vectors.store.search(space, entry.vector, TENANT, PARTITION, NOW)
    assert (hit.metadata, hit.question) == ("", "")
    assert await vectors.store.read_body(space, entry.id, entry.nonce) == b""


async def test_an_entry_replaces_one_with_the_same_id(vectors: VectorSubject) -> None:
    """Vector, question, nonce and body at once, and whoever knew the old nonce gets no new body."""
    space = await vectors.opened()
    old, new = vector_entry(1, nonce=b"old"), vector_entry(1, random_vector("other"), nonce=b"new")
    await vectors.store.put(space, old)
    await vectors.store.put(space, replace(new, body=b"new"))
    assert await vectors.store.count(space) == 1
    (hit,) = await vectors.store.search(space, new.vector, TENANT, PARTITION, NOW)
    assert hit.nonce == b"new"
    assert hit.score == pytest.approx(1.0, abs=1e-5)
    assert await vectors.store.read_body(space, old.id, b"old") is None
    assert await vectors.store.read_body(space, new.id, b"new") == b"new"


async def test_an_entry_may_move_to_another_partition(vectors: VectorSubject) -> None:
    """Then it is found there alone."""
    space = await vectors.opened()
    await vectors.store.put(space, vector_entry(1))
    await vectors.store.put(space, vector_entry(1, partition="partition-2"))
    assert await found(vectors, random_vector(1)) == []
    assert await found(vectors, random_vector(1), partition="partition-2") == ["Question 1?"]
    assert await vectors.store.count(space) == 1


async def test_the_nearest_come_first(vectors: VectorSubject) -> None:
    """With their cosines, five of them unless asked for less."""
    space = await vectors.opened()
    asked = random_vector("asked")
    cosines = {n: 0.99 - 0.1 * n for n in range(8)}
    for n, cosine in cosines.items():
        await vectors.store.put(space, vector_entry(n, near(asked, cosine, n)))
    hits = await vectors.store.search(space, asked, TENANT, PARTITION, NOW)
    assert [hit.question for hit in hits] == [f"Question {n}?" for n in range(5)]
    assert [hit.score for hit in hits] == pytest.approx([cosines[n] for n in range(5)], abs=1e-4)
    assert await found(vectors, asked, limit=1) == ["Question 0?"]


async def test_length_does_not_matter(vectors: VectorSubject) -> None:
    """Nearness is an angle: an embedder need not return vectors of length one."""
    space = await vectors.opened()
    long = vector_of(7.5 * value for value in random_vector(1))
    await vectors.store.put(space, vector_entry(1, long))
    (hit,) = await vectors.store.search(space, vector_of(0.01 * v for v in long), TENANT, PARTITION, NOW)
    assert hit.score == pytest.approx(1.0, abs=1e-5)


async def test_opposites_are_found_last(vectors: VectorSubject) -> None:
    """A cosine may be negative; it is for the layer to refuse it."""
    space = await vectors.opened()
    await vectors.store.put(space, vector_entry(1, vector_of(-v for v in random_vector(1))))
    (hit,) = await vectors.store.search(space, random_vector(1), TENANT, PARTITION, NOW)
    assert hit.score == pytest.approx(-1.0, abs=1e-5)


async def test_only_the_tenants_own_partition_is_searched(vectors: VectorSubject) -> None:
    """The very same vector in another tenant's, or another partition, is never found."""
    space = await vectors.opened()
    asked = random_vector("asked")
    for n, (tenant, partition) in enumerate(
        [("tenant-b", PARTITION), (TENANT, "partition-2"), (TENANT + "x", PARTITION), ("", PARTITION)]
    ):
        await vectors.store.put(space, vector_entry(n, asked, tenant=tenant, partition=partition))
    assert await found(vectors, asked) == []
    assert await found(vectors, asked, tenant="tenant-b") == ["Question 0?"]
    assert await found(vectors, asked, partition="partition-2") == ["Question 1?"]
    for name in ("tenant-a%", "tenant_a", "TENANT-A", "' OR true --", "*"):
        assert await found(vectors, asked, tenant=name) == []


async def test_two_tenants_may_have_entries_of_one_digest(vectors: VectorSubject) -> None:
    """Neither replaces the other's, and each reads its own."""
    space = await vectors.opened()
    mine, theirs = vector_entry(1), replace(vector_entry(1, tenant="tenant-b"), body=b"theirs")
    await vectors.store.put(space, mine)
    await vectors.store.put(space, theirs)
    assert await vectors.store.count(space) == 2
    assert await vectors.store.read_body(space, mine.id, b"nonce") == mine.body
    assert await vectors.store.read_body(space, theirs.id, b"nonce") == b"theirs"


async def test_spaces_know_nothing_of_each_other(vectors: VectorSubject) -> None:
    """An entry of one keyspace is not in the next one."""
    first, second = await vectors.opened(1), await vectors.opened(2)
    await vectors.store.put(second, vector_entry(1))
    assert await vectors.store.count(first) == 0
    assert await vectors.store.count(second) == 1
    assert await found(vectors, random_vector(1)) == []


async def test_nothing_that_expired_is_found(vectors: VectorSubject) -> None:
    """From the very moment on, and the next best is found in its place."""
    space = await vectors.opened()
    asked = random_vector("asked")
    await vectors.store.put(space, vector_entry(1, asked, ttl_seconds=10))
    await vectors.store.put(space, vector_entry(2, near(asked, 0.9), ttl_seconds=20))
    assert await found(vectors, asked, now=NOW + 9.999) == ["Question 1?", "Question 2?"]
    assert await found(vectors, asked, now=NOW + 10) == ["Question 2?"]
    assert await found(vectors, asked, now=NOW + 20) == []


async def test_removed_entries_are_gone(vectors: VectorSubject) -> None:
    """Only those named; removing what is not there is no error."""
    space = await vectors.opened()
    for n in range(3):
        await vectors.store.put(space, vector_entry(n))
    gone = vector_entry(1).id
    await vectors.store.remove(space, [gone, EntryId(TENANT, "0" * 64), EntryId("tenant-b", gone.digest)])
    await vectors.store.remove(space, [])
    assert await vectors.store.count(space) == 2
    assert await vectors.store.read_body(space, gone, b"nonce") is None
    assert "Question 1?" not in await found(vectors, random_vector(1))


async def test_entries_are_counted(vectors: VectorSubject) -> None:
    """All of them, a tenant's, a partition's; the marker is not one of them."""
    space = await vectors.opened()
    for n in range(6):
        tenant, partition = ("tenant-a", "tenant-b")[n % 2], f"partition-{n % 3}"
        await vectors.store.put(space, vector_entry(n, tenant=tenant, partition=partition))
    assert await vectors.store.count(space, "tenant-a") == 3
    assert await vectors.store.count(space, "tenant-a", "partition-0") == 1
    assert await vectors.store.count(space, None, "partition-0") == 2
    assert await vectors.store.count(space, "tenant-c") == 0
    assert await vectors.store.count(space) == 6


async def test_the_oldest_are_evicted(vectors: VectorSubject) -> None:
    """About as many as asked for, those stored first, and never somebody else's where a tenant is named."""
    space = await vectors.opened()
    for n in range(20):
        tenant = ("tenant-a", "tenant-b")[n % 2]
        await vectors.store.put(space, vector_entry(n, tenant=tenant, stored_at=NOW + n))
    assert await vectors.store.evict_oldest(space, 6) == 6
    assert await vectors.store.count(space) == 14
    assert await vectors.store.count(space, "tenant-a") == 7
    assert await vectors.store.evict_oldest(space, 3, "tenant-a") == 3
    assert await vectors.store.count(space, "tenant-a") == 4
    assert await vectors.store.count(space, "tenant-b") == 7
    left = await found(vectors, random_vector(19), limit=20)
    assert sorted(left) == sorted(f"Question {n}?" for n in (12, 14, 16, 18))
    assert await vectors.store.evict_oldest(space, 100) == 11
    assert await vectors.store.evict_oldest(space, 100) == 0
    assert (await vectors.store.read_marker(space)).probe_text == PROBE_TEXT


async def test_expired_entries_are_deleted_in_batches(vectors: VectorSubject) -> None:
    """No more than asked for at once, until none is left; the others and the marker stay."""
    space = await vectors.opened()
    for n in range(10):
        await vectors.store.put(space, vector_entry(n, ttl_seconds=10 if n < 7 else 1000))
    assert await vectors.store.delete_expired(space, NOW + 9, 100) == 0
    assert await vectors.store.delete_expired(space, NOW + 10, 4) == 4
    assert await vectors.store.delete_expired(space, NOW + 10, 4) == 3
    assert await vectors.store.delete_expired(space, NOW + 10, 4) == 0
    assert await vectors.store.count(space) == 3
    assert (await vectors.store.read_marker(space)).probe_text == PROBE_TEXT


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ([1.0] * 7, "7 dimensions"),
        ([1.0] * 9, "9 dimensions"),
        ([], "0 dimensions"),
        ([math.nan, *[1.0] * 7], "not finite"),
        ([math.inf, *[1.0] * 7], "not finite"),
        ([0.0] * 8, "no direction"),
        ([1e-12] * 8, "no direction"),
    ],
)
async def test_vectors_that_mean_nothing_are_refused(
    vectors: VectorSubject, values: list[float], complaint: str
) -> None:
    """Before they are sent, whether they would be stored, searched for or made a marker of."""
    space = await vectors.opened()
    bad = vector_of(values)
    with pytest.raises(StoreRefused, match=complaint):
        await vectors.store.put(space, vector_entry(1, bad))
    with pytest.raises(StoreRefused, match=complaint):
        await vectors.store.search(space, bad, TENANT, PARTITION, NOW)
    with pytest.raises(StoreRefused, match=complaint):
        await vectors.ensure(vectors.space(2), bad)
    assert await vectors.store.count(space) == 0
    assert await vectors.store.list_spaces(vectors.cache_id) == [space.keyspace]


async def test_a_space_of_other_dimensions_is_refused(vectors: VectorSubject) -> None:
    """An embedder that changed its length must not write into the space it had."""
    await vectors.store.put(await vectors.opened(), vector_entry(1))
    other = vectors.space(dimensions=16)
    with pytest.raises(StoreRefused, match="8 dimensions"):
        await vectors.ensure(other)
    with pytest.raises(StoreRefused):
        await vectors.store.put(other, vector_entry(1, dimensions=16))
    with pytest.raises(StoreRefused):
        await vectors.store.search(other, random_vector(1, 16), TENANT, PARTITION, NOW)


async def test_spaces_are_listed_and_dropped(vectors: VectorSubject) -> None:
    """Those of this cache alone; a dropped one is gone with all in it, and dropping it again is no error."""
    stranger = VectorSubject(vectors.store)
    theirs = await stranger.opened(7)
    for incarnation in (1, 2, 12):
        await vectors.store.put(await vectors.opened(incarnation), vector_entry(1))
    keyspaces = [vectors.space(n).keyspace for n in (1, 2, 12)]
    assert await vectors.store.list_spaces(vectors.cache_id) == keyspaces
    assert await vectors.store.drop(vectors.cache_id, keyspaces[1])
    assert not await vectors.store.drop(vectors.cache_id, keyspaces[1])
    assert await vectors.store.list_spaces(vectors.cache_id) == [keyspaces[0], keyspaces[2]]
    with pytest.raises(SpaceNotFound):
        await vectors.store.search(vectors.space(2), random_vector(1), TENANT, PARTITION, NOW)
    assert await stranger.store.list_spaces(stranger.cache_id) == [theirs.keyspace]
    assert await vectors.store.list_spaces("0" * 16) == []
    assert not await vectors.store.drop("0" * 16, Keyspace("ab" * 8, 7))


async def test_a_dropped_space_can_be_made_anew(vectors: VectorSubject) -> None:
    """Empty, with a marker of its new maker."""
    space = await vectors.opened()
    await vectors.store.put(space, vector_entry(1))
    assert await vectors.store.drop(vectors.cache_id, space.keyspace)
    marker = await vectors.ensure(space, random_vector("another embedder"))
    assert marker.probe_vector == pytest.approx(random_vector("another embedder"), abs=1e-6)
    assert await vectors.store.count(space) == 0
    await vectors.store.put(space, vector_entry(2))
    assert await found(vectors, random_vector(2)) == ["Question 2?"]


async def test_many_calls_at_once(vectors: VectorSubject) -> None:
    """More than there are connections: all are answered, none with another's answer."""
    space = await vectors.opened()
    entries = [vector_entry(n, partition=f"partition-{n % 4}") for n in range(60)]
    await asyncio.gather(*(vectors.store.put(space, entry) for entry in entries))

    async def first(entry_number: int) -> str:
        entry = entries[entry_number]
        return (await found(vectors, entry.vector, partition=entry.partition))[0]

    got = await asyncio.gather(*(first(n) for n in range(60)))
    assert got == [f"Question {n}?" for n in range(60)]
