"""TLS in front of a PostgreSQL server that was built without it: answers SSLRequest and decrypts.

The client's half is the real libpq; only the server's half is this.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Self

SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")


class TlsProxy:
    """Forwards to a port; use it as an async context manager."""

    def __init__(self, target_port: int, certificate: Path, key: Path) -> None:
        self._target_port = target_port
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, key)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.encrypted = 0
        """Connections whose handshake was completed."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._connect(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        try:
            assert await reader.readexactly(8) == SSL_REQUEST
            writer.write(b"S")
            await writer.start_tls(self._context)
            self.encrypted += 1
            await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client found the certificate wrong, or went away
        finally:
            writer.close()
            there_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
