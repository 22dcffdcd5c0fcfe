"""The upstream: from an outgoing request to its answer as it arrives, over pooled aiohttp connections.

The only user of aiohttp's client in the gateway; its errors leave as UpstreamErrors. Nothing is decompressed,
redirected, retried or remembered: an answer is relayed as the upstream gave it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from cachewright.errors import UpstreamTimedOut, UpstreamUnreachable
from cachewright.gateway.headers import Headers

CONNECT_TIMEOUT_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 4.0
"""Shorter than the 5 s after which common engines close idle connections: no request meets a closed one."""

MAX_CONNECTIONS: Final = 2048

LONGEST_HEADER_BYTES: Final = 256 * 1024
"""Longest header of an answer; longer than any server's default, so that we are never the narrow place."""

_LEAST_ERROR: Final = 400

_LARGE_BODY_BYTES: Final = 1024 * 1024
"""Written in pieces, so that one large request does not hold up the others."""

_PIECE_BYTES: Final = 64 * 1024

_WRITTEN_BY_AIOHTTP: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add by itself."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to the upstream."""

    method: str
    url: str
    headers: Headers
    body: bytes | AsyncIterator[bytes] | None = field(repr=False)
    hidden: str | None = field(default=None, repr=False)
    """A text that an error must not show to the client, though the engine may quote the request in it."""


class UpstreamAnswer:
    """An answer whose head has arrived."""

    def __init__(self, response: aiohttp.ClientResponse, hidden: str | None = None) -> None:
        """`hidden` is blotted out where the answer is an error."""
        self._response = response
        self._hidden = hidden.encode() if hidden and response.status >= _LEAST_ERROR else b""
        self.status = response.status
        self.headers: Headers = [(name.lower(), value) for name, value in response.raw_headers]

    def chunks(self) -> AsyncIterator[bytes]:
        """Give the body as it arrives; raises UpstreamError where it breaks off."""
        return blotted(self._chunks(), self._hidden) if self._hidden else self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except TimeoutError as e:
            raise UpstreamTimedOut("the upstream fell silent in the middle of its answer") from e
        except (aiohttp.ClientError, OSError) as e:
            raise UpstreamUnreachable(f"the upstream broke off its answer: {type(e).__name__}") from e

    def close(self) -> None:
        """Give the connection back if the answer was read to its end, else close it."""
        self._response.release() if self._response.content.at_eof() else self._response.close()


class Upstream:
    """One upstream."""

    def __init__(self, timeout_seconds: float, tls: ssl.SSLContext | None = None) -> None:
        """`tls` replaces the system's authorities; to be made inside a running loop."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=MAX_CONNECTIONS, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=True if tls is None else tls
            ),
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=min(CONNECT_TIMEOUT_SECONDS, timeout_seconds),
                sock_read=timeout_seconds,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_WRITTEN_BY_AIOHTTP,
            trust_env=False,
            max_line_size=LONGEST_HEADER_BYTES,
            max_field_size=LONGEST_HEADER_BYTES,
        )

    async def send(self, request: Outgoing) -> UpstreamAnswer:
        """Send a request and return once the head of its answer is here; raises UpstreamError."""
        headers = CIMultiDict((name.decode("ascii"), _text(value)) for name, value in request.headers)
        body = request.body
        if isinstance(body, bytes) and len(body) > _LARGE_BODY_BYTES:
            headers["Content-Length"] = str(len(body))
            body = _pieces(body)
        try:
            response = await self._session.request(
                request.method,
                URL(request.url, encoded=True),
                headers=headers,
                data=body,
                allow_redirects=False,
            )
        except TimeoutError as e:
            raise UpstreamTimedOut("the upstream did not answer in time") from e
        except (aiohttp.ClientError, OSError, ValueError) as e:
            raise UpstreamUnreachable(f"the upstream cannot be reached: {type(e).__name__}") from e
        return UpstreamAnswer(response, request.hidden)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()


async def blotted(chunks: AsyncIterator[bytes], hidden: bytes) -> AsyncIterator[bytes]:
    """Put stars in the place of `hidden`, wherever it is cut; the length stays."""
    held = b""
    async for chunk in chunks:
        data = (held + chunk).replace(hidden, b"*" * len(hidden))
        cut = max(0, len(data) - len(hidden) + 1)
        held = data[cut:]
        if cut:
            yield data[:cut]
    if held:
        yield held


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]


def _text(value: bytes) -> str:
    """Decode a header so that aiohttp, which writes UTF-8, sends the same bytes wherever it can."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
