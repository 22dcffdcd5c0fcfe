"""The record's broadcast copy in Redis or Valkey, under each of the 64 hash tags of a cache.

Used by the operator, which publishes, and by gateways, which refill an emptied store.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from cachewright.errors import InvalidDocument
from cachewright.keys.digest import heartbeat_key, record_key
from cachewright.keys.permission import WritePermission, spaced
from cachewright.keys.record import Record
from cachewright.keys.scheme import TAGS
from cachewright.stores.protocols import RecordStore, beginning_of_changes, step_of_changes
from cachewright.stores.redis_client import RedisLink, open_link
from cachewright.stores.redis_probes import RedisProbeStore
from cachewright.stores.redis_reclaim import RedisReclaimReports
from cachewright.stores.redis_scripts import BEAT, PUBLISH_RECORD
from cachewright.stores.redis_server import RedisServerFacts

_OPERATOR_CONNECTIONS: Final = 2


class RedisRecordStore(RedisProbeStore, RedisReclaimReports, RedisServerFacts):
    """RecordStore on Redis or Valkey."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def read_record(self, cache_id: str) -> Record | None:
        """Read the copy with the highest revision; copies that do not parse count as absent."""
        async with self._link.use("read the record") as client:
            pipeline = client.pipeline(transaction=False)
            for tag in TAGS:
                pipeline.hget(record_key(cache_id, tag), "record")
            copies: list[bytes | None] = await pipeline.execute()
        records = []
        for text in {copy for copy in copies if copy is not None}:
            with suppress(InvalidDocument):
                records.append(Record.from_json(text))
        ours = [record for record in records if record.cache_id == cache_id]
        return max(ours, key=lambda record: record.revision, default=None)

    async def publish_record(self, record: Record) -> int:
        """Write the record under every tag where its revision is greater, in one round trip."""
        text, permission = record.to_json(), WritePermission.of(record)
        arguments = (record.revision, text, beginning_of_changes(), step_of_changes())
        permissions = (spaced(*permission.free), spaced(*permission.fenced))
        async with self._link.use("publish the record") as client:
            pipeline = client.pipeline(transaction=False)
            for tag in TAGS:
                pipeline.eval(PUBLISH_RECORD, 1, record_key(record.cache_id, tag), *arguments, *permissions)
            held: list[int] = await pipeline.execute()
        return max(held)

    async def beat(self, cache_id: str, revision: int, seconds: float) -> bool:
        """Set the heartbeat under every tag whose copy holds this revision, in one round trip."""
        ttl_ms, step = max(1, round(seconds * 1000)), step_of_changes()
        async with self._link.use("beat") as client:
            pipeline = client.pipeline(transaction=False)
            for tag in TAGS:
                keys = (record_key(cache_id, tag), heartbeat_key(cache_id, tag))
                pipeline.eval(BEAT, len(keys), *keys, revision, ttl_ms, step)
            return all(await pipeline.execute())

    async def aclose(self) -> None:
        """Close all connections."""
        await self._link.aclose()


def open_record_store(url: str) -> RecordStore:
    """Open a store that connects when it is first used; raises InvalidInput for a URL that is not one."""
    return RedisRecordStore(open_link(url, _OPERATOR_CONNECTIONS))
