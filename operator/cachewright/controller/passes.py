"""`Passes`: runs one pass over one object for the queue, and accounts for how it went.

Every exception of a pass ends here, at the edge of the process: logged with the object's key, counted, and
handed on so that the queue tries again later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from cachewright.controller.metrics import OperatorMetrics
from cachewright.controller.queue import CacheKey
from cachewright.controller.roster import Roster
from cachewright.errors import CachewrightError, KubeUnavailable
from cachewright.reconcile.references import Reference
from cachewright.reconcile.service import Outcome

PASS_TIMEOUT_SECONDS: Final = 120.0
"""Ends a pass whose requests are each in time but whose sum is not, so that no worker is lost to it."""

log = structlog.get_logger(__name__)


class TryAgain(CachewrightError):
    """A pass ended in order but could not do all it wanted; status says why."""


class Passes:
    """What the queue's workers call for each key."""

    def __init__(
        self,
        reconcile: Callable[[str, str], Awaitable[Outcome]],
        roster: Roster,
        metrics: OperatorMetrics,
        monotonic: Callable[[], float],
        follow: Callable[[CacheKey, frozenset[Reference]], None],
    ) -> None:
        self._reconcile = reconcile
        self._roster = roster
        self._metrics = metrics
        self._monotonic = monotonic
        self._follow = follow

    async def __call__(self, key: CacheKey) -> float | None:
        """Run one pass and return when to look again, in seconds; None leaves it to events and resync.

        Raises whatever the pass raised, or TryAgain where it asks for another try.
        """
        started = self._monotonic()
        result, ready = "error", None
        try:
            with structlog.contextvars.bound_contextvars(cache=str(key)):
                outcome = await self._bounded(key)
            result, ready = ("retry" if outcome.retry else "ok"), outcome.ready
            self._follow(key, outcome.watched)
            self._metrics.saw_engine(key, outcome.hits)
        except KubeUnavailable:
            result = "retry"
            raise
        except TimeoutError:
            result = "timeout"
            raise
        finally:
            self._roster.visited(key, ready)
            self._metrics.reconciles.labels(result).inc()
            self._metrics.reconcile_duration.observe(self._monotonic() - started)
        if outcome.retry:
            raise TryAgain(str(key))
        return outcome.requeue_after_seconds

    async def _bounded(self, key: CacheKey) -> Outcome:
        try:
            async with asyncio.timeout(PASS_TIMEOUT_SECONDS):
                return await self._reconcile(*key)
        except KubeUnavailable as error:
            log.warning("pass to be repeated", error=str(error))
            raise
        except TimeoutError:
            log.error("pass took too long", limit_seconds=PASS_TIMEOUT_SECONDS)  # noqa: TRY400 - the place says nothing
            raise
        except Exception:
            log.exception("pass failed")
            raise
