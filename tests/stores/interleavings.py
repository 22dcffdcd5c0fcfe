"""Gateways, a store and an operator whose every step is taken when a schedule says so.

Each call to the store is held up twice: before the store does it, and before its answer is heard. A schedule
is a string of bytes, each of which begins something or lets one of the waiting steps go on. The layers, L0
and the scripts are the real ones; only the clock, the upstream and the order of things are the schedule's.

What must hold, whatever the order:

- what was retracted or removed is never served once that is done;
- a keyspace that went out of use is never served once the switch is done, unless it is in use again;
- a keyspace never holds the answer of another version of the model than its own;
- a keyspace that was given up is never served again;
- a sweep, which drops counters that it takes for needless, brings nothing of this back.

Two things are taken for granted about time: gateways look at the store each second, so within the two that a
change takes to be done, and before the operator comes back from a failover; and no store fails over in the
very moment of a single removal.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from cachewright.errors import StoreError
from cachewright.keys.context import Context
from cachewright.keys.digest import EntryName, ExactQuestion, exact_digest
from cachewright.keys.generations import Dependence, tenant_counter
from cachewright.layers.breaker import Breaker
from cachewright.layers.exact import ExactLayer, ExactSettings, Hit, Miss
from cachewright.layers.known_marks import KnownMarks
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.local import LocalCache, LocalSettings
from cachewright.layers.pace import Pace
from cachewright.layers.retraction import retract
from cachewright.layers.sweep import Sweep
from cachewright.stores.protocols import CacheStore
from cachewright.stores.reclaim import Page
from tests.stores.backdoors import Backdoor
from tests.stores.model_operator import DONE_SECONDS, Done, ModelOperator

ALL_GO_ON = 8
"""Steps below let everything that waits come to its end."""

OTHERS_GO_ON = 32
"""Steps below let everything come to its end but what waits for an upstream: a lot happens meanwhile."""

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
                self._world.note(name)
            finally:
                self._world.working -= 1
            await self._world.turn()
            return result

        return held_up

    async def walk(self, *arguments: Any) -> AsyncGenerator[Page, None]:
        """Walk, held up before each step."""
        async with aclosing(self._inner.walk(*arguments)) as pages:
            while True:
                await self._world.turn()
                self._world.working += 1
                try:
                    page = await anext(pages, None)
                finally:
                    self._world.working -= 1
                if page is None:
                    return
                yield page


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
    """Two gateways, one store, an operator, and what must not be served any more."""

    inner: CacheStore
    cache_id: str
    backdoor: Backdoor
    is_followed: bool = True
    """True where the gateways hear of changed keys."""
    now: float = 1000.0
    working: int = 0
    changes: int = 0
    """Retractions and removals that the store has carried out."""
    answers: int = 0
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    upstream: set[asyncio.Future[None]] = field(default_factory=set)
    """Those that wait for an answer of the model."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    names: dict[Asked, EntryName] = field(default_factory=dict)
    """Where an answer to a question was found last."""
    removing: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    """What came about, and how often."""
    violations: list[str] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    _numbers: dict[object, int] = field(default_factory=dict)
    """The number of the change that a task made."""

    def __post_init__(self) -> None:
        """Make both gateways, with the first record mounted."""
        self.store = cast("CacheStore", GatedStore(self.inner, self))
        self.operator = ModelOperator(self)
        self.gateways = [self._gateway(), self._gateway()]

    def _gateway(self) -> Gateway:
        known = KnownRecord(self.cache_id)
        known.offer(self.operator.record)
        local = LocalCache(LocalSettings(100, 30), KnownMarks(self.clock), self.clock)
        settings = ExactSettings(self.cache_id, "binding", 3600, 3600)
        breaker = Breaker(self.inner.ping, 3600, lambda _: None)
        layer = ExactLayer(self.store, known, breaker, settings, KEY, lambda: 0.0, local, self.clock)
        return Gateway(known, local, layer)

    def clock(self) -> float:
        """Return monotonic seconds, which pass when the schedule says so."""
        return self.now

    async def turn(self, *, upstream: bool = False) -> None:
        """Wait until the schedule lets this step go on; `upstream` says that it waits for the model."""
        step: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(step)
        if upstream:
            self.upstream.add(step)
        await step
        self.upstream.discard(step)

    def note(self, call: str) -> None:
        """Number what the store has just carried out."""
        self.count(call)
        if call in {"raise_generations", "remove"}:
            self.changes += 1
            self._numbers[asyncio.current_task()] = self.changes

    def count(self, what: str) -> None:
        """Count that something came about."""
        self.seen[what] = self.seen.get(what, 0) + 1

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def settle(self) -> None:
        """Let everything run that waits for nobody but the loop and the real store."""
        quiet = 0
        while quiet < 8:
            await asyncio.sleep(0)
            quiet = 0 if self.working else quiet + 1

    async def look_around(self) -> None:
        """Let each gateway look at the store, as it does each second."""
        await asyncio.gather(*(gateway.layer.catch_up() for gateway in self.gateways))

    async def _two_seconds(self, seconds: float) -> None:
        await self.look_around()
        self.now += seconds
        await self.turn()

    async def ask(self, number: int, asked: Asked) -> None:
        """Serve one request; an answer tells its version and how many changes there were before."""
        gateway, done = self.gateways[number], [each for each in self.done if each.at <= self.now]
        found = await gateway.layer.look_up(TAG, asked.digest, asked.dependence)
        if isinstance(found, Hit):
            self.names[asked] = found.place.name
            self.count("local hits" if found.is_local else "hits")
            self._judge(found, done)
        elif isinstance(found, Miss):
            changes = self.changes
            await self.turn(upstream=True)
            self.answers += 1
            version = self.operator.engine[self.answers % len(self.operator.engine)]
            await self.turn(upstream=True)
            refusal = await gateway.layer.write(
                found, "application/json", json.dumps([changes, version]).encode()
            )
            self.count(f"write {refusal}")

    def _judge(self, hit: Hit, done: Sequence[Done]) -> None:
        changes, version = json.loads(hit.entry.body)
        name, operator = hit.place.name, self.operator
        floor = max((each.changes for each in done if each.key in (None, name.key)), default=0)
        revision = max((each.revision for each in done), default=0)
        if changes < floor:
            self.violations.append(f"an answer from {changes} when {floor} was done: {hit}")
        if operator.last_in_use(name.keyspace) < revision:
            self.violations.append(f"{name.keyspace} at {revision}: {hit}")
        if version != operator.versions[name.keyspace]:
            self.violations.append(
                f"version {version} in {name.keyspace} of {operator.versions[name.keyspace]}"
            )

    async def retract(self, number: int) -> None:
        """Raise the tenant's generation, as the admin port does."""
        try:
            await retract(self.store, self.gateways[number].layer, [tenant_counter(TAG)], self._two_seconds)
        except StoreError:
            self.count("retractions lost")
            return
        self.count("retractions")
        self.done.append(Done(self.now, self._numbers[asyncio.current_task()]))

    async def purge(self, number: int, name: EntryName) -> None:
        """Remove one entry through a gateway's admin port."""
        self.removing += 1
        try:
            await self.gateways[number].layer.remove(name)
        finally:
            self.removing -= 1
        level = self._numbers[asyncio.current_task()]
        await self._two_seconds(DONE_SECONDS)
        self.done.append(Done(self.now, level, name.key))

    async def sweep(self) -> None:
        """Do the janitor's work twice: what the first walk removes, the second finds gone."""
        for _ in range(2):
            pace = Pace(1e9, self.clock, _at_once)
            sweep = Sweep(self.store, self.operator.record, pace, looks_inside=True)
            await sweep.run(self._progress)
            self.count("sweeps")

    async def _progress(self, removed: int) -> None:
        if removed:
            self.count("sweeps that removed")

    async def read_marks(self, number: int) -> None:
        """Do one round of a gateway's upkeep."""
        local, started = self.gateways[number].local, self.now
        local.marks.saw_all(await self.store.read_marks(self.cache_id), started)

    async def play(self, schedule: bytes) -> None:
        """Take the steps of a schedule, let all that it began come to an end, and look once more."""
        listening = [
            asyncio.ensure_future(self.inner.follow_keys(self.cache_id, gateway))
            for gateway in self.gateways
            if self.is_followed
        ]
        for byte in schedule:
            if byte < ALL_GO_ON:
                await self._let_all_end()
            elif byte < OTHERS_GO_ON:
                await self._let_others_end()
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
        # Also where nothing waits: a step may be longer on its way through locks than `settle` looks.
        while self.waiting or not all(task.done() for task in self.tasks):
            if self.waiting:
                self.waiting.pop(0).set_result(None)
            await self.settle()
        await asyncio.gather(*self.tasks)

    async def _let_others_end(self) -> None:
        await self.settle()
        while others := [step for step in self.waiting if step not in self.upstream]:
            self.waiting.remove(others[0])
            others[0].set_result(None)
            await self.settle()

    def _step(self, byte: int) -> None:
        for bound, take in (
            (107, self._go_on),
            (115, lambda _: self._begin(self.sweep())),
            (164, lambda byte: self._begin(self.ask(byte % 2, QUESTIONS[byte // 2 % 2]))),
            (176, self._let_time_pass),
            (188, lambda byte: self._begin(self.read_marks(byte % 2))),
            (196, self._deliver_message),
            (204, lambda byte: self._begin(self.retract(byte % 2))),
            (212, self._begin_purge),
            (218, lambda byte: self.gateways[byte % 2].known.offer(self.operator.record)),
            (246, lambda byte: self._begin(self.operator.act(byte))),
            (250, lambda _: self.backdoor.lose()),
            (253, lambda _: self.backdoor.remember()),
            (256, lambda _: self._begin(self._fail_over())),
        ):
            if byte < bound:
                take(byte)
                return

    def _go_on(self, byte: int) -> None:
        if self.waiting:
            self.waiting.pop(byte % len(self.waiting)).set_result(None)

    def _let_time_pass(self, byte: int) -> None:
        self.now += (0.1, 0.5, 0.9, 1.0, 2.0)[byte % 5]

    def _deliver_message(self, byte: int) -> None:
        gateway = self.gateways[byte % 2]
        if gateway.messages:
            gateway.local.keys_changed(gateway.messages.pop(0))

    def _begin_purge(self, byte: int) -> None:
        if (name := self.names.get(QUESTIONS[byte // 2 % 2])) is not None:
            self._begin(self.purge(byte % 2, name))

    async def _fail_over(self) -> None:
        async with self.operator.at_work:
            if not self.removing:
                self.backdoor.go_back()
                self.count("failovers")
            await self.look_around()


async def _at_once(_seconds: float) -> None:
    """Stand in for a pause."""
