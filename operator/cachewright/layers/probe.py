"""Try a layer with an entry of its own: written, found, not found by another tenant, and removed again.

Called by the gateway from time to time, beside its requests. Trouble raises StoreError; what is tried lies
under two tenants that no header and no API key can name.
"""

from __future__ import annotations

import hashlib
import secrets
from array import array
from contextlib import suppress
from dataclasses import replace
from typing import Final

from cachewright.errors import SpaceNotFound, StoreRefused
from cachewright.keys.digest import EntryName, tenant_tag
from cachewright.keys.record import Record
from cachewright.stores.embeddings import ColdEmbedding, EmbeddingSpace, EmbeddingStore
from cachewright.stores.protocols import CacheStore, WriteOutcome
from cachewright.stores.vectors import EntryId, VectorEntry, VectorSpace, VectorStore

TENANT: Final = b"\0probe of a layer"
OTHER_TENANT: Final = b"\0probe of a layer, somebody else"

VALUE: Final = b"probe"

TTL_SECONDS: Final = 60.0
"""An entry whose prober died goes by itself."""

COLD_DIGEST: Final = hashlib.sha256(b"cachewright probe").hexdigest()
"""Of the one row that a cold tier keeps for probes: it has no TTL, and removing rows is the sweep's."""

LOST: Final = "what was written was not found"
SHARED: Final = "what one tenant wrote was found by another"


async def probe_entries(store: CacheStore, record: Record, layer: str, key: bytes) -> None:
    """Try a layer that keeps entries in Redis; while it may not be written to, only whether it answers."""
    ours, others = tenant_tag(key, TENANT), tenant_tag(key, OTHER_TENANT)
    keyspace = record.layers[layer].keyspace
    name = EntryName(record.cache_id, keyspace, ours, secrets.token_hex(32))
    marks = (await store.find(name)).marks
    if marks is None or await store.write(name, VALUE, TTL_SECONDS, marks) is not WriteOutcome.WRITTEN:
        return  # a switch or a fence, which others tell of
    try:
        if (await store.find(name)).value != VALUE:
            raise StoreRefused(LOST)
        if (await store.find(replace(name, tenant_tag=others))).value is not None:
            raise StoreRefused(SHARED)
    finally:
        await store.unlink(record.cache_id, keyspace, [name.key])


async def probe_vectors(store: VectorStore, space: VectorSpace, key: bytes, now: float) -> None:
    """Try a space; `now` is in seconds since the epoch."""
    ours, others = tenant_tag(key, TENANT), tenant_tag(key, OTHER_TENANT)
    partition = secrets.token_hex(32)
    vector = array("f", [1.0] + [0.0] * (space.dimensions - 1))
    entry = VectorEntry(
        id=EntryId(ours, secrets.token_hex(32)),
        vector=vector,
        partition=partition,
        question="",
        nonce=secrets.token_bytes(16),
        body=VALUE,
        metadata="",
        stored_at=now,
        expires_at=now + TTL_SECONDS,
    )
    await store.put(space, entry)
    try:
        found = await store.search(space, vector, ours, partition, now)
        if [hit.id for hit in found] != [entry.id]:
            raise StoreRefused(LOST)
        if await store.read_body(space, entry.id, entry.nonce) != VALUE:
            raise StoreRefused(LOST)
        if await store.search(space, vector, others, partition, now):
            raise StoreRefused(SHARED)
    finally:
        await store.remove(space, [entry.id])


async def probe_cold(store: EmbeddingStore, space: EmbeddingSpace, key: bytes) -> None:
    """Try a cold tier, with one row that stays."""
    ours, others = tenant_tag(key, TENANT), tenant_tag(key, OTHER_TENANT)
    with suppress(SpaceNotFound):
        await _probe_cold(store, space, ours, others)
        return
    await store.ensure(space)
    await _probe_cold(store, space, ours, others)


async def _probe_cold(store: EmbeddingStore, space: EmbeddingSpace, ours: str, others: str) -> None:
    generation = (await store.find(space, ours, [COLD_DIGEST])).generation
    row = ColdEmbedding(COLD_DIGEST, array("f", [1.0]).tobytes(), 0)
    if not await store.write(space, ours, [row], generation):
        return  # a retraction in between
    if COLD_DIGEST not in (await store.find(space, ours, [COLD_DIGEST])).embeddings:
        raise StoreRefused(LOST)
    if (await store.find(space, others, [COLD_DIGEST])).embeddings:
        raise StoreRefused(SHARED)
