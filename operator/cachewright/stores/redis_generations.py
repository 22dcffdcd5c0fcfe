"""Generation counters in Redis or Valkey: fields of the record's copy under each of the 64 hash tags.

They stand beside the marks, so that a look-up reads both at one moment and by one command. Used by what
retracts; see `keys.generations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cachewright.keys.digest import record_key
from cachewright.keys.generations import is_droppable
from cachewright.keys.scheme import TAGS
from cachewright.stores.protocols import Marks, Raise, step_of_changes
from cachewright.stores.redis_client import RedisLink
from cachewright.stores.redis_scripts import DROP_GENERATIONS, RAISE_GENERATIONS

MOST_DROPPED: Final = 500
"""Counters in one script, which keeps a server busy for a millisecond; others go at another time."""


class RedisGenerationStore:
    """GenerationStore on Redis or Valkey."""

    _link: RedisLink

    async def raise_generations(self, cache_id: str, counters: Sequence[str]) -> dict[str, Raise]:
        """Raise counters by one, and the number of changes, under every tag, in one round trip."""
        step = step_of_changes()
        async with self._link.use("raise generations") as client:
            pipeline = client.pipeline(transaction=False)
            for tag in TAGS:
                pipeline.eval(RAISE_GENERATIONS, 1, record_key(cache_id, tag), step, *counters)
            raised: list[int] = await pipeline.execute()
        return {tag: Raise(after - step, after) for tag, after in zip(TAGS, raised, strict=True)}

    async def read_generations(self, cache_id: str, counters: Sequence[str]) -> tuple[int, ...]:
        """Read the lowest value of each counter, in one round trip."""
        async with self._link.use("read generations") as client:
            pipeline = client.pipeline(transaction=False)
            for tag in TAGS:
                pipeline.hmget(record_key(cache_id, tag), *counters)
            held: list[list[bytes | None]] = await pipeline.execute()
        return tuple(min(int(value or 0) for value in values) for values in zip(*held, strict=True))

    async def list_generations(self, cache_id: str) -> dict[str, int]:
        """Read the counters that could be dropped, under the first tag: there are as many under each."""
        key = record_key(cache_id, TAGS[0])
        async with self._link.use("list generations") as client:
            fields: Any = await client.hkeys(key)
            names = [name for field in fields if is_droppable(name := field.decode(errors="replace"))]
            if not names:
                return {}
            values: Any = await client.hmget(key, names)
        return {name: int(value) for name, value in zip(names, values, strict=True) if value is not None}

    async def drop_generations(
        self, cache_id: str, counters: Mapping[str, int], seen: Mapping[str, Marks]
    ) -> int:
        """Drop counters that have these values, tag by tag; tells how many went under the tag most did."""
        step = step_of_changes()
        pairs = [part for pair in list(counters.items())[:MOST_DROPPED] for part in pair]
        async with self._link.use("drop generations") as client:
            pipeline = client.pipeline(transaction=False)
            for tag, marks in seen.items():
                key = record_key(cache_id, tag)
                pipeline.eval(DROP_GENERATIONS, 1, key, step, marks.changes, *pairs)
            dropped: list[int] = await pipeline.execute()
        return max(dropped, default=0)
