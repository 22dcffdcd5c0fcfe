"""From a URL and a key to a Qdrant client with bounded calls, and from its errors to StoreErrors.

Used by `qdrant_vectors`. The client brings numpy, pydantic models and gRPC along, so this module is imported
only where the configuration names Qdrant.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from cachewright.errors import InvalidInput, SpaceNotFound, StoreError, StoreRefused, StoreUnavailable

COMMAND_TIMEOUT_SECONDS: Final = 2.0
"""Longest wait for one call, connecting included: no caller is left hanging by a frozen server."""

UPKEEP_TIMEOUT_SECONDS: Final = 30.0
"""The same for what only janitors and first makers do: making and dropping collections, deleting in bulk."""

MAX_CONNECTIONS: Final = 32
IDLE_SECONDS: Final = 30.0
"""How long a connection is kept for the next call."""

MAX_COMPLAINT: Final = 200
"""Characters of a server's complaint that are passed on; it may repeat what it was sent."""

_HTTP_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404
_SERVER_ERRORS: Final = 500
_TOO_MANY: Final = 429


class QdrantLink:
    """A client, and calls of it that end in time with an answer or a StoreError."""

    def __init__(self, client: AsyncQdrantClient) -> None:
        self._client = client

    @asynccontextmanager
    async def use(
        self, action: str, seconds: float = COMMAND_TIMEOUT_SECONDS
    ) -> AsyncIterator[AsyncQdrantClient]:
        """Give the client for one call; its errors leave as StoreErrors that name `action`."""
        try:
            async with asyncio.timeout(seconds):
                yield self._client
        except TimeoutError as e:
            raise StoreUnavailable(f"{action}: no answer within {seconds:g} s") from e
        except (ApiException, ResourceExhaustedResponse, ValueError) as e:
            raise _converted(action, e) from e

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()


def open_link(url: str, api_key: str | None = None, ca_file: str | None = None) -> QdrantLink:
    """Make a link that connects when it is first used; raises InvalidInput for a URL that is not one."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
        raise InvalidInput("a Qdrant URL looks like https://host:6333, without user, password and options")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # else a line for each call
    client = AsyncQdrantClient(
        url=url,
        headers={"api-key": api_key} if api_key else {},
        check_compatibility=False,  # it warns from a thread; `check` asks for the version itself
        limits=httpx.Limits(
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
        ),
        timeout=round(UPKEEP_TIMEOUT_SECONDS),
        trust_env=False,  # a proxy is for the upstream, not for a store in the cluster
        verify=_tls_context(ca_file) if parts.scheme == "https" else True,
    )
    return QdrantLink(client)


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ValueError) as e:
            raise InvalidInput("the file with Qdrant's certificate authority holds no PEM") from e
    return context


def _converted(action: str, error: Exception) -> StoreError:
    if isinstance(error, ResourceExhaustedResponse):
        return StoreUnavailable(f"{action}: asked to slow down")
    if isinstance(error, ResponseHandlingException):
        source = error.source
        if isinstance(source, httpx.TransportError):
            return StoreUnavailable(f"{action}: {str(source) or type(source).__name__}")
        return StoreRefused(f"{action}: an answer that is not Qdrant's ({type(source).__name__})")
    if isinstance(error, UnexpectedResponse):
        return _answered(action, error.status_code or 0, _complaint(error.content))
    text = str(error)[:MAX_COMPLAINT]  # the client's local mode, or arguments it finds wrong itself
    missing = text.startswith("Collection ") and text.endswith("not found")
    return SpaceNotFound(f"{action}: {text}") if missing else StoreRefused(f"{action}: {text}")


def _answered(action: str, status: int, complaint: str) -> StoreError:
    text = f"{action}: {status} {complaint}".rstrip()
    if status >= _SERVER_ERRORS or status == _TOO_MANY:
        return StoreUnavailable(text)
    if status == _NOT_FOUND and "ollection" in complaint:
        return SpaceNotFound(text)
    if status in _HTTP_OK:
        return StoreRefused(f"{action}: an answer that is not Qdrant's")
    return StoreRefused(text)


def _complaint(content: bytes) -> str:
    """Return what Qdrant says went wrong, and nothing of an answer that is not in its form."""
    try:
        answer: Any = json.loads(content)
        error = answer["status"]["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return str(error)[:MAX_COMPLAINT]
