"""From a URL to a redis-py client with bounded connections, and from its errors to StoreErrors.

Used by the stores in this package. Every command is bounded by a deadline of its own; a connection on which
one ran out is closed, since its next answer would belong to the command before.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from redis import exceptions
from redis.asyncio import (
    Connection,
    ConnectionPool,
    Redis,
    RedisCluster,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from cachewright.errors import InvalidInput, StoreError, StoreRefused, StoreUnavailable
from cachewright.stores.redis_url import RedisUrl, Topology, parse_redis_url

CONNECT_TIMEOUT_SECONDS: Final = 2.0
COMMAND_TIMEOUT_SECONDS: Final = 2.0
"""Longest wait for one call, connecting included, where no longer one is asked for: no caller is left hanging
by a frozen server."""

SENTINEL_TIMEOUT_SECONDS: Final = 0.5
"""Longest wait for one Sentinel, so that a call has time left for the others."""

MAX_CONNECTIONS: Final = 32
"""To each server; more do not make a single-threaded one faster. Callers wait for a free one."""

CLUSTER_RETRIES: Final = 3
"""Once redis-py has learned who holds what, it closes connections that others have just begun to use."""

_UNAVAILABLE: Final = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    exceptions.RedisClusterException,  # no node answers, or none holds the slot
    OSError,
)

_SPEAKS_FOR_OTHERS: Final = (exceptions.RedisClusterException, exceptions.ConnectionError)
_SAID_BY_A_SERVER: Final = (exceptions.AuthenticationError, exceptions.ResponseError)

Client: TypeAlias = "Redis | RedisCluster"


class TlsConnection(SSLConnection):
    """A TLS connection whose context is made once: reading the system's authorities takes 20 ms."""

    def __init__(self, tls_context: ssl.SSLContext, **options: Any) -> None:  # noqa: ANN401 - redis-py's
        super().__init__(**options)
        self.ssl_context.context = tls_context


class LeanPool(ConnectionPool):
    """redis-py's pool without locks around what never awaits, and without metrics that nobody reads.

    They and a search for deprecated arguments cost a tenth of all that a look-up does. The sentinels' pool
    stays as it is.
    """

    async def get_connection(
        self,
        command_name: str | None = None,  # noqa: ARG002 - redis-py's signature
        *keys: Any,  # noqa: ANN401, ARG002
        **options: Any,  # noqa: ANN401, ARG002
    ) -> AbstractConnection:
        """Return a connection that is ready for a command."""
        connection: AbstractConnection = self.get_available_connection()  # type: ignore[no-untyped-call]
        try:
            await self.ensure_connection(connection)
        except BaseException:
            await self.release(connection)
            raise
        return connection

    async def release(self, connection: AbstractConnection) -> None:
        """Take a connection back."""
        self._in_use_connections.remove(connection)
        try:
            if connection.should_reconnect():  # type: ignore[no-untyped-call]
                await connection.disconnect()
        finally:
            self._available_connections.append(connection)


class RedisLink:
    """A client, and the right to use one of its connections at a time."""

    def __init__(
        self, url: RedisUrl, max_connections: int = MAX_CONNECTIONS, call_seconds: float = 0.0
    ) -> None:
        """`call_seconds` lets a call take longer than usual."""
        self.url = url
        self._call_seconds = call_seconds
        self.tls_context = _tls_context(url) if url.tls else None
        self._sentinel = _open_sentinel(url) if url.topology is Topology.SENTINEL else None
        self._client = _open_client(url, self.tls_context, self._sentinel, max_connections)
        self._free = asyncio.Semaphore(max_connections)

    @asynccontextmanager
    async def use(self, action: str) -> AsyncIterator[Client]:
        """Give the client for one call; redis-py's errors leave as StoreErrors that name `action`."""
        try:
            async with asyncio.timeout(max(COMMAND_TIMEOUT_SECONDS, self._call_seconds)), self._free:
                yield self._client
        except (exceptions.RedisError, exceptions.RedisClusterException, OSError, ValueError) as e:
            raise _converted(action, e) from e

    async def connections_to_primaries(self) -> dict[str, AbstractConnection]:
        """Make a connection of its own to each server that takes writes, speaking RESP3; by address."""
        options = {**connection_options(self.url), "protocol": 3}
        if self.url.topology is Topology.UNIX:
            path = self.url.path
            return {path: UnixDomainSocketConnection(path=path, db=self.url.db, **options)}
        if self.tls_context is not None:
            options |= {"tls_context": self.tls_context, **tls_options(self.url)}
        kind = TlsConnection if self.url.tls else Connection
        hosts = await self._primaries()
        return {
            f"{host}:{port}": kind(host=host, port=port, db=self.url.db, **options) for host, port in hosts
        }

    async def _primaries(self) -> Sequence[tuple[str, int]]:
        async with self.use("find the servers") as client:
            if isinstance(client, RedisCluster):
                await client.initialize()
                return [(node.host, int(node.port)) for node in client.get_primaries()]
            if isinstance(client.connection_pool, SentinelConnectionPool):
                return [await client.connection_pool.get_master_address()]  # type: ignore[no-untyped-call]
        return self.url.hosts

    async def aclose(self) -> None:
        """Close all connections."""
        if isinstance(self._client, Redis):
            await self._client.aclose(close_connection_pool=True)
        else:
            await self._client.aclose()
        if self._sentinel is not None:
            await self._sentinel.aclose()


