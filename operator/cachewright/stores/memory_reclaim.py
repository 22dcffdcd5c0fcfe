"""Walking over a cache's keys in process memory, removing them, and the reports on it.

A part of MemoryCacheStore; local mode without a server reclaims like everybody else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence

from cachewright.errors import InvalidInput
from cachewright.keys.entry_key import janitor_key, janitor_lock_key, lies_within
from cachewright.keys.generations import is_droppable
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.protocols import Marks, Raise
from cachewright.stores.reclaim import Page, ReclaimReport, SweepReport


class MemoryReclaimStore:
    """ReclaimStore in process memory, over the dictionaries of MemoryCacheStore."""

    __slots__ = ()

    clock: Callable[[], float]
    _entries: dict[str, tuple[bytes, float]]
    _locks: dict[str, tuple[str, float]]
    _generations: dict[str, dict[str, int]]
    _floors: dict[str, int]
    _reclaims: dict[str, dict[Keyspace, ReclaimReport]]
    """By the key of the cache's janitor."""
    _sweeps: dict[str, tuple[SweepReport, float]]
    """The last report, and when the next sweep is due, by cache."""

    async def walk(
        self, cache_id: str, keyspace: Keyspace | None, page_size: int
    ) -> AsyncGenerator[Page, None]:
        """Walk once over what was there at the beginning."""
        names = list(self._entries)
        for start in range(0, max(1, len(names)), page_size):
            page = names[start : start + page_size]
            found = tuple(
                key for key in page if key in self._entries and lies_within(cache_id, keyspace, key)
            )
            yield Page(found, len(page))

    async def unlink(self, cache_id: str, keyspace: Keyspace | None, keys: Sequence[str]) -> int:
        """Remove keys of a keyspace, or of the whole cache."""
        if not all(lies_within(cache_id, keyspace, key) for key in keys):
            raise InvalidInput(f"not all of these keys lie in {keyspace or 'the cache'}")
        there = [key for key in dict.fromkeys(keys) if key in self._entries]
        for key in there:
            self._forget(key)
        return len(there)

    async def read_generations_at(
        self, cache_id: str, places: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[int, ...]]:
        """Read counters, which are the same under all hash tags."""
        raised = self._generations.get(cache_id, {})
        return [tuple(raised.get(counter, 0) for counter in counters) for _, counters in places]

    async def list_generations(self, cache_id: str) -> dict[str, int]:
        """Read the counters that could be dropped."""
        raised = self._generations.get(cache_id, {})
        return {counter: value for counter, value in raised.items() if is_droppable(counter)}

    async def drop_generations(
        self, cache_id: str, counters: Mapping[str, int], seen: Mapping[str, Marks]
    ) -> int:
        """Drop counters that have these values, unless something changed since."""
        marks = self._marks(cache_id)
        if marks is None or not seen or any(marks.changes != each.changes for each in seen.values()):
            return 0
        raised = self._generations.get(cache_id, {})
        gone = {counter: value for counter, value in counters.items() if raised.get(counter) == value}
        for counter in gone:
            del raised[counter]
        if gone:
            self._floors[cache_id] = max(self._floors.get(cache_id, 0), *gone.values())
            self._count_change(cache_id)
        return len(gone)

    async def hold_janitor(self, cache_id: str, token: str, ttl_seconds: float) -> bool:
        """Take the janitor's lock, or keep it, unless somebody else holds it."""
        key = janitor_lock_key(cache_id)
        holder, expires_at = self._locks.get(key, (token, 0.0))
        if holder != token and self.clock() < expires_at:
            return False
        self._locks[key] = (token, self.clock() + ttl_seconds)
        return True

    async def free_janitor(self, cache_id: str, token: str) -> bool:
        """Free the janitor's lock if it is held with this token."""
        key = janitor_lock_key(cache_id)
        holder, expires_at = self._locks.get(key, ("", 0.0))
        if holder != token or self.clock() >= expires_at:
            return False
        del self._locks[key]
        return True

    async def write_reclaim(self, cache_id: str, keyspace: Keyspace, report: ReclaimReport) -> None:
        """Leave a report on a keyspace."""
        self._reclaims.setdefault(janitor_key(cache_id), {})[keyspace] = report

    async def read_reclaims(
        self, cache_id: str, keyspaces: Collection[Keyspace]
    ) -> dict[Keyspace, ReclaimReport]:
        """Read the reports on these keyspaces."""
        reports = self._reclaims.get(janitor_key(cache_id), {})
        return {keyspace: reports[keyspace] for keyspace in keyspaces if keyspace in reports}

    async def forget_reclaims(self, cache_id: str, newest: int, kept: Collection[Keyspace]) -> None:
        """Drop the reports on all keyspaces up to an incarnation but on those that are kept."""
        reports = self._reclaims.get(janitor_key(cache_id), {})
        for keyspace in [one for one in reports if one.incarnation <= newest and one not in kept]:
            del reports[keyspace]

    async def read_sweep(self, cache_id: str) -> SweepReport | None:
        """Read the report on the last sweep."""
        return self._sweeps.get(cache_id, (None, 0.0))[0]

    async def sweep_is_due(self, cache_id: str) -> bool:
        """Tell whether the pause that the last sweep asked for is over."""
        return self.clock() >= self._sweeps.get(cache_id, (None, 0.0))[1]

    async def write_sweep(self, cache_id: str, report: SweepReport, pause_seconds: float) -> None:
        """Leave a report on a sweep; none is due for so long."""
        self._sweeps[cache_id] = (report, self.clock() + pause_seconds)

    def _forget(self, key: str) -> float:
        raise NotImplementedError

    def _marks(self, cache_id: str) -> Marks | None:
        raise NotImplementedError

    def _count_change(self, cache_id: str) -> Raise:
        raise NotImplementedError
