"""From a URL to a redis-py client with bounded connections, and from its errors to StoreErrors.

Used by the stores in this package. Every command is bounded by a deadline of its own; a connection on which
one ran out is closed, since its next answer would belong to the command before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from redis import exceptions
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from cachewright.errors import InvalidInput, StoreError, StoreRefused, StoreUnavailable

CONNECT_TIMEOUT_SECONDS: Final = 2.0
COMMAND_TIMEOUT_SECONDS: Final = 2.0
"""Longest wait for one call, connecting included: no caller is left hanging by a frozen server."""

MAX_CONNECTIONS: Final = 32
"""More do not make a single-threaded server faster; callers wait for a free one."""


class RedisLink:
    """A client, and the right to use one of its connections at a time."""

    def __init__(self, client: Redis, max_connections: int) -> None:
        self._client = client
        self._free = asyncio.Semaphore(max_connections)

    @asynccontextmanager
    async def use(self, action: str) -> AsyncIterator[Redis]:
        """Give the client for one call; redis-py's errors leave as StoreErrors that name `action`."""
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS), self._free:
                yield self._client
        except (exceptions.RedisError, OSError, ValueError) as e:
            raise _converted(action, e) from e

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose(close_connection_pool=True)


def open_link(url: str, max_connections: int = MAX_CONNECTIONS) -> RedisLink:
    """Make a link that connects when it is first used; raises InvalidInput for a URL that is not one."""
    try:
        pool: ConnectionPool = ConnectionPool.from_url(
            url.strip(),
            max_connections=max_connections,
            socket_connect_timeout=CONNECT_TIMEOUT_SECONDS,
            socket_timeout=None,  # bounded by RedisLink.use, without a timer for each read
            protocol=2,  # AUTH alone, so that the ACL users need no further connection commands
            driver_info=None,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as e:
        raise InvalidInput("the store's URL must look like redis://user:password@host:6379/0") from e
    return RedisLink(Redis.from_pool(pool), max_connections)


def _converted(action: str, error: Exception) -> StoreError:
    text = f"{action}: {str(error) or type(error).__name__}"
    match error:
        case exceptions.AuthenticationError():  # a ConnectionError to redis-py, but trying again is useless
            return StoreRefused(text)
        case exceptions.TimeoutError() | exceptions.ConnectionError() | OSError():
            return StoreUnavailable(text)
        case _:
            return StoreRefused(text)
