"""The janitor: empties keyspaces that the record gave up, and sweeps. One gateway of many at a time.

Driven by the record alone. What it does is never wrong to do twice, so its lock saves work and guards
nothing: a keyspace that is being deleted never comes back, and an entry out of reach stays so.
Called by the gateway's janitor task, and by `cachewright janitor` where there is no gateway.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Protocol

from cachewright.errors import StoreError, StoreRefused, StoreUnavailable
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.prefix import PREFIX
from cachewright.keys.record import KeyspaceState, PastKeyspace, Record
from cachewright.keys.scheme import TAGS
from cachewright.layers.pace import Pace
from cachewright.layers.reclaim import empty_keyspace
from cachewright.layers.sweep import Sweep, Templates
from cachewright.stores.protocols import CacheStore
from cachewright.stores.reclaim import ReclaimReport, ReclaimState, SweepReport

LOCK_SECONDS: Final = 30.0
"""After a janitor died, the next one begins no later."""

REPORTS_PER_LOCK: Final = 6
"""A keyspace in work is reported on, and the lock prolonged, so often while the lock counts."""

RETRY_SECONDS: Final = 60.0
"""Before a keyspace that could not be emptied is tried again."""

Drop = Callable[[Keyspace], Awaitable[object]]
"""Removes what a layer keeps of a keyspace outside Redis, if there is any. Raises StoreError."""


SweepElsewhere = Callable[[Record, Pace], Awaitable[int]]
"""Sweeps a store beside Redis, and returns how many entries went. Raises StoreError."""

LAYERS_ELSEWHERE: Final = frozenset({"Semantic"})
"""Layers that always keep something outside Redis: without a drop, their keyspaces cannot be reclaimed."""


class Removal(StrEnum):
    """Why keys were removed."""

    KEYSPACE = "keyspace"
    """Their keyspace was given up."""
    SWEEP = "sweep"
    """A sweep found them out of reach."""


class Listener(Protocol):
    """Who counts and logs what the janitor does."""

    def removed(self, keys: int, why: Removal) -> None:
        """Hear of a step, and how many keys were removed by it."""

    def reclaimed(self, past: PastKeyspace, report: ReclaimReport) -> None:
        """Hear what came of a keyspace."""

    def swept(self, report: SweepReport) -> None:
        """Hear what a sweep found."""


@dataclass(frozen=True, slots=True)
class JanitorSettings:
    """How one janitor works."""

    cache_id: str
    keys_per_second: float
    sweep_interval_seconds: float
    drops: Mapping[str, Drop] = field(default_factory=dict)
    """By layer that keeps something outside Redis."""
    sweeps: Sequence[SweepElsewhere] = ()
    """Of stores beside Redis."""
    templates: frozenset[str] | None = None
    """Marks of the prompt templates that routes have; None: nothing is known of them."""
    lock_seconds: float = LOCK_SECONDS

    def in_use(self, now: float) -> Templates | None:
        """Return the templates in use at `now`, in seconds since the epoch.

        Entries of less than an interval's age may be those of a gateway that has newer routes already.
        """
        if self.templates is None:
            return None
        return Templates(self.templates, now - self.sweep_interval_seconds)


class LostLock(StoreUnavailable):
    """Somebody else became the janitor meanwhile."""


class Janitor:
    """The janitor of one cache in one process."""

    def __init__(
        self,
        store: CacheStore,
        settings: JanitorSettings,
        listener: Listener,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`clock` gives monotonic seconds, `wall_clock` seconds since the epoch."""
        self._store = store
        self._settings = settings
        self._listener = listener
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._token = secrets.token_hex(8)
        self._failed: dict[Keyspace, float] = {}
        """When a keyspace failed last."""

    async def work(self, record: Record) -> None:
        """Do what is due under a record; at most one process at a time gets to. Raises StoreError."""
        cache_id = self._settings.cache_id
        if not await self._pending(record) and not await self._store.sweep_is_due(cache_id):
            return
        if not await self._store.hold_janitor(cache_id, self._token, self._settings.lock_seconds):
            return
        with suppress(LostLock):
            try:
                await self._work(record)
            finally:
                with suppress(StoreError):
                    await self._store.free_janitor(cache_id, self._token)

    async def read_reports(self, record: Record) -> tuple[SweepReport | None, dict[Keyspace, ReclaimReport]]:
        """Read what was reported last, by any janitor: on a sweep, and on what is being deleted."""
        deleting = [past.keyspace for past in record.in_state(KeyspaceState.DELETING)]
        cache_id = self._settings.cache_id
        return await self._store.read_sweep(cache_id), await self._store.read_reclaims(cache_id, deleting)

    async def _work(self, record: Record) -> None:
        cache_id = self._settings.cache_id
        await self._agree_on(record)
        for past, before in await self._pending(record):  # somebody may have finished it meanwhile
            await self._reclaim(past, before)
        await self._store.forget_reclaims(cache_id, record.incarnation, record.keyspaces())
        if await self._store.sweep_is_due(cache_id):
            await self._sweep(record)

    async def _pending(self, record: Record) -> list[tuple[PastKeyspace, ReclaimReport]]:
        """Return the keyspaces that are not reclaimed yet, the longest out of use first."""
        deleting = record.in_state(KeyspaceState.DELETING)
        keyspaces = [past.keyspace for past in deleting]
        reports = await self._store.read_reclaims(self._settings.cache_id, keyspaces)
        none = ReclaimReport(ReclaimState.RUNNING)
        return [
            (past, report)
            for past in deleting
            if (report := reports.get(past.keyspace, none)).state is not ReclaimState.DONE
            and self._clock() - self._failed.get(past.keyspace, -RETRY_SECONDS) >= RETRY_SECONDS
        ]

    async def _agree_on(self, record: Record) -> None:
        """Return once the store holds this record, or a newer one, under every hash tag.

        So nobody's write into a keyspace that it gave up is let in any more.
        """
        if not await self._is_known(record):
            await self._store.publish_record(record)
            if not await self._is_known(record):
                raise StoreRefused("the store does not keep the record")

    async def _is_known(self, record: Record) -> bool:
        marks = await self._store.read_marks(self._settings.cache_id)
        return all(tag in marks and marks[tag].revision >= record.revision for tag in TAGS)

    async def _reclaim(self, past: PastKeyspace, before: ReclaimReport) -> None:
        progress = _Progress(removed=before.removed, told_at=self._clock())

        async def made(removed: int) -> None:
            progress.removed += removed
            self._listener.removed(removed, Removal.KEYSPACE)
            if await self._is_time_to_tell(progress):  # a problem stands until it is solved
                await self._report(past.keyspace, replace(before, removed=progress.removed))

        try:
            await self._report(past.keyspace, before)
            if past.layer != PREFIX:  # whose entries lie in the engines, and are found by nobody any more
                await empty_keyspace(self._store, self._settings.cache_id, past.keyspace, self._pace(), made)
            await self._drop(past)
            done = ReclaimReport(ReclaimState.DONE, progress.removed)
            report = await self._report(past.keyspace, done)
        except LostLock:
            raise
        except StoreError as e:
            self._failed[past.keyspace] = self._clock()
            report = ReclaimReport(ReclaimState.FAILED, progress.removed, str(e))
            with suppress(StoreError):  # a store that is gone is told of by others too
                report = await self._report(past.keyspace, report)
        self._listener.reclaimed(past, report)

    async def _report(self, keyspace: Keyspace, report: ReclaimReport) -> ReclaimReport:
        stamped = replace(report, updated_at=self._wall_clock())
        await self._store.write_reclaim(self._settings.cache_id, keyspace, stamped)
        return stamped

    async def _drop(self, past: PastKeyspace) -> None:
        drop = self._settings.drops.get(past.layer)
        if drop is not None:
            await drop(past.keyspace)
        elif past.layer in LAYERS_ELSEWHERE:
            raise StoreRefused(f"the store that holds the rest of keyspace {past.keyspace} is not configured")

    async def _sweep(self, record: Record) -> None:
        cache_id, started = self._settings.cache_id, self._clock()
        progress = _Progress(removed=0, told_at=started)

        async def made(removed: int) -> None:
            self._listener.removed(removed, Removal.SWEEP)
            await self._is_time_to_tell(progress)

        last, changes = await self._store.read_sweep(cache_id), await self._changes()
        templates = self._templates(last)
        looks_inside = last is None or (last.changes, last.templates) != (changes, templates)
        sweep = Sweep(
            self._store,
            record,
            self._pace(),
            looks_inside=looks_inside,
            templates=self._settings.in_use(self._wall_clock()),
        )
        await sweep.run(made)
        took_seconds = self._clock() - started
        told = "left" if sweep.left_old_templates else templates
        report = SweepReport(sweep.entries, sweep.removed, self._wall_clock(), took_seconds, changes, told)
        pause_seconds = self._settings.sweep_interval_seconds
        await self._store.write_sweep(cache_id, report, pause_seconds)
        self._listener.swept(report)
        for sweep_elsewhere in self._settings.sweeps:
            self._listener.removed(await sweep_elsewhere(record, self._pace()), Removal.SWEEP)

    def _templates(self, last: SweepReport | None) -> str:
        """Name the prompt templates in use, all together."""
        marks = self._settings.templates
        if marks is None:
            return last.templates if last is not None else ""
        return hashlib.sha256("\n".join(sorted(marks)).encode()).hexdigest()[:16] if marks else ""

    async def _changes(self) -> int:
        marks = (await self._store.read_marks(self._settings.cache_id)).get(TAGS[0])
        return marks.changes if marks else 0

    async def _is_time_to_tell(self, progress: _Progress) -> bool:
        """Keep the lock, now and then; raises LostLock where somebody else has it."""
        settings = self._settings
        if self._clock() - progress.told_at < settings.lock_seconds / REPORTS_PER_LOCK:
            return False
        progress.told_at = self._clock()
        if not await self._store.hold_janitor(settings.cache_id, self._token, settings.lock_seconds):
            raise LostLock("another janitor took over")
        return True

    def _pace(self) -> Pace:
        return Pace(self._settings.keys_per_second, self._clock, self._sleep)


@dataclass(slots=True)
class _Progress:
    """Of one piece of work."""

    removed: int
    told_at: float
