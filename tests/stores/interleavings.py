"""Gateways, a store and an operator whose every step is taken when a schedule says so.

Each call to the store is held up twice: before the store does it, and before its answer is heard. A schedule
is a string of bytes, each of which begins something or lets one of the waiting steps go on. The layers, L0
and the scripts are the real ones; only the clock, the upstream and the order of things are the schedule's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cachewright.keys.context import Context
from cachewright.keys.digest import EntryName, ExactQuestion, exact_digest
from cachewright.keys.generations import Dependence, tenant_counter
from cachewright.keys.record import Record
from cachewright.layers.breaker import Breaker
from cachewright.layers.exact import ExactLayer, ExactSettings, Hit, Miss
from cachewright.layers.known_marks import KnownMarks
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.local import LocalCache, LocalSettings
from cachewright.stores.protocols import CacheStore

DONE_SECONDS = 2.0
"""How long after the store has answered a change is reported as done."""

ALL_GO_ON = 25
"""Steps below let everything that waits come to its end."""

KEY = bytes(32)
TAG = "tenant"


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, as the gateway's flow would hand it to the layer."""

    digest: str
    dependence: Dependence

    @classmethod
    def make(cls, text: str) -> Asked:
        """Digest a question."""
        question = ExactQuestion("/v1/chat/completions", "", (), {"text": text}, Context())
        return cls(exact_digest(KEY, TAG, question), Dependence.of(KEY, TAG, question))


QUESTIONS = (Asked.make("one"), Asked.make("two"))


class GatedStore:
    """A CacheStore each of whose calls waits for the schedule before and after it is done."""

    def __init__(self, inner: CacheStore, world: World) -> None:
        self._inner = inner
        self._world = world

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return the inner store's method, held up."""
        call = getattr(self._inner, name)

        async def held_up(*arguments: object) -> object:
            await self._world.turn()
            self._world.working += 1
            try:
                result = await call(*arguments)
                self._world.note(name, arguments)
            finally:
                self._world.working -= 1
            await self._world.turn()
            return result

        return held_up


@dataclass
class Gateway:
    """One gateway's layer with its L0, and what its tracking connection has yet to say."""

    known: KnownRecord
    local: LocalCache
    layer: ExactLayer
    messages: list[list[str]] = field(default_factory=list)

    def keys_changed(self, keys: Sequence[str]) -> None:
        """Take a message that the schedule delivers late or never."""
        self.messages.append(list(keys))

    def keys_lost(self) -> None:
        """Take the same for all keys."""


