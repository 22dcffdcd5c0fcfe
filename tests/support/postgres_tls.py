"""TLS in front of a PostgreSQL server that was built without it: answers SSLRequest and decrypts.

The client's half is the real libpq; only the server's half is this.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from tests.support.proxies import Proxy

SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")


class TlsProxy(Proxy):
    """Forwards what it decrypts; use it as an async context manager."""

    _gone = (OSError, asyncio.IncompleteReadError)  # also a client that found the certificate wrong

    def __init__(self, target_port: int, certificate: Path, key: Path) -> None:
        super().__init__(target_port)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, key)
        self.encrypted = 0
        """Connections whose handshake was completed."""

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(8) == SSL_REQUEST
        writer.write(b"S")
        await writer.start_tls(self._context)
        self.encrypted += 1
