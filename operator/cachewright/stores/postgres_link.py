"""From a DSN to PostgreSQL connections with bounded calls, and from psycopg's errors to StoreErrors.

Used by the stores in this package that keep something in PostgreSQL. psycopg's libpq takes a while to load,
so this module is imported only where the configuration names PostgreSQL.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, errors, waiting
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from cachewright.errors import (
    InvalidInput,
    SpaceNotFound,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)

COMMAND_TIMEOUT_SECONDS: Final = 2.0
"""Longest wait for one call, connecting included: no caller is left hanging by a frozen server."""

UPKEEP_TIMEOUT_SECONDS: Final = 30.0
"""The same for what only janitors and first makers do: making and dropping tables, deleting in bulk."""

CONNECT_TIMEOUT_SECONDS: Final = 2
"""For each address a host name stands for; libpq takes no less."""

MAX_CONNECTIONS: Final = 8
"""Each is a process on the server. Callers wait for a free one."""

_UNAVAILABLE_CLASSES: Final = ("08", "40", "53", "57", "58")
"""SQLSTATE classes: connection, rollback by the server, out of resources, intervention, system error."""

_UNAVAILABLE_STATES: Final = ("55P03", "25006")
"""A lock that is held too long, and a server that became a replica."""

_MAX_COMPLAINT: Final = 200

Connection: TypeAlias = "AsyncConnection[TupleRow]"
_T = TypeVar("_T")


class ImpatientConnection(AsyncConnection[TupleRow]):
    """A connection that is closed at once when a call on it is cancelled.

    psycopg would ask the server to cancel, and wait up to 10 s for a frozen one to say that it did. Here the
    server's own statement_timeout ends what nobody waits for any more.
    """

    async def wait(
        self,
        gen: PQGen[_T],
        interval: float = 0.1,
        timeout: float | None = None,  # noqa: ASYNC109 - psycopg's signature
    ) -> _T:
        """Run a generator that operates on the connection."""
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise


class PostgresLink:
    """Some connections, and the right to use one of them at a time."""

    def __init__(self, parameters: dict[str, Any], max_connections: int = MAX_CONNECTIONS) -> None:
        self._parameters = parameters
        self._free = asyncio.Semaphore(max_connections)
        self._idle: list[Connection] = []
        """Last used last and taken first, so that no more are kept warm than are needed."""

    @asynccontextmanager
    async def use(self, action: str, seconds: float = COMMAND_TIMEOUT_SECONDS) -> AsyncIterator[Connection]:
        """Give a connection in autocommit mode; psycopg's errors leave as StoreErrors that name `action`."""
        try:
            async with asyncio.timeout(seconds), self._free:
                connection = self._take() or await self._connect()
                try:
                    yield connection
                finally:
                    await self._give_back(connection)
        except TimeoutError as e:
            raise StoreUnavailable(f"{action}: no answer within {seconds:g} s") from e
        except (psycopg.Error, OSError) as e:
            raise _converted(action, e) from e

    async def aclose(self) -> None:
        """Close all connections that nobody uses."""
        while self._idle:
            await self._idle.pop().close()

    def _take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and not _has_news(connection):
                return connection
            connection.pgconn.finish()
        return None

    async def _connect(self) -> Connection:
        connection = await ImpatientConnection.connect(**self._parameters)
        try:
            await connection.execute(
                "SELECT set_config('statement_timeout', %s, false)",
                [str(int(COMMAND_TIMEOUT_SECONDS * 1000))],
            )
        except BaseException:
            connection.pgconn.finish()
            raise
        return connection

    async def _give_back(self, connection: Connection) -> None:
        if connection.pgconn.transaction_status == TransactionStatus.IDLE:
            self._idle.append(connection)
        else:
            connection.pgconn.finish()


def open_link(dsn: str, ca_file: str | None = None, max_connections: int = MAX_CONNECTIONS) -> PostgresLink:
    """Make a link that connects when it is first used; raises InvalidInput for a DSN that is not one.

    With `ca_file` (PEM) servers are verified in full, unless the DSN says otherwise.
    """
    try:
        parameters: dict[str, Any] = dict(conninfo_to_dict(dsn))
        for port in filter(None, str(parameters.get("port", "")).split(",")):
            int(port)
    except (psycopg.Error, ValueError):
        # from None, and without the message: it repeats the DSN, password included
        raise InvalidInput(
            "a PostgreSQL DSN looks like postgresql://user:password@host:5432/database"
        ) from None
    if ca_file is not None:
        _require_certificates(ca_file)
        parameters = {"sslrootcert": ca_file, "sslmode": "verify-full"} | parameters
    defaults: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "fallback_application_name": "cachewright",
    }
    fixed: dict[str, Any] = {
        "autocommit": True,
        "prepare_threshold": None,  # poolers between us and the server may not carry prepared statements
    }
    return PostgresLink(defaults | parameters | fixed, max_connections)


def _require_certificates(file: str) -> None:
    """Refuse what libpq would only stumble over when it connects, in words that tell nothing."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
    except (OSError, ValueError) as e:
        raise InvalidInput("the file with PostgreSQL's certificate authority holds no PEM") from e


def _has_news(connection: Connection) -> bool:
    """Tell whether the server said something while nobody asked: mostly that it ends the connection."""
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


def _converted(action: str, error: Exception) -> StoreError:
    if isinstance(error, errors.UndefinedTable):
        return SpaceNotFound(f"{action}: the table does not exist")
    state = getattr(error, "sqlstate", None)
    text = f"{action}: {_complaint(error)}"
    if state is None:
        refused = isinstance(error, psycopg.Error) and _is_refusal(str(error))
        return StoreRefused(text) if refused else StoreUnavailable(text)
    if state[:2] in _UNAVAILABLE_CLASSES or state in _UNAVAILABLE_STATES:
        return StoreUnavailable(text)
    return StoreRefused(text)


def _is_refusal(text: str) -> bool:
    """Tell whether a server that was reached refused the connection; libpq gives text alone."""
    signs = ("authentication failed", "no pg_hba.conf entry", " does not exist", "certificate", "SSL")
    return any(sign in text for sign in signs)


def _complaint(error: Exception) -> str:
    """Return the first line of what went wrong; further lines may show data or the query."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    text = primary or next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return text[:_MAX_COMPLAINT]
