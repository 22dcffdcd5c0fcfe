"""Flights: one upstream call for all who ask the same at the same time, and the buffer they read it from.

A flight runs in a task of its own, so that it outlives the client that began it while anybody else follows.
It is open, for others to join, until its answer is stored. Begun and joined by `fetching`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from cachewright.errors import UpstreamError, UpstreamUnreachable
from cachewright.gateway.headers import Headers
from cachewright.gateway.intake import Piece
from cachewright.layers.exact import Hit, Miss
from cachewright.policy.answers import Delivered, Delivery, KeptAnswer, deliver

AHEAD_BYTES: Final = 64 * 1024
"""How far the upstream may be ahead of a client that nobody follows."""

MOST_BUFFERED_BYTES: Final = 32 * 1024 * 1024
"""In all flights of a process together; a flight that would exceed it is shared no longer."""

OPEN_SECONDS: Final = 2.0
"""How long a flight that has landed waits at most until its answer is stored, and one that nobody reads any
more for the end of a stream whose last event is here."""

Key = tuple[str, str]
"""Tenant tag and digest of a request."""


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of an upstream's answer."""

    status: int
    headers: Headers
    """Those to pass on."""
    is_stream: bool
    """True: its pieces are whole events."""


@dataclass(frozen=True, slots=True)
class Landing:
    """How a flight ended."""

    kept: KeptAnswer | None
    """What followers get; None: each has to ask again."""
    hit: Hit | None
    """What requests get that come until the answer is stored; None: it is not."""
    _forms: dict[Delivery, Delivered | None] = field(default_factory=dict)

    def deliver(self, delivery: Delivery, path: str) -> Delivered | None:
        """Give the answer the form that a follower wants, made once for all who want the same."""
        if self.kept is not None and delivery not in self._forms:
            self._forms[delivery] = deliver(self.kept, delivery, path)
        return self._forms.get(delivery)


class Bell:
    """Wakes whoever waits at the moment it rings."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait now."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        """Return when it rings next."""
        await self._event.wait()


class Reader:
    """One client's place in a flight."""

    def __init__(self, flight: Flight) -> None:
        self._flight = flight
        self.position = 0
        """Number of pieces taken."""
        self.taken_bytes = 0
        self.is_cut = False
        """True once it fell further behind than is held for it."""

    async def head(self) -> Head | None:
        """Wait for the head; raises UpstreamError where none comes.

        None where the upstream was not asked, since another gateway has stored the answer meanwhile.
        """
        flight = self._flight
        while flight.head is None and flight.landing is None:
            if flight.error is not None:
                raise flight.error
            await flight.news.wait()
        return flight.head

    async def some(self) -> None:
        """Wait for the first part of the body; raises UpstreamError where it breaks off before."""
        flight = self._flight
        while not flight.has_begun and flight.landing is None:
            if flight.error is not None:
                raise flight.error
            await flight.news.wait()

    async def landing(self) -> Landing:
        """Wait for the end; raises UpstreamError where it broke off."""
        flight = self._flight
        while flight.landing is None:
            if flight.error is not None:
                raise flight.error
            await flight.news.wait()
        return flight.landing

    async def parts(self, with_usage: bool) -> AsyncIterator[bytes]:
        """Give the body as it arrives; raises UpstreamError where it breaks off.

        `with_usage` is the client's own wish for the usage of a stream.
        """
        flight = self._flight
        while True:
            pieces = flight.take(self)
            if part := b"".join(piece.raw if with_usage else piece.plain for piece in pieces):
                yield part
            elif self.is_cut:
                raise UpstreamUnreachable("the client was too slow for an answer of this size")
            elif flight.landing is not None:
                return
            elif flight.error is not None:
                raise flight.error
            elif not pieces:
                await flight.news.wait()

    def detach(self) -> None:
        """Leave; the last one to leave ends a flight that is still on its way."""
        self._flight.detach(self)


