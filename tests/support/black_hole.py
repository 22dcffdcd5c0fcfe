"""A wire between a client and a server that may lose everything for a while without anybody being told.

As when packets are dropped on the way: no connection is closed, new ones are accepted by the kernel and come
to nothing, and what was sent meanwhile arrives late, once the wire is whole again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Wire:
    """A TCP proxy on loopback; `cut` and `mend` it."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._whole = asyncio.Event()
        self._whole.set()
        self._connections: set[asyncio.Task[None]] = set()
        self.held_bytes = 0
        """What was sent towards the server since the wire was cut."""

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    @property
    def port(self) -> int:
        """Where clients connect to."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        """Pass nothing on from now on, in either direction."""
        self.held_bytes = 0
        self._whole.clear()

    def mend(self) -> None:
        """Pass on what was held, and all that follows."""
        self._whole.set()

    async def aclose(self) -> None:
        """Close everything."""
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._carry(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            await self._whole.wait()
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(to_server)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, to_server, is_request=True))
                pumps.create_task(self._pump(from_server, writer, is_request=False))
        finally:
            for each in writers:
                each.close()
            with suppress(OSError):
                await asyncio.gather(*(each.wait_closed() for each in writers))

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_request: bool
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if is_request and not self._whole.is_set():
                    self.held_bytes += len(data)
                await self._whole.wait()
                sink.write(data)
                await sink.drain()
            if sink.can_write_eof():
                sink.write_eof()


@asynccontextmanager
async def wire_to(port: int) -> AsyncIterator[Wire]:
    """Put a wire before a port of this machine until the block ends."""
    wire = Wire(port)
    await wire.start()
    try:
        yield wire
    finally:
        wire.mend()
        await wire.aclose()
