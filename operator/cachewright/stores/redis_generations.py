"""Generation counters in Redis or Valkey: fields of the record's copy under each of the 64 hash tags.

They stand beside the marks, so that a look-up reads both at one moment and by one command. Used by what
retracts; see `keys.generations`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright.keys.digest import record_key
from cachewright.keys.scheme import TAGS
from cachewright.stores.protocols import Raise, step_of_changes
from cachewright.stores.redis_client import RedisLink
from cachewright.stores.redis_scripts import RAISE_GENERATIONS


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