def open_link(url: str, max_connections: int = MAX_CONNECTIONS, call_seconds: float = 0.0) -> RedisLink:
    """Make a link that connects when it is first used; raises InvalidInput for a URL that is not one."""
    return RedisLink(parse_redis_url(url), max_connections, call_seconds)


def connection_options(url: RedisUrl) -> dict[str, Any]:
    """Return what every connection to a server behind the URL is made with."""
    return {
        "username": url.username,
        "password": url.password,
        "socket_connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "socket_timeout": None,  # bounded by RedisLink.use, without timers that may swallow a cancellation
        "protocol": 2,  # AUTH alone, so that the ACL users need no further connection commands
        "driver_info": None,
        "retry": Retry(NoBackoff(), 0),
    }


def tls_options(url: RedisUrl) -> dict[str, Any]:
    """Return what a TLS connection takes beyond that: the system's authorities count, and ours if given."""
    return {
        "ssl_ca_certs": url.ca_file,
        "ssl_ca_data": url.ca_data,
        "ssl_cert_reqs": "required",
        "ssl_check_hostname": True,
    }


def _tls_context(url: RedisUrl) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if url.ca_file is not None:
        try:
            context.load_verify_locations(cafile=url.ca_file)
        except (OSError, ValueError) as e:
            raise InvalidInput("the file that ssl_ca_certs of the store's URL names holds no PEM") from e
    if url.ca_data is not None:
        try:
            context.load_verify_locations(cadata=url.ca_data)
        except (OSError, ValueError) as e:
            raise InvalidInput("what is given as certificates of the store's authorities is no PEM") from e
    return context


def _open_sentinel(url: RedisUrl) -> Sentinel:
    options = {
        **connection_options(url),
        "username": url.sentinel_username,
        "password": url.sentinel_password,
        "socket_connect_timeout": SENTINEL_TIMEOUT_SECONDS,
        "socket_timeout": SENTINEL_TIMEOUT_SECONDS,
        "ssl": url.tls,
        **(tls_options(url) if url.tls else {}),
    }
    return Sentinel(list(url.hosts), sentinel_kwargs=options)  # type: ignore[no-untyped-call]


def _open_client(
    url: RedisUrl, tls_context: ssl.SSLContext | None, sentinel: Sentinel | None, max_connections: int
) -> Client:
    options = {**connection_options(url), "socket_connect_timeout": None}  # bounded by RedisLink.use as well
    tls = tls_options(url) if url.tls else {}
    if url.topology is Topology.CLUSTER:
        return RedisCluster(
            startup_nodes=[ClusterNode(host, port) for host, port in url.hosts],
            max_connections=max_connections,
            ssl=url.tls,
            **options | {"retry": Retry(NoBackoff(), CLUSTER_RETRIES)},
            **tls,
        )
    if sentinel is not None:
        options |= {"db": url.db, "ssl": url.tls, "max_connections": max_connections, **tls}
        pool: ConnectionPool = SentinelConnectionPool(url.service, sentinel, **options)  # type: ignore[no-untyped-call]
    elif url.topology is Topology.UNIX:
        options |= {"path": url.path, "db": url.db}
        pool = LeanPool(UnixDomainSocketConnection, max_connections, **options)
    else:
        ((host, port),) = url.hosts
        options |= {"host": host, "port": port, "db": url.db}
        if tls_context is not None:
            options |= {"tls_context": tls_context, **tls}
        pool = LeanPool(TlsConnection if url.tls else Connection, max_connections, **options)
    return Redis.from_pool(pool)


def _converted(action: str, error: Exception) -> StoreError:
    cause = error.__cause__
    if isinstance(error, _SPEAKS_FOR_OTHERS) and isinstance(cause, _SAID_BY_A_SERVER):
        error = cause  # a server was reached, and refused; redis-py makes nobody's answer of it
    text = f"{action}: {str(error) or type(error).__name__}"
    if isinstance(error, MasterNotFoundError):
        return StoreUnavailable(text.partition(" : ")[0])  # what follows are whole clients
    if isinstance(error, exceptions.AuthenticationError):
        return StoreRefused(text)  # a ConnectionError to redis-py, but trying again is useless
    return StoreUnavailable(text) if isinstance(error, _UNAVAILABLE) else StoreRefused(text)
