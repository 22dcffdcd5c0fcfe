"""Walking over a cache's keys in Redis or Valkey, removing them, and the reports on it.

SCAN looks at a few keys at a time and UNLINK frees them beside the server's work, so others wait for neither.
Used by the janitor through ReclaimStore, and by the operator, which reads the reports.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from cachewright.errors import InvalidDocument, InvalidInput, StoreError, StoreRefused, StoreUnavailable
from cachewright.keys.digest import key_pattern, record_key
from cachewright.keys.entry_key import (
    janitor_key,
    janitor_lock_key,
    keyspace_pattern,
    lies_within,
    sweep_pause_key,
)
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.reclaim import Page, ReclaimReport, SweepReport
from cachewright.stores.redis_client import COMMAND_TIMEOUT_SECONDS, RedisLink
from cachewright.stores.redis_scripts import HOLD_LOCK, RELEASE_LOCK
from cachewright.stores.redis_url import Topology

MOST_UNLINKED: Final = 500
"""In one command: an UNLINK of so many keys keeps a server busy for a fraction of a millisecond."""

_SWEEP_FIELD: Final = "sweep"
"""Of the janitor's hash; all others are names of keyspaces."""


class RedisReclaimReports:
    """ReclaimReports on Redis or Valkey."""

    _link: RedisLink

    async def read_reclaims(
        self, cache_id: str, keyspaces: Collection[Keyspace]
    ) -> dict[Keyspace, ReclaimReport]:
        """Read the reports on these keyspaces, in one round trip."""
        wanted = sorted(keyspaces)
        if not wanted:
            return {}
        async with self._link.use("read the janitor's reports") as client:
            pipeline = client.pipeline(transaction=False)
            for keyspace in wanted:
                pipeline.hget(janitor_key(cache_id), str(keyspace))
            texts: list[bytes | None] = await pipeline.execute()
        reports = {}
        for keyspace, text in zip(wanted, texts, strict=True):
            if text is not None:
                with suppress(InvalidDocument):
                    reports[keyspace] = ReclaimReport.from_json(text)
        return reports

    async def read_sweep(self, cache_id: str) -> SweepReport | None:
        """Read the report on the last sweep."""
        async with self._link.use("read the janitor's report") as client:
            text = await client.hget(janitor_key(cache_id), _SWEEP_FIELD)
        with suppress(InvalidDocument):
            return None if text is None else SweepReport.from_json(text)
        return None


