"""What a Redis or Valkey server says of itself: its role, its disk, and what it does when memory runs out.

Read by the operator in each pass.
"""

from __future__ import annotations

from typing import Any, Final

from cachewright.errors import StoreRefused
from cachewright.stores.protocols import ServerFacts
from cachewright.stores.redis_client import RedisLink

_MAY_NOT = ("NOPERM", "no permissions", "unknown command")

_ON_DISK: Final = ("rdb_last_bgsave_status", "aof_last_write_status")
"""What a server says of its files; after `err` it refuses writes, unless it is told not to."""


class RedisServerFacts:
    """The part of RecordStore that asks the server about itself."""

    _link: RedisLink

    async def read_server(self) -> ServerFacts | None:
        """Ask for role, memory and disk; of a cluster, the server worst off. None where it may not be."""
        try:
            async with self._link.use("ask the server about itself") as client:
                memory = _by_server(await client.info("memory"), "used_memory")
                replication = _by_server(await client.info("replication"), "role")
                disk = _by_server(await client.info("persistence"), _ON_DISK[0])
                stats = _by_server(await client.info("stats"), "evicted_keys")
        except StoreRefused as e:
            if any(sign in str(e) for sign in _MAY_NOT):
                return None
            raise
        policies = sorted({str(each.get("maxmemory_policy", "")) for each in memory})
        unsafe = [policy for policy in policies if policy.startswith("allkeys-")]
        fullest = max(memory, key=_share)
        evicting = max(stats, key=lambda each: int(each.get("evicted_keys", 0)))
        failed = [field for field in _ON_DISK if any(each.get(field) == "err" for each in disk)]
        return ServerFacts(
            is_replica=all(each.get("role") == "slave" for each in replication),
            eviction_policy=(unsafe or policies)[0],
            used_bytes=int(fullest.get("used_memory", 0)),
            max_bytes=int(fullest.get("maxmemory", 0)),
            evicted_keys=int(evicting.get("evicted_keys", 0)),
            expired_keys=int(evicting.get("expired_keys", 0)),
            disk_trouble=failed[0] if failed else "",
        )


def _by_server(answer: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """Return one answer per server, each with that field; a client of a cluster may have asked several."""
    return [each for each in answer.values() if isinstance(each, dict) and field in each] or [answer]


def _share(memory: dict[str, Any]) -> float:
    most = int(memory.get("maxmemory", 0))
    return int(memory.get("used_memory", 0)) / most if most else 0.0