@dataclass
class World:
    """Two gateways, one store, and what must not be served any more."""

    inner: CacheStore
    cache_id: str
    lose: Callable[[], None] | None = None
    """Empties the store at once, where it may be emptied."""
    now: float = 1000.0
    working: int = 0
    revision: int = 0
    """The highest that the store ever held."""
    changes: int = 0
    """Changes that the store has carried out: switches, retractions, removals."""
    hits: int = 0
    local_hits: int = 0
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    names: dict[Asked, EntryName] = field(default_factory=dict)
    """Where an answer to a question was found last."""
    violations: list[str] = field(default_factory=list)
    _done: list[tuple[float, str | None, int | None, int]] = field(default_factory=list)
    """Changes by when they are done, for which entry (None: all), in which gateway (None: all)."""
    _numbers: dict[object, int] = field(default_factory=dict)
    """The number of the change that a revision or a task was."""

    def __post_init__(self) -> None:
        """Make both gateways, with the first record mounted."""
        self.store = cast("CacheStore", GatedStore(self.inner, self))
        self.record = Record(self.cache_id, 0, 0).with_layer("Exact", "1" * 16, "binding", "t")
        self.gateways = [self._gateway(), self._gateway()]

    def _gateway(self) -> Gateway:
        known = KnownRecord(self.cache_id)
        known.offer(self.record)
        local = LocalCache(LocalSettings(100, 30), KnownMarks(self.clock), self.clock)
        settings = ExactSettings(self.cache_id, "binding", 3600, 3600)
        breaker = Breaker(self.inner.ping, 3600, lambda _: None)
        layer = ExactLayer(self.store, known, breaker, settings, KEY, lambda: 0.0, local, self.clock)
        return Gateway(known, local, layer)

    def clock(self) -> float:
        """Return monotonic seconds, which pass when the schedule says so."""
        return self.now

    async def turn(self) -> None:
        """Wait until the schedule lets this step go on."""
        step: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(step)
        await step

    def note(self, call: str, arguments: Sequence[object]) -> None:
        """Number what the store has just carried out."""
        if call == "publish_record":
            revision = cast("Record", arguments[0]).revision
            if revision > self.revision:
                self.revision = revision
                self.changes += 1
                self._numbers[revision] = self.changes
        elif call in {"raise_generations", "remove"}:
            self.changes += 1
            self._numbers[asyncio.current_task()] = self.changes

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def settle(self) -> None:
        """Let everything run that waits for nobody but the loop and the real store."""
        quiet = 0
        while quiet < 8:
            await asyncio.sleep(0)
            quiet = 0 if self.working else quiet + 1

    async def ask(self, number: int, asked: Asked) -> None:
        """Serve one request; an answer is the number of changes when the upstream was asked."""
        gateway, must_be = self.gateways[number], self._floors(number)
        found = await gateway.layer.look_up(TAG, asked.digest, asked.dependence)
        if isinstance(found, Hit):
            key = found.place.name.key
            self.names[asked] = found.place.name
            self.hits += 1
            self.local_hits += found.is_local
            answer = json.loads(found.entry.body)
            if answer < (floor := max(must_be.get(None, 0), must_be.get(key, 0))):
                self.violations.append(f"{answer} served by {number} when {floor} was done: {found}")
        elif isinstance(found, Miss):
            answer = self.changes
            await self.turn()
            await gateway.layer.write(found, "application/json", json.dumps(answer).encode())

    async def switch(self) -> None:
        """Rotate, as the operator does: the record first, then the store's copies."""
        record = self.record = self.record.with_layer("Exact", f"{self.record.revision:016x}", "binding", "t")
        await self.store.publish_record(record)
        self._done.append((self.now + DONE_SECONDS, None, None, self._numbers.get(record.revision, 0)))

    async def retract(self) -> None:
        """Raise the tenant's generation."""
        await self.store.raise_generations(self.cache_id, [tenant_counter(TAG)])
        self._done.append((self.now + DONE_SECONDS, None, None, self._numbers[asyncio.current_task()]))

    async def purge(self, number: int, name: EntryName) -> None:
        """Remove one entry through a gateway's admin port: at once there, soon elsewhere."""
        await self.gateways[number].layer.remove(name)
        level = self._numbers[asyncio.current_task()]
        self._done.append((self.now, name.key, number, level))
        self._done.append((self.now + DONE_SECONDS, name.key, None, level))

    async def read_marks(self, number: int) -> None:
        """Do one round of a gateway's upkeep."""
        local, started = self.gateways[number].local, self.now
        local.marks.saw_all(await self.store.read_marks(self.cache_id), started)

    async def play(self, schedule: bytes) -> None:
        """Take the steps of a schedule, let all that it began come to an end, and look once more."""
        listening = [
            asyncio.ensure_future(self.inner.follow_keys(self.cache_id, gateway))
            for gateway in self.gateways
            if self.lose is not None
        ]
        for byte in schedule:
            if byte < ALL_GO_ON:
                await self._let_all_end()
            else:
                self._step(byte)
                await self.settle()
        await self._let_all_end()
        self.now += DONE_SECONDS
        for _ in range(2):
            for number in range(2):
                for asked in QUESTIONS:
                    self._begin(self.ask(number, asked))
            await self._let_all_end()
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)

    async def _let_all_end(self) -> None:
        await self.settle()
        while self.waiting:
            self.waiting.pop(0).set_result(None)
            await self.settle()
        await asyncio.gather(*self.tasks)

    def _step(self, byte: int) -> None:
        for bound, take in (
            (110, self._go_on),
            (170, self._begin_request),
            (190, self._let_time_pass),
            (205, self._begin_reading_marks),
            (215, self._deliver_message),
            (225, self._begin_switch),
            (235, self._begin_retraction),
            (245, self._begin_purge),
            (251, self._mount_record),
            (256, self._lose_everything),
        ):
            if byte < bound:
                take(byte)
                return

    def _go_on(self, byte: int) -> None:
        if self.waiting:
            self.waiting.pop(byte % len(self.waiting)).set_result(None)

    def _begin_request(self, byte: int) -> None:
        self._begin(self.ask(byte % 2, QUESTIONS[byte // 2 % 2]))

    def _let_time_pass(self, byte: int) -> None:
        self.now += (0.1, 0.5, 0.9, 1.0, 2.0)[byte % 5]

    def _begin_reading_marks(self, byte: int) -> None:
        self._begin(self.read_marks(byte % 2))

    def _deliver_message(self, byte: int) -> None:
        gateway = self.gateways[byte % 2]
        if gateway.messages:
            gateway.local.keys_changed(gateway.messages.pop(0))

    def _begin_switch(self, _: int) -> None:
        self._begin(self.switch())

    def _begin_retraction(self, _: int) -> None:
        self._begin(self.retract())

    def _begin_purge(self, byte: int) -> None:
        if (name := self.names.get(QUESTIONS[byte // 2 % 2])) is not None:
            self._begin(self.purge(byte % 2, name))

    def _mount_record(self, byte: int) -> None:
        self.gateways[byte % 2].known.offer(self.record)

    def _lose_everything(self, _: int) -> None:
        if self.lose is not None:
            self.lose()

    def _floors(self, number: int) -> dict[str | None, int]:
        floors: dict[str | None, int] = {}
        for at, key, where, level in self._done:
            if at <= self.now and where in (None, number):
                floors[key] = max(floors.get(key, 0), level)
        return floors
