"""The janitor's duty in one gateway: the janitor works now and then, and its work is counted and logged.

A task of the process. Trouble of any kind ends a turn and nothing else; the next turn comes soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from cachewright.errors import StoreError
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.gateway.throttle import Throttle
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import PastKeyspace, Record
from cachewright.layers.janitor import Janitor, Removal
from cachewright.stores.reclaim import ReclaimReport, ReclaimState, SweepReport

TURN_SECONDS: Final = 5.0
"""From the end of one turn to the next: a keyspace that is given up is found about as soon."""

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class JanitorNews:
    """What is known of the janitor's work, whichever gateway did it; shown by the admin port."""

    sweep: SweepReport | None = None
    """On the last sweep."""
    reclaims: dict[Keyspace, ReclaimReport] = field(default_factory=dict)
    """On the keyspaces that the record lists as being deleted."""


class JanitorLog:
    """Listener of a janitor: metrics and log events."""

    def __init__(self, metrics: GatewayMetrics) -> None:
        self._metrics = metrics

    def removed(self, keys: int, why: Removal) -> None:
        """Count removed keys."""
        self._metrics.removed.labels(why.value).inc(keys)

    def reclaimed(self, past: PastKeyspace, report: ReclaimReport) -> None:
        """Count and log the end of a keyspace, or why it has none yet."""
        is_done = report.state is ReclaimState.DONE
        self._metrics.reclaimed.labels("done" if is_done else "failed").inc()
        fields = {"layer": past.layer, "keyspace": str(past.keyspace), "removed": report.removed}
        if is_done:
            _log.info("keyspace_reclaimed", **fields)
        else:
            _log.warning("keyspace_not_reclaimed", error=report.problem, **fields)

    def swept(self, report: SweepReport) -> None:
        """Log a sweep."""
        _log.info("swept", removed=report.removed, took_seconds=round(report.took_seconds, 3))


class JanitorDuty:
    """Lets the janitor of the configuration in use work under the best record known."""

    def __init__(
        self,
        current: Callable[[], tuple[Janitor, Record] | None],
        metrics: GatewayMetrics,
        throttle: Throttle,
    ) -> None:
        """`current` gives whose turn it is and under which record; None while there is nothing to work on."""
        self._current = current
        self._metrics = metrics
        self._throttle = throttle
        self.news = JanitorNews()

    async def run(self, turn_seconds: float = TURN_SECONDS) -> None:
        """Work until cancelled."""
        while True:
            await asyncio.sleep(turn_seconds)
            try:
                await self.take_turn()
            except StoreError as e:
                if (skipped := self._throttle.skipped("janitor_failed")) is not None:
                    _log.warning("janitor_failed", error=str(e), skipped=skipped)
            except Exception:  # noqa: BLE001 - the edge of a task that must live as long as the process
                _log.exception("janitor_failed")

    async def take_turn(self) -> None:
        """Do what is due, unless another gateway does it, and learn what was done; raises StoreError."""
        current = self._current()
        if current is None:
            return
        janitor, record = current
        try:
            await janitor.work(record)
        finally:
            self.news = JanitorNews(*await janitor.read_reports(record))
            self._show_entries(record)

    def _show_entries(self, record: Record) -> None:
        entries = self.news.sweep.entries if self.news.sweep else {}
        self._metrics.entries.clear()
        for layer, active in record.layers.items():
            self._metrics.entries.labels(layer, active.state.value).set(entries.get(active.keyspace, 0))
        for past in record.past:
            gauge = self._metrics.entries.labels(past.layer, past.state.value)
            gauge.inc(entries.get(past.keyspace, 0))
