"""The sweep: one walk over all keys of a cache, which counts what is there and removes what nobody can reach.

Out of reach are, first, the entries of keyspaces that the record no longer names: its counter of incarnations
only rises, so one that was given and is gone is gone for ever. A younger one than the record knows is left
alone. Second, the entries that were retracted: a counter that they depend on was raised since. Third, those
that were made with a prompt template that no route has any more. The last two take a look into each entry.

Counters that no entry depends on any more are dropped, once a whole walk found none left from before they
were raised. Called by the janitor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from cachewright.keys.digest import EntryName
from cachewright.keys.entry_key import parse_entry_key
from cachewright.keys.generations import Subject
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.layers.entry import generations_in, head_bytes_of, stored_at_of
from cachewright.layers.pace import Pace
from cachewright.layers.reclaim import PAGE_SIZE
from cachewright.layers.ticket import generations_in_ticket, ticket_head_bytes
from cachewright.stores.protocols import CacheStore, Marks
from cachewright.stores.reclaim import Page

HEAD_BYTES: Final = 512
"""Read of each entry at first; enough for what depends on a tenant, a layer and a few documents."""

TICKETS: Final = "Semantic"
"""The layer that keeps tickets in place of entries."""

_TEMPLATE: Final = f"{Subject.TEMPLATE}:"

_MARKS: Final = frozenset({b"", b"1"})
"""What lies there and is no entry: something that has ended meanwhile, and the mark of a partition."""


@dataclass(frozen=True, slots=True)
class Templates:
    """Which prompt templates are in use."""

    marks: frozenset[str]
    """As `keys.generations` gives them."""
    stored_before: float
    """Younger entries are left alone, whatever they say: other gateways may have newer routes than we.
    Seconds since the epoch."""


class Sweep:
    """One sweep."""

    def __init__(
        self,
        store: CacheStore,
        record: Record,
        pace: Pace,
        *,
        looks_inside: bool,
        templates: Templates | None = None,
    ) -> None:
        """`looks_inside`: for what was retracted, and for old templates; it costs a read of each entry."""
        self._store = store
        self._cache_id = record.cache_id
        self._newest = record.incarnation
        self._kept = frozenset(record.keyspaces())
        self._tickets = frozenset(_keyspaces_of(record, TICKETS))
        # Tickets do not tell their age; what is retained may come back together with its templates.
        self._active = frozenset(layer.keyspace for name, layer in record.layers.items() if name != TICKETS)
        self._pace = pace
        self._looks_inside = looks_inside
        self._templates = templates
        self._seen: dict[str, Marks] = {}
        self._idle: dict[str, int] = {}
        """Counters that nothing seen so far depends on, with their values when the walk began."""
        self._is_settled = True
        """False where something was found that counters stand against, or that we know nothing of."""
        self.entries: dict[Keyspace, int] = dict.fromkeys(self._kept, 0)
        """Left there so far, of the keyspaces that the record names."""
        self.left_old_templates = False
        """True where entries with an old template were too young to go."""
        self.removed = 0

    async def run(self, progress: Callable[[int], Awaitable[None]]) -> None:
        """Walk once over everything; `progress` is told after each step how much was removed by it.

        Raises StoreError, and then has done a part of it.
        """
        if self._looks_inside:
            # The marks first: what changes after they were read keeps every counter where it is.
            self._seen = await self._store.read_marks(self._cache_id)
            self._idle = await self._store.list_generations(self._cache_id)
        async with aclosing(self._store.walk(self._cache_id, None, PAGE_SIZE)) as pages:
            async for page in pages:
                removed = await self._tidy(page)
                self.removed += removed
                await progress(removed)
                await self._pace.after(page.examined)
        await self._drop_idle()

    async def _drop_idle(self) -> None:
        """Drop the counters that nothing depends on, where the walk found nothing that they stand against.

        What it found and removed, a store that fails over may bring back, and nobody would notice. So then
        the changes are raised, which no such store has, and the next walk, under the raised marks, drops.
        """
        if not self._is_settled:
            await self._store.raise_generations(self._cache_id, ())
        elif self._idle and self._seen:
            await self._store.drop_generations(self._cache_id, self._idle, self._seen)

    async def _tidy(self, page: Page) -> int:
        names = [name for key in page.keys if (name := parse_entry_key(self._cache_id, key)) is not None]
        kept = [name for name in names if name.keyspace in self._kept]
        others = [name for name in names if name.keyspace not in self._kept]
        gone = [name for name in others if name.keyspace.incarnation <= self._newest]
        if len(gone) < len(others):
            self._idle.clear()  # whatever these depend on, we do not know
        unreachable = await self._unreachable(kept) if self._looks_inside and kept else []
        for name in kept:
            self.entries[name.keyspace] += 1
        for name in unreachable:
            self.entries[name.keyspace] -= 1
        return await self._unlink([*gone, *unreachable])

    async def _unreachable(self, names: Sequence[EntryName]) -> list[EntryName]:
        """Return those that no look-up comes to any more."""
        heads = await self._heads(names)
        dependent = []
        for name, head in zip(names, heads, strict=True):
            depends_on = self._generations_in(name, head)
            if depends_on:
                dependent.append((name, head, depends_on))
            elif depends_on is None and head not in _MARKS:
                self._idle.clear()  # whatever it depends on, we cannot read it
        # Read after the entries: none is stored under a value that its counter does not have yet, so one that
        # differs is older.
        places = [(name.tag, list(depends_on)) for name, _, depends_on in dependent]
        current = await self._store.read_generations_at(self._cache_id, places)
        found = []
        for (name, head, depends_on), held in zip(dependent, current, strict=True):
            if tuple(depends_on.values()) != held:
                self._is_settled = False
                found.append(name)
            elif name.keyspace in self._active and self._has_old_template(depends_on, head):
                found.append(name)
            else:
                for counter in depends_on:
                    self._idle.pop(counter, None)
        return found

    def _generations_in(self, name: EntryName, head: bytes) -> dict[str, int] | None:
        return generations_in_ticket(head) if name.keyspace in self._tickets else generations_in(head)

    def _head_bytes_of(self, name: EntryName, head: bytes) -> int:
        return ticket_head_bytes(head) if name.keyspace in self._tickets else head_bytes_of(head)

    def _has_old_template(self, depends_on: dict[str, int], head: bytes) -> bool:
        marks = {mark for mark in depends_on if mark.startswith(_TEMPLATE)}
        if self._templates is None or marks <= self._templates.marks:
            return False
        is_young = stored_at_of(head) >= self._templates.stored_before
        self.left_old_templates |= is_young
        return not is_young

    async def _heads(self, names: Sequence[EntryName]) -> list[bytes]:
        """Read what entries begin with, of those that depend on much a second time."""
        heads = await self._store.read_heads(names, HEAD_BYTES)
        sizes = [self._head_bytes_of(name, head) for name, head in zip(names, heads, strict=True)]
        longer = [at for at, size in enumerate(sizes) if size > HEAD_BYTES]
        if longer:
            most = max(sizes[at] for at in longer)
            whole = await self._store.read_heads([names[at] for at in longer], most)
            for at, head in zip(longer, whole, strict=True):
                heads[at] = head
        return heads

    async def _unlink(self, names: Sequence[EntryName]) -> int:
        keys: dict[Keyspace, list[str]] = {}
        for name in names:
            keys.setdefault(name.keyspace, []).append(name.key)
        return sum(
            [await self._store.unlink(self._cache_id, keyspace, some) for keyspace, some in keys.items()]
        )


def _keyspaces_of(record: Record, layer: str) -> list[Keyspace]:
    active = record.layers.get(layer)
    past = [past.keyspace for past in record.past if past.layer == layer]
    return [*past, active.keyspace] if active is not None else past
