"""Retraction: from counters to answers that nobody gets any more, and to how many they were.

Raising a counter takes the same few commands however many entries there are: they stay where they are, out of
reach, until their TTL ends. Counting them beforehand takes a walk over the store, paced and bounded in time.
Called by the gateway's admin port.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain
from typing import Final

from cachewright.errors import StoreError
from cachewright.keys.digest import EntryName
from cachewright.keys.entry_key import parse_entry_key
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.prefix import PREFIX
from cachewright.keys.record import KeyspaceState, Record
from cachewright.keys.scheme import TAGS
from cachewright.layers.entry import MOST_HEAD_BYTES, generations_in
from cachewright.layers.exact import LAYER, ExactLayer
from cachewright.layers.pace import Pace
from cachewright.layers.reclaim import PAGE_SIZE
from cachewright.layers.sweep import TICKETS
from cachewright.layers.ticket import generations_in_ticket
from cachewright.stores.protocols import CacheStore

SETTLE_SECONDS: Final = 2.0
"""Twice the second for which a replica may answer from its own memory without asking the store."""

_COUNTED: Final = frozenset({LAYER, TICKETS})
"""Layers whose entries are all here, or told of by tickets."""


@dataclass(frozen=True, slots=True)
class KeyspaceCount:
    """What would go in one keyspace."""

    layer: str
    keyspace: Keyspace
    state: KeyspaceState
    entries: int | None
    """None where not all entries lie here: vectors have a cold tier."""


@dataclass(frozen=True, slots=True)
class Count:
    """What would go."""

    keyspaces: tuple[KeyspaceCount, ...]
    """All that could be served, now or after a rollback."""
    is_complete: bool
    """False where the time was up before everything was looked at."""


async def retract(
    store: CacheStore,
    exact: ExactLayer,
    counters: Sequence[str],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Raise counters, and return once no replica serves what depended on them; raises StoreError.

    Looked at again in the end: a store that failed over meanwhile may have lost it.
    """
    cache_id = exact.cache_id
    places = [(tag, counters) for tag in TAGS]  # each by itself: a sweep may have dropped it from some
    before = await store.read_generations_at(cache_id, places)
    await exact.retract(counters)
    await sleep(SETTLE_SECONDS)
    after = await store.read_generations_at(cache_id, places)
    pairs = zip(chain(*after), chain(*before), strict=True)
    if not all(now > was for now, was in pairs):
        raise StoreError("the store lost the retraction, in a failover perhaps")


class Counting:
    """One count of entries that depend on counters."""

    def __init__(
        self,
        store: CacheStore,
        record: Record,
        counters: Sequence[str],
        pace: Pace,
        clock: Callable[[], float],
    ) -> None:
        """`clock` gives monotonic seconds."""
        self._store = store
        self._record = record
        self._counters = frozenset(counters)
        self._pace = pace
        self._clock = clock
        self._layers = _servable(record)
        self._tickets = {keyspace for keyspace, (layer, _) in self._layers.items() if layer == TICKETS}
        self._found: dict[Keyspace, set[str]] = {keyspace: set() for keyspace in self._layers}
        """Digests, as a walk may come to a key twice."""

    async def run(self, limit_seconds: float) -> Count:
        """Walk over the store, no longer than that; raises StoreError."""
        deadline, is_complete = self._clock() + limit_seconds, True
        cache_id = self._record.cache_id
        generations = await self._store.read_generations(cache_id, sorted(self._counters))
        current = dict(zip(sorted(self._counters), generations, strict=True))
        async with aclosing(self._store.walk(cache_id, None, PAGE_SIZE)) as pages:
            async for page in pages:
                await self._count(page.keys, current)
                if self._clock() >= deadline:
                    is_complete = False
                    break
                await self._pace.after(page.examined)
        return Count(
            tuple(
                KeyspaceCount(
                    layer, keyspace, state, len(self._found[keyspace]) if layer in _COUNTED else None
                )
                for keyspace, (layer, state) in self._layers.items()
            ),
            is_complete,
        )

    async def _count(self, keys: Sequence[str], current: dict[str, int]) -> None:
        names = [name for key in keys if (name := self._servable_entry(key)) is not None]
        heads = await self._store.read_heads(names, MOST_HEAD_BYTES)
        for name, head in zip(names, heads, strict=True):
            is_ticket = name.keyspace in self._tickets
            depends_on = (generations_in_ticket(head) if is_ticket else generations_in(head)) or {}
            if any(depends_on.get(counter) == current[counter] for counter in self._counters):
                self._found[name.keyspace].add(f"{name.tenant_tag}:{name.digest}")

    def _servable_entry(self, key: str) -> EntryName | None:
        name = parse_entry_key(self._record.cache_id, key)
        return name if name is not None and name.keyspace in self._layers else None


def _servable(record: Record) -> dict[Keyspace, tuple[str, KeyspaceState]]:
    in_use = {layer.keyspace: (name, layer.state) for name, layer in record.layers.items()}
    retained = record.in_state(KeyspaceState.RETAINED)
    known = in_use | {past.keyspace: (past.layer, past.state) for past in retained}
    return {keyspace: (layer, state) for keyspace, (layer, state) in known.items() if layer != PREFIX}
