"""Vectors in Qdrant: a collection for each keyspace, tenant and partition as indexed payload.

Opened by `vector_opening`. Small partitions are searched exactly, by Qdrant's own planner; large tenants have
a graph of their own, and there is none over everything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from qdrant_client import AsyncQdrantClient, models

from cachewright.errors import InvalidDocument, SpaceNotFound, StoreRefused, StoreUnfit
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores import qdrant_points as points
from cachewright.stores.qdrant_link import UPKEEP_TIMEOUT_SECONDS, QdrantLink
from cachewright.stores.vectors import (
    SEARCH_LIMIT,
    Capabilities,
    EntryId,
    Hit,
    Marker,
    Quantization,
    Vector,
    VectorEntry,
    VectorSpace,
    keyspace_in,
    require_ours,
    require_vector,
    space_name,
)

MIN_VERSION: Final = (1, 12)
"""Sorting by payload came with 1.8, the query API with 1.10, tenant indexes with 1.11; one for margin."""

CHECKED: Final = "cachewright-check"
"""Nobody makes a collection of that name; whoever may not ask for it has the wrong key."""

PAGE: Final = 1000
"""Points that are looked up and deleted at once."""


class QdrantVectorStore:
    """VectorStore on Qdrant."""

    def __init__(self, link: QdrantLink) -> None:
        self._link = link

    async def check(self) -> Capabilities:
        """Ask for the server's version, and something that it tells only to those who may know."""
        async with self._link.use("ask Qdrant for its version") as client:
            version = (await client.info()).version
            found = re.match(r"(\d+)\.(\d+)", version)
            if found is None or (int(found[1]), int(found[2])) < MIN_VERSION:
                wanted = ".".join(map(str, MIN_VERSION))
                raise StoreUnfit(f"Qdrant {wanted} or newer is needed; the server is {version}")
            await client.collection_exists(CHECKED)
        return Capabilities("Qdrant", version)

    async def ensure(self, space: VectorSpace, probe_text: str, probe_vector: Vector) -> Marker:
        """Make the collection, its indexes and its marker, as far as they are missing."""
        require_vector(space, probe_vector)
        with suppress(SpaceNotFound):
            return await self.read_marker(space)
        await self._create(space)
        marker = Marker(space.cache_id, space.keyspace, space.dimensions, probe_text, probe_vector)
        async with self._link.use(f"make {space.name}", UPKEEP_TIMEOUT_SECONDS) as client:
            await _complete(client, space, marker)
            found = await _find_marker(client, space.name)
        return require_ours(space, found)

    async def read_marker(self, space: VectorSpace) -> Marker:
        """Read the marker."""
        async with self._link.use(f"read the marker of {space.name}") as client:
            found = await _find_marker(client, space.name)
        if found is None:
            raise SpaceNotFound(f"{space.name} is not complete yet")
        return require_ours(space, found)

    async def put(self, space: VectorSpace, entry: VectorEntry) -> None:
        """Store an entry, and return once a search can find it."""
        require_vector(space, entry.vector)
        async with self._link.use("store a vector") as client:
            await client.upsert(space.name, [points.entry_point(entry)], wait=True)

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        tenant_tag: str,
        partition: str,
        now: float,
        limit: int = SEARCH_LIMIT,
    ) -> Sequence[Hit]:
        """Find the nearest entries of a tenant's partition that expire after `now`."""
        require_vector(space, vector)
        async with self._link.use("search") as client:
            answer = await client.query_points(
                space.name,
                query=vector.tolist(),
                query_filter=points.search_filter(tenant_tag, partition, now),
                search_params=None if space.quantization is Quantization.NONE else points.RESCORE,
                limit=limit,
                with_payload=points.HIT_FIELDS,
            )
        try:
            return [points.hit_of(point) for point in answer.points]
        except InvalidDocument as e:
            raise StoreRefused(f"search: {e}") from e

    async def read_body(self, space: VectorSpace, entry: EntryId, nonce: bytes) -> bytes | None:
        """Read an entry's body."""
        async with self._link.use("read an entry") as client:
            found = await client.retrieve(
                space.name, [points.point_id(entry)], with_payload=points.BODY_FIELDS
            )
        return points.body_of(found[0], nonce) if found else None

    async def remove(self, space: VectorSpace, entries: Sequence[EntryId]) -> None:
        """Remove entries, those that are there."""
        if not entries:
            return
        async with self._link.use("remove entries") as client:
            await _delete(client, space.name, [points.point_id(entry) for entry in entries])

    async def count(
        self, space: VectorSpace, tenant_tag: str | None = None, partition: str | None = None
    ) -> int:
        """Count entries: all of them about, a part exactly."""
        matching = points.count_filter(tenant_tag, partition)
        async with self._link.use("count entries") as client:
            counted = await client.count(space.name, matching, exact=matching is not None)
        return counted.count if matching else max(0, counted.count - 1)  # one is the marker

    async def evict_oldest(self, space: VectorSpace, number: int, tenant_tag: str | None = None) -> int:
        """Remove those stored first, page by page."""
        matching = points.count_filter(tenant_tag, None)
        return await self._delete_matching(space, matching, number, "stored_at_ms")

    async def delete_expired(self, space: VectorSpace, now: float, limit: int) -> int:
        """Remove entries that have expired, page by page."""
        return await self._delete_matching(space, points.expired_filter(now), limit, None)

    async def list_spaces(self, cache_id: str) -> Sequence[Keyspace]:
        """List the keyspaces that have a collection with this cache's marker, or one that has none yet."""
        async with self._link.use("list collections", UPKEEP_TIMEOUT_SECONDS) as client:
            names = [found.name for found in (await client.get_collections()).collections]
            keyspaces = [keyspace for name in names if (keyspace := keyspace_in(name, cache_id))]
            owned = [keyspace for keyspace in keyspaces if await _is_owned(client, cache_id, keyspace)]
        return sorted(owned)

    async def drop(self, cache_id: str, keyspace: Keyspace) -> bool:
        """Remove a collection with all in it."""
        name = space_name(cache_id, keyspace)
        async with self._link.use(f"drop {name}", UPKEEP_TIMEOUT_SECONDS) as client:
            if not await client.collection_exists(name):
                return False
            if not await _is_owned(client, cache_id, keyspace):
                raise StoreRefused(f"drop: {name} does not carry the marker of this cache")
            await client.delete_collection(name, timeout=round(UPKEEP_TIMEOUT_SECONDS))
        return True

    async def aclose(self) -> None:
        """Close all connections."""
        await self._link.aclose()

    async def _create(self, space: VectorSpace) -> None:
        try:
            async with self._link.use(f"create {space.name}", UPKEEP_TIMEOUT_SECONDS) as client:
                await client.create_collection(space.name, **points.collection_settings(space))
        except StoreRefused as e:
            if "already exists" not in str(e):  # another gateway was faster
                raise

    async def _delete_matching(
        self, space: VectorSpace, matching: models.Filter | None, number: int, order_by: str | None
    ) -> int:
        removed = 0
        while removed < number:
            async with self._link.use("remove entries", UPKEEP_TIMEOUT_SECONDS) as client:
                found, _ = await client.scroll(
                    space.name,
                    scroll_filter=matching,
                    limit=min(PAGE, number - removed),
                    order_by=order_by,
                    with_payload=False,
                )
                if not found:
                    break
                await _delete(client, space.name, [str(point.id) for point in found])
            removed += len(found)
        return removed


