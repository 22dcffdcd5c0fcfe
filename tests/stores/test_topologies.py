"""What concerns TLS, Sentinels and clusters alone: trust, failover, spreading, and nodes that hang."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from cachewright.errors import InvalidInput, StoreError, StoreUnavailable
from cachewright.keys.scheme import TAGS
from cachewright.stores import redis_client
from cachewright.stores.protocols import CacheStore
from cachewright.stores.redis_entries import open_cache_store
from cachewright.stores.redis_record import open_record_store
from cachewright.stores.redis_url import with_authorities
from tests.stores.conftest import Subject
from tests.support.redis_topologies import Topology, make_certificates, run_cluster, run_sentinels
from tests.support.waiting import PATIENCE_SECONDS, until

EVERY_TAG = [f"{number:02x}" * 32 for number in range(len(TAGS))]
"""Digests, one for each hash tag."""


@pytest.fixture(scope="module")
def sentinels() -> Iterator[Topology]:
    """Sentinels of this module's own, since it kills what they watch."""
    with run_sentinels() as running:
        yield running


@pytest.fixture(scope="module")
def cluster() -> Iterator[Topology]:
    """A cluster of this module's own, since it freezes its nodes."""
    with run_cluster() as running:
        yield running


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[str], Subject]]:
    """Open stores that are closed when the test ends."""
    stores: list[CacheStore] = []

    def open_one(url: str) -> Subject:
        stores.append(open_cache_store(url))
        return Subject(stores[-1], secrets.token_hex(8))

    yield open_one
    for store in stores:
        await store.aclose()


Opener = Callable[[str], Subject]


async def test_an_unknown_authority_is_not_trusted(
    topologies: Callable[[str], Topology], opened: Opener, tmp_path: Path
) -> None:
    """Neither without an authority of ours nor with another one is a server spoken to."""
    url = topologies("tls").url.partition("?")[0]
    other = make_certificates(tmp_path)
    for untrusted in (url, f"{url}?ssl_ca_certs={other}"):
        with pytest.raises(StoreUnavailable, match="certificate") as caught:
            await opened(untrusted).store.ping()
        assert "gateway:gateway" not in str(caught.value)


async def test_a_certificate_must_name_the_host(
    topologies: Callable[[str], Topology], opened: Opener
) -> None:
    """A certificate for 127.0.0.1 is none for localhost."""
    with pytest.raises(StoreUnavailable, match="certificate"):
        await opened(topologies("tls").url.replace("127.0.0.1", "localhost")).store.ping()


@pytest.mark.parametrize("content", [None, "not PEM"])
def test_a_file_without_certificates_is_refused(content: str | None, tmp_path: Path) -> None:
    """When the store is opened, before any request."""
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidInput, match="ssl_ca_certs"):
        open_cache_store(f"rediss://u:hunter2@host?ssl_ca_certs={file}")


async def test_authorities_may_be_given_as_they_are(
    topologies: Callable[[str], Topology], opened: Opener, tmp_path: Path
) -> None:
    """PEM beside the URL, as Secrets hold it, is trusted like a file; PEM of others is not."""
    tls = topologies("tls")
    plain, authority = tls.url.partition("?")[0], tls.ca_file
    assert authority is not None
    await opened(with_authorities(plain, authority.read_text())).store.ping()
    with pytest.raises(StoreUnavailable, match="certificate"):
        await opened(with_authorities(plain, make_certificates(tmp_path).read_text())).store.ping()
    with pytest.raises(InvalidInput, match="no PEM"):
        open_cache_store(with_authorities(plain, "hunter2"))


@pytest.mark.parametrize("kind", ["tls", "sentinel", "cluster"])
async def test_the_operator_publishes_for_gateways(
    kind: str, topologies: Callable[[str], Topology], opened: Opener
) -> None:
    """With its own user, to the same kinds of store."""
    url = topologies(kind).url
    subject = opened(url)
    operator = open_record_store(url.replace("gateway:gateway", "operator:operator"))
    try:
        assert await operator.publish_record(subject.record(4)) == 4
        assert await operator.read_record(subject.cache_id) == subject.record(4)
    finally:
        await operator.aclose()
    assert await subject.store.read_record(subject.cache_id) == subject.record(4)


