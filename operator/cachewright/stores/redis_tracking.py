"""Changed keys in Redis or Valkey, as the server tells of them: client tracking in broadcast mode.

One connection to each server that takes writes hears of every key under the cache's prefix. A connection
that falls silent is asked for a sign of life, since one that is half open would stay silent for ever.
Used by the exact layer's copies in process memory, through CacheStore.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from cachewright.errors import StoreError, StoreUnavailable
from cachewright.keys.digest import key_prefix, record_key
from cachewright.keys.scheme import TAGS
from cachewright.stores.protocols import KeyListener, Marks
from cachewright.stores.redis_client import COMMAND_TIMEOUT_SECONDS, RedisLink

SILENCE_SECONDS: Final = 2.0
"""Without a message for so long, a PING is sent; without an answer for as long again, the server is lost."""

FIRST_PAUSE_SECONDS: Final = 0.2
"""Before connecting anew; each further pause is twice as long."""

LONGEST_PAUSE_SECONDS: Final = 10.0
"""Also for servers that cannot track keys or do not let us."""


class RedisTrackingStore:
    """TrackingStore on Redis or Valkey."""

    _link: RedisLink

    async def read_marks(self, cache_id: str) -> dict[str, Marks]:
        """Read the marks under all hash tags, in one round trip to each server."""
        async with self._link.use("read the marks") as client:
            pipeline = client.pipeline(transaction=False)
            for tag in TAGS:
                pipeline.hmget(record_key(cache_id, tag), "revision", "changes")
            held: list[Sequence[Any]] = await pipeline.execute()
            return {
                tag: Marks(int(revision), int(changes or 0))
                for tag, (revision, changes) in zip(TAGS, held, strict=True)
                if revision is not None
            }

    async def follow_keys(self, cache_id: str, listener: KeyListener) -> None:
        """Tell the listener of changed keys of a cache until cancelled, through failures and restarts."""
        clock = asyncio.get_running_loop().time
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            started = clock()
            try:
                connections = await self._link.connections_to_primaries()
                prefix = key_prefix(cache_id)
                await _until_one_fails([_follow(each, prefix, listener) for each in connections.values()])
            except (StoreError, exceptions.RedisError, exceptions.RedisClusterException, OSError):
                pass  # whoever had begun to listen has told so
            if clock() - started > LONGEST_PAUSE_SECONDS:
                pause_seconds = FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)


async def _until_one_fails(followers: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all until one fails, end the others and raise what the one raised.

    Not a task group or gather: in Python 3.11 both may swallow a cancellation which comes in the moment in
    which one of their tasks fails, and whoever waited for the end of the caller would wait for ever.
    """
    if not followers:  # a cluster that names no primary for the moment
        return
    tasks = [asyncio.create_task(follower) for follower in followers]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _follow(connection: AbstractConnection, prefix: str, listener: KeyListener) -> None:
    async def hear(message: list[Any]) -> bool:
        keys: list[bytes] | None = message[1]
        if keys is None:  # the whole database was emptied
            listener.keys_lost()
        else:
            listener.keys_changed([key.decode("utf-8", "replace") for key in keys])
        return True

    is_listening = False
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
            await connection.connect()  # type: ignore[no-untyped-call]
            # redis-py offers this to its synchronous client only; its minor version is pinned, and a test
            # notices when this ends to work.
            connection._parser.set_invalidation_push_handler(hear)  # type: ignore[attr-defined]  # noqa: SLF001
            await connection.send_command("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", prefix)
            await connection.read_response()
        is_listening = True
        listener.keys_lost()  # whatever changed before
        await _listen(connection)
    finally:
        if is_listening:
            listener.keys_lost()
        await connection.disconnect(nowait=True)


async def _listen(connection: AbstractConnection) -> None:
    is_asked = False
    while True:
        message = await connection.read_response(timeout=SILENCE_SECONDS, push_request=True)
        if message is not None:
            is_asked = False
        elif is_asked:
            raise StoreUnavailable("follow keys: the server has fallen silent")
        else:
            await connection.send_command("PING")
            is_asked = True