class Flight:
    """One upstream call and what has arrived of its answer."""

    def __init__(self, flights: Flights, key: Key, place: Miss | None, limit_bytes: int) -> None:
        self._flights = flights
        self.key = key
        self.place = place
        """Where the answer may be stored; those who missed it there under the same marks may follow."""
        self._limit_bytes = limit_bytes
        self.head: Head | None = None
        self.landing: Landing | None = None
        self.error: UpstreamError | None = None
        self.is_shared = True
        """False once the answer is too large to be held for others and to be stored."""
        self.is_superseded = False
        """True once a client's wish for a fresh answer has begun a later flight."""
        self.news = Bell()
        self._room = Bell()
        self._readers: list[Reader] = []
        """In the order they came."""
        self._pieces: list[Piece] = []
        self._dropped = 0
        """How many pieces before those are gone."""
        self._held_bytes = 0
        self._arrived_bytes = 0
        self._has_said_all = False
        """True once a stream's last event is here."""
        self._task: asyncio.Task[None] | None = None
        self._began = time.perf_counter()

    @property
    def is_over(self) -> bool:
        """True once nothing more will come."""
        return self.landing is not None or self.error is not None

    @property
    def may_be_joined(self) -> bool:
        """True while a newcomer would get the whole answer, and one as fresh as it may expect."""
        return self.is_shared and not self.is_superseded and self.error is None

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.perf_counter() - self._began

    @property
    def has_begun(self) -> bool:
        """True once anything of the body is here."""
        return self._arrived_bytes > 0

    @property
    def pieces(self) -> list[Piece]:
        """The whole answer so far; only while it is shared."""
        return self._pieces

    def attach(self) -> Reader:
        """Join, from the beginning."""
        reader = Reader(self)
        self._readers.append(reader)
        self._room.ring()
        return reader

    def detach(self, reader: Reader) -> None:
        """Take a reader out."""
        if reader not in self._readers:
            return
        self._readers.remove(reader)
        self._room.ring()
        if self._readers:
            self._trim()
        elif self.is_over:
            self._drop_all()
        elif self._has_said_all:
            # Many clients leave at the last event; what is missing is only the end of the upstream's body.
            asyncio.get_running_loop().call_later(OPEN_SECONDS, self._give_up)
        else:
            self._give_up()

    def _give_up(self) -> None:
        if self._task is not None and not self.is_over and not self._readers:
            self._flights.close(self)  # at once: nobody may join what is being given up
            self._task.cancel()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Fly."""
        self._task = asyncio.create_task(work)
        self._flights.flying(self._task)

    def arrived(self, head: Head) -> None:
        """Take the head."""
        self.head = head
        self.news.ring()

    def add(self, pieces: list[Piece]) -> None:
        """Take what arrived of the body."""
        if not pieces:
            return
        self._has_said_all = self._has_said_all or any(piece.says_all for piece in pieces)
        size = sum(len(piece.raw) for piece in pieces)
        self._pieces += pieces
        self._arrived_bytes += size
        self._hold(size)
        too_much = (
            self._arrived_bytes > self._limit_bytes or self._flights.buffered_bytes > MOST_BUFFERED_BYTES
        )
        if self.is_shared and too_much:
            self.is_shared = False
            self._flights.close(self)
        self._trim()
        self.news.ring()

    async def room(self) -> None:
        """Wait until the client that began the flight, or else the next in line, has caught up.

        With others behind it only what is held for them is the bound, so that one slow client holds up
        nobody; alone, a slow client slows the upstream down as it would without us.
        """
        while self._readers:
            most = AHEAD_BYTES if len(self._readers) == 1 else self._limit_bytes
            if self._behind(self._readers[0]) <= most:
                return
            await self._room.wait()

    def land(self, landing: Landing) -> None:
        """End well."""
        self.landing = landing
        if landing.hit is None:
            self._flights.close(self)
        self._end()

    def fail(self, error: UpstreamError) -> None:
        """End badly."""
        self.error = error
        self._flights.close(self)
        self._end()

    def take(self, reader: Reader) -> list[Piece]:
        """Give a reader what it has not had yet."""
        if reader.is_cut:
            return []
        pieces = self._pieces[reader.position - self._dropped :]
        if pieces:
            reader.position += len(pieces)
            reader.taken_bytes = self._arrived_bytes
            self._trim()
            self._room.ring()
        return pieces

    def _end(self) -> None:
        if not self._readers:
            self._drop_all()
        self.news.ring()

    def _behind(self, reader: Reader) -> int:
        return self._arrived_bytes - reader.taken_bytes

    def _hold(self, size_bytes: int) -> None:
        self._held_bytes += size_bytes
        self._flights.buffered_bytes += size_bytes

    def _trim(self) -> None:
        """Let go of what all have had, and of readers too far behind; of nothing while it is shared."""
        if self.is_shared:
            return
        for reader in self._readers[1:]:
            reader.is_cut = reader.is_cut or self._behind(reader) > self._limit_bytes
        end = self._dropped + len(self._pieces)
        oldest = min((reader.position for reader in self._readers if not reader.is_cut), default=end)
        gone = self._pieces[: oldest - self._dropped]
        if gone:
            del self._pieces[: len(gone)]
            self._dropped += len(gone)
            self._hold(-sum(len(piece.raw) for piece in gone))

    def _drop_all(self) -> None:
        self._dropped += len(self._pieces)
        self._pieces = []
        self._hold(-self._held_bytes)


class Flights:
    """All flights of a process that may be joined."""

    def __init__(self) -> None:
        self._open: dict[Key, Flight] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.buffered_bytes = 0
        """Held by all flights, also those that are not open any more."""

    def at(self, key: Key) -> Flight | None:
        """Return the flight that may be joined."""
        return self._open.get(key)

    def begin(self, key: Key, place: Miss | None, limit_bytes: int) -> Flight:
        """Make a flight that others join from now on, in place of an older one."""
        flight = Flight(self, key, place, limit_bytes)
        older = self._open.get(key)
        if older is not None and older.place == place:
            older.is_superseded = True
        self._open[key] = flight
        return flight

    def begin_alone(self, key: Key, place: Miss | None, limit_bytes: int) -> Flight:
        """Make a flight that nobody joins."""
        return Flight(self, key, place, limit_bytes)

    def close(self, flight: Flight) -> None:
        """Let nobody join a flight any more."""
        if self._open.get(flight.key) is flight:
            del self._open[flight.key]

    def close_later(self, flight: Flight) -> None:
        """Close a flight soon, whatever becomes of its write."""
        asyncio.get_running_loop().call_later(OPEN_SECONDS, self.close, flight)

    def flying(self, task: asyncio.Task[None]) -> None:
        """Keep a flight's task until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Give up what is still on its way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