async def _find_marker(client: AsyncQdrantClient, name: str) -> Marker | None:
    found = await client.retrieve(name, [points.MARKER_POINT], with_payload=True)
    return points.marker_of(name, found[0]) if found else None


async def _complete(client: AsyncQdrantClient, space: VectorSpace, marker: Marker) -> None:
    """Write the marker, unless the collection holds what somebody stored without one."""
    for field, schema in points.INDEXES.items():
        await client.create_payload_index(space.name, field, schema, wait=True)
    if (await client.count(space.name, exact=True)).count:
        return
    await client.upsert(space.name, [points.marker_point(marker)], wait=True)


async def _delete(client: AsyncQdrantClient, name: str, ids: Sequence[str]) -> None:
    selector = models.PointIdsList(points=list(ids))
    await client.delete(name, selector, wait=True)


async def _is_owned(client: AsyncQdrantClient, cache_id: str, keyspace: Keyspace) -> bool:
    """Tell whether a collection carries this cache's marker, or nothing: its maker was killed midway."""
    name = space_name(cache_id, keyspace)
    found = await client.retrieve(name, [points.MARKER_POINT], with_payload=True)
    if not found:
        return (await client.count(name, exact=True)).count == 0
    try:
        marker = points.marker_of(name, found[0])
    except StoreRefused:
        return False
    return (marker.cache_id, marker.keyspace) == (cache_id, keyspace)
