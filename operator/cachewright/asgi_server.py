"""From an ASGI application to a uvicorn server that is one of several in a process' event loop.

Used by the gateway, the built-in embedder's server and local mode, each of which ends its servers itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Final

import uvicorn

KEEP_ALIVE_SECONDS: Final = 75
"""Longer than the 60 s after which common balancers close idle connections."""


class AsgiServer(uvicorn.Server):
    """A uvicorn server among others in one loop; signals are the business of whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    @property
    def bound_port(self) -> int:
        """The port it listens on, once it has started."""
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port


def server_config(
    app: Any,  # noqa: ANN401 - uvicorn's own type is private
    host: str,
    port: int,
    graceful_seconds: int,
    http: type[asyncio.Protocol] | None = None,
) -> uvicorn.Config:
    """Configure a server of ours: no log of its own, no header of its own, no trust in proxies' headers.

    `graceful_seconds` is how long requests under way have at its end; `http` replaces uvicorn's protocol.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        interface="asgi3",  # it would take a method for an older kind of application
        http=http or "auto",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=graceful_seconds,
    )
