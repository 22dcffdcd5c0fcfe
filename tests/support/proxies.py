"""A TCP proxy between a client and a server on loopback: slow, or a network that swallows every packet."""

from __future__ import annotations

import asyncio
from typing import Self

CHUNK_BYTES = 65536


class Proxy:
    """Forwards to a port; use it as an async context manager."""

    _gone: tuple[type[Exception], ...] = (ConnectionError,)
    """What tells that a side went away."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.delay_seconds = 0.0
        """How long each piece of data waits on its way, in both directions."""
        self.swallow = False
        """Take everything, forward nothing, close nothing. What was swallowed stays lost."""

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
            await self._greet(reader, writer)
            await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        except self._gone:
            pass  # either side went away
        finally:
            writer.close()
            there_writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Do what comes before the first byte that is forwarded."""

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            if not self.swallow:
                writer.write(data)
                await writer.drain()
        if not self.swallow:
            writer.close()
