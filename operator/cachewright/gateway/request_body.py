"""A request's body: from ASGI's `receive` to bytes in bounds, and to the news that the client has gone.

Made by the app for each request, read by the flow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from cachewright.errors import BodyTooLarge, ClientGone

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class RequestBody:
    """The body of one request; never holds more than it was asked to."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._held: list[bytes] = []
        """Read but not yet given out by `chunks`."""
        self._received_bytes = 0
        self._complete = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self.gone = False
        """True once the client has closed its connection."""
        self.too_large = False
        """True once the body has grown beyond the bound of `chunks`."""

    async def read_up_to(self, limit_bytes: int) -> bytes | None:
        """Read all if it is no longer than the limit; else None, with what was read kept for `chunks`."""
        while not self._complete.is_set():
            self._held.append(await self._next())
            if self._received_bytes > limit_bytes:
                return None
        return b"".join(self._held)

    @property
    def beginning(self) -> bytes:
        """What was read and is still to be given out."""
        return b"".join(self._held)

    async def chunks(self, limit_bytes: int) -> AsyncIterator[bytes]:
        """Give the body as it arrives; raises BodyTooLarge beyond the limit and ClientGone."""
        while self._held:
            yield self._bounded(self._held.pop(0), limit_bytes)
        while not self._complete.is_set():
            yield self._bounded(await self._next(), limit_bytes)

    def cancel_when_gone(self) -> None:
        """From now on, cancel the current task when the client closes its connection."""
        task = asyncio.current_task()
        if task is not None and self._watch is None:
            self._watch = asyncio.create_task(self._await_departure(task))

    def stop_watching(self) -> None:
        """Undo `cancel_when_gone`."""
        if self._watch is not None:
            self._watch.cancel()

    def _bounded(self, chunk: bytes, limit_bytes: int) -> bytes:
        if self._received_bytes > limit_bytes:
            self.too_large = True
            raise BodyTooLarge("the request body is too large")
        return chunk

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone = True
            raise ClientGone("the client closed its connection")
        chunk: bytes = message.get("body", b"")
        self._received_bytes += len(chunk)
        if not message.get("more_body", False):
            self._complete.set()
        return chunk

    async def _await_departure(self, task: asyncio.Task[Any]) -> None:
        await self._complete.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        task.cancel()
