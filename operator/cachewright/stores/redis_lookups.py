"""Look-ups that share round trips: what waits while a few are under way goes to the server in one pipeline.

A burst of requests would else queue for connections, and the last of it would take our own queue for a slow
store. Used by RedisCacheStore on everything but Redis Cluster, where neighbours live on different servers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from cachewright.errors import StoreRefused
from cachewright.keys.digest import EntryName
from cachewright.stores.protocols import Found, Marks
from cachewright.stores.redis_client import Client, RedisLink
from cachewright.stores.redis_url import Topology

MOST_ROUND_TRIPS: Final = 3
"""Under way at once; more of them would only make each one smaller."""

MOST_TOGETHER: Final = 32
"""In one round trip, so that a few large entries hold up no great number of others."""

_LookUp = tuple[EntryName, Sequence[str], "asyncio.Future[Found]"]


class LookUps:
    """The look-ups of one store."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._shares = link.url.topology is not Topology.CLUSTER
        self._waiting: deque[_LookUp] = deque()
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def find(self, name: EntryName, counters: Sequence[str]) -> Found:
        """Read an entry, the marks of its hash tag and generation counters there; raises StoreError."""
        if not self._shares or self._under_way < MOST_ROUND_TRIPS:
            return await self._find_now(name, counters)
        found: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._waiting.append((name, counters, found))
        return await found

    async def _find_now(self, name: EntryName, counters: Sequence[str]) -> Found:
        self._under_way += 1
        try:
            (answer,) = await self._round_trip([(name, counters)])
        finally:
            self._under_way -= 1
            self._go_on()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _go_on(self) -> None:
        """Take along those who wait, as far as round trips are free."""
        while self._waiting and self._under_way < MOST_ROUND_TRIPS:
            chosen = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_TOGETHER))]
            self._under_way += 1
            task = asyncio.create_task(self._find_together(chosen))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _find_together(self, chosen: list[_LookUp]) -> None:
        try:
            answers = await self._round_trip([(name, counters) for name, counters, _ in chosen])
        except Exception as e:  # noqa: BLE001 - the edge of a task: whoever waits must hear of it
            answers = [e] * len(chosen)
        finally:
            self._under_way -= 1
        for (_, _, future), answer in zip(chosen, answers, strict=True):
            if not future.done():  # else its request has given up
                _settle(future, answer)
        self._go_on()

    async def _round_trip(self, asked: Sequence[tuple[EntryName, Sequence[str]]]) -> list[Found | Exception]:
        async with self._link.use("look up") as client:
            return await find_all(client, asked)


async def find_all(
    client: Client, asked: Sequence[tuple[EntryName, Sequence[str]]]
) -> list[Found | Exception]:
    """Look up several entries in one round trip; one that the server refuses spoils no other."""
    pipeline = client.pipeline(transaction=False)
    for name, counters in asked:
        pipeline.hmget(name.record_key, "revision", "changes", *counters)
        pipeline.get(name.key)
    answers: list[Any] = await pipeline.execute(raise_on_error=False)
    return [_found(marks, value) for marks, value in zip(answers[::2], answers[1::2], strict=True)]


def _found(marks: Any, value: Any) -> Found | Exception:  # noqa: ANN401 - replies as redis-py gives them
    for answer in (marks, value):
        if isinstance(answer, Exception):
            return StoreRefused(f"look up: {answer}")
    revision, changes, *raised = marks
    seen = None if revision is None else Marks(int(revision), int(changes or 0))
    return Found(seen, value, tuple(int(generation or 0) for generation in raised))


def _settle(future: asyncio.Future[Found], answer: Found | Exception) -> None:
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
