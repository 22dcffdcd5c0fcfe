"""The keeper: takes each edition of the manifest, keeps the record, and writes what the gateway reads.

The part that the operator has in a cluster. The session calls `take` at start and runs `follow`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cachewright.errors import InvalidInput
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, Record
from cachewright.local.declared import Declared, SecretValues, Source
from cachewright.local.edition import Edition, UpstreamChoice, make_edition
from cachewright.local.news import ends, expiries, news_of
from cachewright.local.secret_options import SecretOption, gather
from cachewright.local.state_folder import StateFolder, write_private
from cachewright.local.telling import Tell
from cachewright.reconcile.explanation import with_template_text
from cachewright.reconcile.rotation import without_reclaimed
from cachewright.reconcile.timestamps import from_timestamp
from cachewright.stores.reclaim import ReclaimReport, ReclaimState

POLL_SECONDS: Final = 0.5
"""How often the manifest's files are looked at."""

Enacted = Callable[[Edition], Awaitable[None]]
"""Returns once the gateway enacts an edition whose files are written."""

Reclaims = Mapping[Keyspace, ReclaimReport]
"""What is known of keyspaces that are being deleted."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Keeper:
    """Keeps one cache as its manifest says."""

    def __init__(
        self,
        source: Source,
        options: tuple[SecretOption, ...],
        state: StateFolder,
        upstream: UpstreamChoice,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._source = source
        self._options = options
        self._state = state
        self._upstream = upstream
        self._now = now
        self._record = state.record()
        self._digest_key = state.digest_key()
        self._written: dict[str, str] = {}
        self._declared: Declared | None = None
        self._edition: Edition | None = None

    @property
    def cache_id(self) -> str:
        """Name of the cache in keys."""
        return self._record.cache_id

    @property
    def edition(self) -> Edition:
        """The edition in use."""
        if self._edition is None:
            raise RuntimeError("no edition was taken yet")
        return self._edition

    @property
    def document(self) -> object:
        """The object in use, as it was written, with its prompt template filled in."""
        declared = self._declared
        return with_template_text(declared.document, declared.template) if declared else None

    @property
    def upstream_url(self) -> str | None:
        """Where misses go in place of the manifest's upstream; None: there."""
        return self.edition.cache.spec.upstream.url if self._upstream.url is not None else None

    def secrets(self, declared: Declared) -> SecretValues:
        """Return all values that are known now; raises InvalidInput."""
        return gather(self._options, declared.secrets)

    def take(self, declared: Declared, store_url: str) -> Edition:
        """Enact an edition; raises InvalidInput and changes nothing."""
        edition = make_edition(
            declared.cache,
            self.secrets(declared),
            self._record,
            self._digest_key,
            store_url,
            self._upstream,
            self._now(),
            declared.template,
        )
        if edition.record != self._record:
            self._state.keep(edition.record)
        self._record, self._declared, self._edition = edition.record, declared, edition
        for name, text in edition.files.items():
            if self._written.get(name) != text:
                write_private(self._state.run / name, text)
                self._written[name] = text
        return edition

    async def follow(
        self, store_url: str, tell: Tell, enacted: Enacted, reclaims: Callable[[], Reclaims] = dict
    ) -> None:
        """Take each further edition as it comes; what is wrong is told, and the last good one stays.

        News of an edition is told when it holds, so that from then on no older answer is served. `reclaims`
        gives what the gateway's janitor reports of the keyspaces that were given up.
        """
        seen = self._signature()
        while True:
            await asyncio.sleep(POLL_SECONDS)
            before = self.edition
            if (now := self._signature()) != seen:
                seen = now
                try:
                    after = self.take(self._source.read(self._declared), store_url)
                except InvalidInput as e:
                    tell(f"{self._source.shown}: not taken, the last good one stays in use:\n{e}")
                    continue
                news = news_of(before, after)
            else:
                after, news = self._moved_on(store_url, reclaims())
            if after is before:
                continue
            await enacted(after)
            if after.files != before.files:
                for each in news:
                    tell(each)

    def _moved_on(self, store_url: str, reports: Reclaims) -> tuple[Edition, list[str]]:
        """Give up what was retained long enough, and forget what is gone."""
        before = self.edition
        gone = {
            past.keyspace: reports[past.keyspace]
            for past in before.record.in_state(KeyspaceState.DELETING)
            if past.keyspace in reports and reports[past.keyspace].state is ReclaimState.DONE
        }
        if self._declared is None or not (gone or is_due(before.record, self._now())):
            return before, []
        self._record = without_reclaimed(self._record, gone)
        self._state.keep(self._record)
        after = self.take(self._declared, store_url)
        return after, [*expiries(before.record, after.record), *ends(gone)]

    def _signature(self) -> tuple[object, ...]:
        files = (option.file for option in self._options)
        return (*self._source.signature(), *(modified(file) for file in files if file is not None))


def is_due(record: Record, now: datetime) -> bool:
    """Tell whether the time of a retained keyspace is over."""
    ends = (from_timestamp(past.until) for past in record.in_state(KeyspaceState.RETAINED))
    return any(end is not None and end <= now for end in ends)


def modified(file: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file does; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
