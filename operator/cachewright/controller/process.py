"""The operator's life: standby, leader, shutdown. `main` calls `run` with the settings of the process.

A standby runs the election, the Lease's watch and the port, and nothing else. The leader also lists, watches
and reconciles. When the Lease is lost the process ends on the spot, without any clean-up that could wait.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from cachewright.controller.health import Vitals, health_app, serving
from cachewright.controller.metrics import OperatorMetrics
from cachewright.controller.passes import Passes
from cachewright.controller.queue import WORKERS, WorkQueue
from cachewright.controller.reference_watches import ReferenceWatches
from cachewright.controller.resync import Resync
from cachewright.controller.roster import Roster
from cachewright.controller.watches import watch
from cachewright.errors import KubeError
from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from cachewright.kube.events import KubeEvents
from cachewright.kube.lease import LeaderElection, Time
from cachewright.kube.protocol import LEASES
from cachewright.reconcile.observe import OpenRecordStore
from cachewright.reconcile.service import Reconciler
from cachewright.reconcile.settings import OperatorSettings

DRAIN_SECONDS: Final = 15.0
"""How long running passes may take to end at shutdown; a pod has 30 s in all."""
END_SECONDS: Final = 10.0
"""How long closing the watches may take after that."""
LEASE_WATCH_RETRY_SECONDS: Final = 2.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """How this process runs; what it renders is in OperatorSettings."""

    namespaces: tuple[str, ...]
    """Empty for all namespaces."""
    leader_elect: bool
    lease_namespace: str
    lease_name: str
    identity: str
    """Unique to this process."""
    resync_seconds: float
    port: int
    kubeconfig: str | None = None
    context: str | None = None


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


class Operator:
    """Everything one process holds, built once."""

    def __init__(
        self,
        settings: ProcessSettings,
        reconcile_settings: OperatorSettings,
        connection: KubeConnection,
        open_record_store: OpenRecordStore,
        leave: Callable[[BaseException], None],
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._leave = leave
        self._metrics = OperatorMetrics()
        self._roster = Roster(time.monotonic)
        self._queue = WorkQueue(asyncio.get_running_loop())
        self._kube = KubeApi(connection)
        clock = Time(utc_now, time.monotonic)
        self._election = LeaderElection(
            self._kube, settings.lease_namespace, settings.lease_name, settings.identity, clock
        )
        self._vitals = Vitals(
            self._roster, time.monotonic, settings.resync_seconds, elects=settings.leader_elect
        )
        self._resync = Resync(
            self._kube,
            self._queue,
            self._roster,
            settings.namespaces,
            settings.resync_seconds,
            reconcile_settings.engine_stacks,
        )
        events = KubeEvents(self._kube, settings.identity, utc_now)
        reconciler = Reconciler(self._kube, reconcile_settings, utc_now, events, open_record_store)
        self._references = ReferenceWatches(self._kube, self._queue.add)
        self._passes = Passes(
            reconciler.reconcile, self._roster, self._metrics, time.monotonic, self._references.follow
        )
        self._stop = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        connection.on_request = self._saw_request
        self._metrics.follow(self._queue, self._roster)

    def _saw_request(self, verb: str, kind: str, code: str) -> None:
        self._metrics.count_request(verb, kind, code)
        self._vitals.saw_request(code)

    async def run(self) -> None:
        """Serve until SIGTERM; raises what else ends it, but leaves at once when the Lease is lost."""
        self._listen_to_signals()
        app = health_app(self._vitals, self._metrics)
        async with serving(app, self._settings.port) as port:
            log.info("listening", port=port, identity=self._settings.identity)
            if not self._settings.leader_elect:
                await self._until_stopped(self._lead())
                return
            self._connection.may_write = lambda request: request.kind == LEASES.kind or self._election.leads
            lease_watch = asyncio.create_task(self._watch_lease(), name="lease watch")
            try:
                await self._until_stopped(self._election.acquire())
                if self._election.leads:
                    await self._lead_by_lease()
            finally:
                await _cancel(lease_watch)
                await self._hand_over()

    async def _lead_by_lease(self) -> None:
        self._keeping = asyncio.create_task(self._election.keep(), name="lease keeping")
        self._keeping.add_done_callback(self._leave_when_lost)
        await self._until_stopped(self._lead())

    def _leave_when_lost(self, keeping: asyncio.Task[None]) -> None:
        if not keeping.cancelled() and (error := keeping.exception()) is not None:
            self._leave(error)

    async def _until_stopped(self, activity: Coroutine[Any, Any, None]) -> None:
        """Run an activity until it ends by itself or the process is told to stop."""
        task = asyncio.create_task(activity)
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await self._drain()
                # Leading ends by itself when the queue is closed, but for closing its watches.
                if self._vitals.watches:
                    await asyncio.wait({task}, timeout=END_SECONDS)
        finally:
            await _cancel(task, stopped)
        if not task.cancelled():
            task.result()

    async def _drain(self) -> None:
        """Take no more work and let running passes end."""
        log.info("stopping")
        self._vitals.stopping = True
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._queue.close()
        except TimeoutError:
            log.warning("passes did not end in time")
        else:
            await self._hand_over()

    async def _hand_over(self) -> None:
        """Give the Lease, if we hold it, to whoever waits for it; nothing of ours writes any more."""
        if self._keeping is not None:
            await _cancel(self._keeping)
        await self._election.release()

    async def _lead(self) -> None:
        """List, watch and reconcile; ends by an exception, or when the queue is closed."""
        self._vitals.leads = True
        self._metrics.leader.set(1)
        await self._resync.first()
        workers = [self._queue.work(self._passes) for _ in range(WORKERS)]
        activities = [*workers, self._resync.forever(), self._watch()]
        tasks = [asyncio.create_task(each) for each in activities]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel(*tasks)
            await self._references.aclose()
        for task in done:
            task.result()

    async def _watch(self) -> None:
        def started() -> None:
            self._vitals.watches = True
            # kopf has just taken the signals for itself.
            self._listen_to_signals()

        await watch(
            self._queue, self._roster, self._connection.credentials, self._settings.namespaces, started
        )

    async def _watch_lease(self) -> None:
        """See the renewals, ours or the leader's, through a watch; the sign of life that probes ask for."""
        seen: str | None = None
        while True:
            try:
                watching = self._kube.watch(
                    LEASES,
                    self._settings.lease_namespace,
                    field_selector=f"metadata.name={self._settings.lease_name}",
                )
                async with aclosing(watching):
                    async for _, lease in watching:
                        self._election.observe(lease)
                        renewed = lease.get("spec", {}).get("renewTime")
                        if renewed != seen:
                            seen = renewed
                            self._vitals.saw_renewal()
            except KubeError as error:
                log.warning("lease watch failed", error=str(error))
                await asyncio.sleep(LEASE_WATCH_RETRY_SECONDS)

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended; how they end is the caller's business."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
