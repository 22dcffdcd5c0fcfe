"""One exact layer on a store that does as it is told, with a clock of the test's.

Used by the tests of what the layer serves and stores, and of keyspaces and generations.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace

from cachewright.keys.context import Context, Document
from cachewright.keys.digest import EntryName, ExactQuestion
from cachewright.keys.generations import Dependence
from cachewright.keys.record import KeyspaceState, Record
from cachewright.layers.breaker import Breaker
from cachewright.layers.exact import ExactLayer, ExactSettings, Hit, Miss
from cachewright.layers.known_record import KnownRecord
from cachewright.policy.reasons import BypassReason
from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.protocols import Found, Marks, WriteOutcome

CACHE = "c" * 16
DIGEST = "ab" * 32
FIRST = Record(CACHE, 0, 0).with_layer("Exact", "1" * 16, "binding", "t")
SECOND = FIRST.with_layer("Exact", "2" * 16, "binding", "t")
READONLY = replace(
    FIRST, revision=2, layers={"Exact": replace(FIRST.layers["Exact"], state=KeyspaceState.READONLY)}
)
REBOUND = FIRST.with_layer("Exact", "3" * 16, "another binding", "t")
CONTEXT = Context(documents=(Document("manual"),))
DEPENDENCE = Dependence.of(bytes(32), "tag", ExactQuestion("/", "", (), {}, CONTEXT))
DOCUMENT = DEPENDENCE.counters[1]


def copy_of(store: MemoryCacheStore) -> MemoryCacheStore:
    """Copy all that a store holds, as a replica does."""
    copy = MemoryCacheStore(store.clock)
    restore(copy, store)
    return copy


def restore(store: MemoryCacheStore, older: MemoryCacheStore) -> None:
    """Put a store back to what a copy of it holds."""
    for name in ("_entries", "_size_bytes", "_copies", "_generations"):
        setattr(store, name, deepcopy(getattr(older, name)))


class UnreliableStore(MemoryCacheStore):
    """A store that can be told to fail, to hang, or to do something just before it looks."""

    before_find: Callable[[], Awaitable[None]] | None = None
    error: Exception | None = None
    frozen = False
    calls = 0

    async def find(self, name: EntryName, counters: Sequence[str] = ()) -> Found:
        """Do as told, then look."""
        await self._obey()
        return await MemoryCacheStore.find(self, name, counters)

    async def write(self, name: EntryName, value: bytes, ttl_seconds: float, seen: Marks) -> WriteOutcome:
        """Do as told, then write."""
        await self._obey()
        return await MemoryCacheStore.write(self, name, value, ttl_seconds, seen)

    async def ping(self) -> None:
        """Do as told."""
        await self._obey()

    async def _obey(self) -> None:
        self.calls += 1
        if self.before_find is not None:
            step, self.before_find = self.before_find, None
            await step()
        if self.frozen:
            await asyncio.sleep(3600)
        if self.error is not None:
            raise self.error


@dataclass
class World:
    """A layer on a store, with a clock of its own."""

    now: float = 1_790_000_000.0
    ttl_seconds: float = 60.0
    budget_seconds: float = 5.0
    breaker_states: list[bool] = field(default_factory=list)
    known: KnownRecord = field(default_factory=lambda: KnownRecord(CACHE))

    def __post_init__(self) -> None:
        """Build the layer."""
        self.store = UnreliableStore(lambda: self.now)
        self.breaker = Breaker(self.store.ping, self.budget_seconds, self.breaker_states.append)
        self.layer = self.with_settings()

    def with_settings(self, **changes: object) -> ExactLayer:
        """Return a layer on the same store with some settings changed."""
        settings = ExactSettings(CACHE, "binding", self.ttl_seconds, self.budget_seconds)
        changed = replace(settings, **changes)  # type: ignore[arg-type]
        return ExactLayer(self.store, self.known, self.breaker, changed, bytes(32), lambda: self.now)

    async def ask(self) -> Hit | Miss | BypassReason:
        """Look up the one question."""
        return await self.layer.look_up("tag", DIGEST)

    async def miss(self) -> Miss:
        """Look up the one question, which must miss."""
        found = await self.ask()
        assert isinstance(found, Miss)
        return found

    async def hit(self) -> Hit:
        """Look up the one question, which must hit."""
        found = await self.ask()
        assert isinstance(found, Hit)
        return found


async def ask_with_counters(layer: ExactLayer) -> Hit | Miss | BypassReason:
    """Look up the one question that depends on a document."""
    return await layer.look_up("tag", DEPENDENCE.digest_at((0, 0)), DEPENDENCE)


@asynccontextmanager
async def running_world() -> AsyncIterator[World]:
    """Give a layer whose store holds the first record, which is also the mounted one."""
    made = World()
    made.known.offer(FIRST)
    await made.store.publish_record(FIRST)
    yield made
    await made.breaker.aclose()