class RedisReclaimStore(RedisReclaimReports):
    """ReclaimStore on Redis or Valkey."""

    async def walk(
        self, cache_id: str, keyspace: Keyspace | None, page_size: int
    ) -> AsyncGenerator[Page, None]:
        """Walk once over all keys of a keyspace, or of the whole cache, on every server that takes writes.

        Each server is asked over one connection from its first key to its last: a cursor means nothing to a
        server that was promoted in between.
        """
        pattern = key_pattern(cache_id) if keyspace is None else keyspace_pattern(cache_id, keyspace)
        for connection in (await self._link.connections_to_primaries()).values():
            async with _opened(connection):
                cursor: bytes | int = 0
                while True:
                    cursor, keys = await _scan(connection, cursor, pattern, page_size)
                    yield Page(tuple(key.decode(errors="surrogateescape") for key in keys), page_size)
                    if int(cursor) == 0:
                        break

    async def unlink(self, cache_id: str, keyspace: Keyspace | None, keys: Sequence[str]) -> int:
        """Remove keys of a keyspace, or of the whole cache; in a cluster, each hash tag's by one command."""
        if not all(lies_within(cache_id, keyspace, key) for key in keys):
            raise InvalidInput(f"not all of these keys lie in {keyspace or 'the cache'}")
        removed = 0
        for batch in _batches(keys, by_tag=self._link.url.topology is Topology.CLUSTER):
            async with self._link.use("remove entries") as client:
                pipeline = client.pipeline(transaction=False)
                for together in batch:
                    pipeline.execute_command("UNLINK", *together)
                removed += sum(await pipeline.execute())
        return removed

    async def read_generations_at(
        self, cache_id: str, places: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[int, ...]]:
        """Read counters, each place's under its own hash tag."""
        if not places:
            return []
        async with self._link.use("read generations") as client:
            pipeline = client.pipeline(transaction=False)
            for tag, counters in places:
                pipeline.hmget(record_key(cache_id, tag), *counters)
            held: list[list[bytes | None]] = await pipeline.execute()
        return [tuple(int(value or 0) for value in values) for values in held]

    async def hold_janitor(self, cache_id: str, token: str, ttl_seconds: float) -> bool:
        """Take the janitor's lock, or keep it, unless somebody else holds it."""
        key, ttl_ms = janitor_lock_key(cache_id), max(1, round(ttl_seconds * 1000))
        async with self._link.use("hold the janitor's lock") as client:
            return int(await client.eval(HOLD_LOCK, 1, key, token, ttl_ms)) == 1

    async def free_janitor(self, cache_id: str, token: str) -> bool:
        """Free the janitor's lock if it is held with this token."""
        async with self._link.use("free the janitor's lock") as client:
            return int(await client.eval(RELEASE_LOCK, 1, janitor_lock_key(cache_id), token)) == 1

    async def write_reclaim(self, cache_id: str, keyspace: Keyspace, report: ReclaimReport) -> None:
        """Leave a report on a keyspace."""
        async with self._link.use("report on a keyspace") as client:
            await client.hset(janitor_key(cache_id), str(keyspace), report.to_json())

    async def forget_reclaims(self, cache_id: str, newest: int, kept: Collection[Keyspace]) -> None:
        """Drop the reports on all keyspaces up to an incarnation but on those that are kept."""
        async with self._link.use("drop the janitor's reports") as client:
            fields: Any = await client.hkeys(janitor_key(cache_id))
            gone = [
                field
                for field in fields
                if (keyspace := _keyspace(field)) and keyspace.incarnation <= newest and keyspace not in kept
            ]
            if gone:
                await client.hdel(janitor_key(cache_id), *gone)

    async def sweep_is_due(self, cache_id: str) -> bool:
        """Tell whether the pause that the last sweep asked for is over, by the server's clock."""
        async with self._link.use("look for the last sweep") as client:
            return await client.get(sweep_pause_key(cache_id)) is None

    async def write_sweep(self, cache_id: str, report: SweepReport, pause_seconds: float) -> None:
        """Leave a report on a sweep; none is due for so long."""
        pause_ms = max(1, round(pause_seconds * 1000))
        async with self._link.use("report on a sweep") as client:
            await client.hset(janitor_key(cache_id), _SWEEP_FIELD, report.to_json())
            await client.set(sweep_pause_key(cache_id), b"1", px=pause_ms)


def _keyspace(field: bytes) -> Keyspace | None:
    try:
        return Keyspace.parse(field.decode(errors="replace"))
    except InvalidDocument:
        return None


def _batches(keys: Sequence[str], *, by_tag: bool) -> list[list[Sequence[str]]]:
    """Cut keys into round trips, each of commands, each of keys that one server holds."""
    cut = [keys[start : start + MOST_UNLINKED] for start in range(0, len(keys), MOST_UNLINKED)]
    if not by_tag:
        return [[part] for part in cut]
    batches: list[list[Sequence[str]]] = []
    for part in cut:
        tagged: dict[str, list[str]] = {}
        for key in part:
            tagged.setdefault(key.partition("}")[0], []).append(key)
        batches.append(list(tagged.values()))
    return batches


async def _scan(
    connection: AbstractConnection, cursor: bytes | int, pattern: str, page_size: int
) -> tuple[bytes, list[bytes]]:
    if int(cursor) != 0 and not connection.is_connected:
        raise StoreUnavailable("walk over the keys: the connection was lost")
    async with _converting(), asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
        await connection.send_command("SCAN", cursor, "MATCH", pattern, "COUNT", page_size)
        answer: Any = await connection.read_response()
    following, keys = answer
    return following, keys


@asynccontextmanager
async def _opened(connection: AbstractConnection) -> AsyncIterator[None]:
    try:
        async with _converting(), asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
            await connection.connect()  # type: ignore[no-untyped-call]
        yield
    finally:
        await connection.disconnect(nowait=True)


@asynccontextmanager
async def _converting() -> AsyncIterator[None]:
    try:
        yield
    except StoreError:
        raise
    except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as e:
        raise StoreUnavailable(f"walk over the keys: {e or type(e).__name__}") from e
    except exceptions.RedisError as e:
        raise StoreRefused(f"walk over the keys: {e}") from e