async def test_a_failover_is_followed(sentinels: Topology, opened: Opener) -> None:
    """When the primary dies, calls fail as unavailable for a while, and then go to the one promoted."""
    subject = opened(sentinels.url)
    await subject.store.publish_record(subject.record(1))
    await asyncio.gather(*(subject.store.ping() for _ in range(8)))
    primary, replica = sentinels.nodes
    async with Redis.from_url(f"redis://root:root@127.0.0.1:{replica.port}/0") as root:

        async def is_replicated() -> bool:
            return await root.exists(subject.name().record_key) == 1

        await until(is_replicated)
    await asyncio.to_thread(primary.kill)

    async def is_written() -> bool:
        try:
            marks = (await subject.store.find(subject.name())).marks
            return marks is not None and bool(await subject.store.write(subject.name(), b"x", 60, marks))
        except StoreUnavailable:
            return False

    await until(is_written)
    assert (await subject.store.find(subject.name())).value == b"x"


async def test_a_frozen_sentinel_holds_nobody_up(
    topologies: Callable[[str], Topology], opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are asked within the deadline of one call."""
    monkeypatch.setattr(redis_client, "COMMAND_TIMEOUT_SECONDS", 10 * redis_client.SENTINEL_TIMEOUT_SECONDS)
    healthy = topologies("sentinel")
    healthy.sentinels[0].freeze()
    try:
        await opened(healthy.url).store.ping()
    finally:
        healthy.sentinels[0].thaw()


async def test_an_unknown_service_is_unavailable(sentinels: Topology, opened: Opener) -> None:
    """Sentinels may come to know it; the message holds no password."""
    with pytest.raises(StoreUnavailable, match="stranger") as caught:
        await opened(sentinels.url.replace("mymaster", "stranger")).store.ping()
    assert "gateway" not in str(caught.value)


async def test_a_cluster_spreads_a_cache(cluster: Topology, opened: Opener) -> None:
    """Every node holds copies of the record and entries, and nothing crosses slots."""
    subject = opened(cluster.url)
    await subject.store.publish_record(subject.record(1))
    for digest in EVERY_TAG:
        marks = (await subject.store.find(subject.name(digest))).marks
        assert marks is not None
        assert await subject.store.write(subject.name(digest), digest.encode(), 60, marks)
    copies = []
    for node in cluster.nodes:
        async with Redis.from_url(f"redis://root:root@127.0.0.1:{node.port}/0") as root:
            copies.append(len(await root.keys(f"{{cw1:{subject.cache_id}:*}}:record")))
            assert await root.dbsize() >= 2 * copies[-1]
    assert sum(copies) == len(TAGS)
    assert min(copies) > 0


async def test_a_frozen_node_takes_bounded_time_and_connections(
    cluster: Topology, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls to it end by their deadline, calls to the others work, and all is well once it goes on."""
    subject = opened(cluster.url)
    await subject.store.publish_record(subject.record(1))
    found = await asyncio.gather(*(subject.store.find(subject.name(digest)) for digest in EVERY_TAG))
    for digest, one in zip(EVERY_TAG, found, strict=True):
        assert one.marks is not None
        assert await subject.store.write(subject.name(digest), digest.encode(), 60, one.marks)
    monkeypatch.setattr(redis_client, "COMMAND_TIMEOUT_SECONDS", 0.3)
    node = cluster.nodes[0]
    node.freeze()
    try:
        started = time.monotonic()
        looked = [subject.store.find(subject.name(digest)) for digest in EVERY_TAG]
        results = await asyncio.gather(*looked, return_exceptions=True)
        assert time.monotonic() - started < 6
        failed = [result for result in results if isinstance(result, BaseException)]
        assert 0 < len(failed) < len(TAGS)
        assert all(isinstance(one, StoreError) for one in failed)
        assert all(one.connections() <= redis_client.MAX_CONNECTIONS + 5 for one in cluster.nodes)
    finally:
        node.thaw()
    monkeypatch.setattr(redis_client, "COMMAND_TIMEOUT_SECONDS", PATIENCE_SECONDS)

    async def all_are_right() -> bool:
        looked = [subject.store.find(subject.name(digest)) for digest in EVERY_TAG]
        results = await asyncio.gather(*looked, return_exceptions=True)
        values = [one.value for one in results if not isinstance(one, BaseException)]
        for digest, one in zip(EVERY_TAG, results, strict=True):
            assert isinstance(one, BaseException) or one.value == digest.encode()
        return len(values) == len(TAGS)

    await until(all_are_right)
