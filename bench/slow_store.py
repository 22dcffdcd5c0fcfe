"""A store that is slow: a relay in front of a real one that holds each of its answers back for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def slow_store(port: int, delay_seconds: float) -> AsyncIterator[int]:
    """Relay to the store on `port`; gives the port to connect to instead."""
    tasks: set[asyncio.Task[None]] = set()

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, pause_seconds: float) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):
            while data := await source.read(65536):
                if pause_seconds:
                    await asyncio.sleep(pause_seconds)
                target.write(data)
                await target.drain()
        target.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        for task in (
            asyncio.create_task(pump(reader, far_writer, 0)),
            asyncio.create_task(pump(far_reader, writer, delay_seconds)),
        ):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
