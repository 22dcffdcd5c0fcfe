"""What reclaiming needs of a store, as a Protocol, and the reports that it leaves there.

A keyspace that the record gives up is emptied by a walk over the store's keys. Whoever does that leaves a
report in the store, where the operator reads it. Implemented beside CacheStore; one contract suite runs on
every implementation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

import orjson

from cachewright.errors import InvalidDocument
from cachewright.keys.keyspaces import Keyspace

REPORT_FORMAT: Final = 1
"""Format number in a report's JSON; readers take no other for a report."""


@dataclass(frozen=True, slots=True)
class Page:
    """One step of a walk over a store's keys."""

    keys: tuple[str, ...]
    """What was found; a key may be found twice in one walk."""
    examined: int
    """About how many keys the server looked at for it, those of others included."""


class ReclaimState(StrEnum):
    """How far the reclaiming of one keyspace is."""

    RUNNING = "running"
    DONE = "done"
    """A whole walk over the store found nothing of it."""
    FAILED = "failed"
    """To be tried again, but somebody should know."""


@dataclass(frozen=True, slots=True)
class ReclaimReport:
    """What came of reclaiming one keyspace."""

    state: ReclaimState
    removed: int = 0
    """Keys removed so far, by all who worked on it."""
    problem: str = ""
    """A sentence, where it failed; holds no key and no secret."""
    updated_at: float = 0.0
    """Seconds since the epoch, by the clock of the gateway that wrote it."""

    def to_json(self) -> str:
        """Render as JSON; the same report gives the same text."""
        document = {
            "format": REPORT_FORMAT,
            "state": self.state.value,
            "removed": self.removed,
            "problem": self.problem,
            "updatedAt": self.updated_at,
        }
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> ReclaimReport:
        """Read what `to_json` wrote; raises InvalidDocument for anything else."""
        try:
            document: Any = orjson.loads(text)
            if document["format"] != REPORT_FORMAT:
                raise InvalidDocument(f"report format {document['format']!r} is not {REPORT_FORMAT}")
            return cls(
                state=ReclaimState(document["state"]),
                removed=int(document["removed"]),
                problem=str(document["problem"]),
                updated_at=float(document["updatedAt"]),
            )
        except (ValueError, KeyError, TypeError) as e:
            raise InvalidDocument(f"not a report: {e}") from e


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What the last sweep over a cache's keys found."""

    entries: dict[Keyspace, int]
    """Entries by keyspace, as they were found."""
    removed: int = 0
    """Entries that nobody could reach any more."""
    ended_at: float = 0.0
    """Seconds since the epoch, by the clock of the gateway that swept."""
    took_seconds: float = 0.0
    changes: int = 0
    """Of the marks under the first hash tag when it began: what was retracted before is gone with it."""
    templates: str = ""
    """Names all prompt templates that were in use: what was made with others is gone with it."""

    def to_json(self) -> str:
        """Render as JSON; the same report gives the same text."""
        document = {
            "format": REPORT_FORMAT,
            "entries": {str(keyspace): count for keyspace, count in self.entries.items()},
            "removed": self.removed,
            "endedAt": self.ended_at,
            "tookSeconds": self.took_seconds,
            "changes": self.changes,
            "templates": self.templates,
        }
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> SweepReport:
        """Read what `to_json` wrote; raises InvalidDocument for anything else."""
        try:
            document: Any = orjson.loads(text)
            if document["format"] != REPORT_FORMAT:
                raise InvalidDocument(f"report format {document['format']!r} is not {REPORT_FORMAT}")
            return cls(
                entries={Keyspace.parse(name): int(count) for name, count in document["entries"].items()},
                removed=int(document["removed"]),
                ended_at=float(document["endedAt"]),
                took_seconds=float(document["tookSeconds"]),
                changes=int(document["changes"]),
                templates=str(document.get("templates", "")),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise InvalidDocument(f"not a report: {e}") from e


class ReclaimReports(Protocol):
    """Reports on keyspaces being reclaimed; all the operator needs."""

    async def read_reclaims(
        self, cache_id: str, keyspaces: Collection[Keyspace]
    ) -> dict[Keyspace, ReclaimReport]:
        """Read the reports on these keyspaces; those without one that parses are left out."""

    async def read_sweep(self, cache_id: str) -> SweepReport | None:
        """Read the report on the last sweep; None where there is none that parses."""


class ReclaimStore(ReclaimReports, Protocol):
    """A store whose keys can be walked over and removed, one cache's at a time."""

    def walk(self, cache_id: str, keyspace: Keyspace | None, page_size: int) -> AsyncGenerator[Page, None]:
        """Walk once over all keys of a keyspace, or of the whole cache.

        Every key that was there from the beginning of the walk to its end is found. Each page examines about
        `page_size` keys of the store, so most may be empty. Ends with StoreError where a server was lost on
        the way, so that a walk that ended by itself was complete. Close it, as by `contextlib.aclosing`.
        """

    async def unlink(self, cache_id: str, keyspace: Keyspace | None, keys: Sequence[str]) -> int:
        """Remove keys of a keyspace, or any keys of the cache; tells how many there were.

        Raises InvalidInput, and removes nothing, where one of them lies outside.
        """

    async def read_generations_at(
        self, cache_id: str, places: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[int, ...]]:
        """Read counters, each place's under its own hash tag, as a look-up there would, in one round trip."""

    async def hold_janitor(self, cache_id: str, token: str, ttl_seconds: float) -> bool:
        """Take the janitor's lock, or keep it, until its TTL ends; False while somebody else holds it.

        It saves work and guards nothing: what two janitors do is what one does.
        """

    async def free_janitor(self, cache_id: str, token: str) -> bool:
        """Free the janitor's lock if it is held with this token; tells whether it was."""

    async def write_reclaim(self, cache_id: str, keyspace: Keyspace, report: ReclaimReport) -> None:
        """Leave a report on a keyspace in place of the last one."""

    async def forget_reclaims(self, cache_id: str, newest: int, kept: Collection[Keyspace]) -> None:
        """Drop the reports on all keyspaces up to the incarnation `newest` but on those that are kept."""

    async def sweep_is_due(self, cache_id: str) -> bool:
        """Tell whether the time that the last sweep asked for is over, or no sweep is known."""

    async def write_sweep(self, cache_id: str, report: SweepReport, pause_seconds: float) -> None:
        """Leave a report on a sweep in place of the last one; none is due for so long."""
