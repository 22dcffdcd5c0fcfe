"""One pass over one object: `observe → plan → apply → one status write`. Called by the work queue.

Level-triggered: a pass looks at no event and remembers nothing, so once and twice give the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from cachewright.api.conditions import ConditionType, Reason
from cachewright.crd.validation import load
from cachewright.errors import InvalidSpec, KubeConflict, KubeForbidden, KubeTerminating
from cachewright.keys.record import KeyspaceState
from cachewright.kube.events import EventSink
from cachewright.kube.protocol import INFERENCE_CACHES, KubeClient
from cachewright.reconcile.announcements import Announcement, announcements
from cachewright.reconcile.apply import apply
from cachewright.reconcile.deletion import Deletion
from cachewright.reconcile.finalizer import has_finalizer
from cachewright.reconcile.observe import OpenRecordStore, observe, store_url
from cachewright.reconcile.plan import plan
from cachewright.reconcile.planned import planned_sentence, planned_status
from cachewright.reconcile.prefix.engine_calls import EngineCalls
from cachewright.reconcile.prefix.hits import EngineHits
from cachewright.reconcile.prefix.left_behind import give_back
from cachewright.reconcile.probes_told import fresh_probes, untried_layers
from cachewright.reconcile.references import Reference
from cachewright.reconcile.rotation import has_spare
from cachewright.reconcile.settings import OperatorSettings
from cachewright.reconcile.settling import Settling
from cachewright.reconcile.state import Applied, Manifest, Observed, Plan
from cachewright.reconcile.status import build_status, is_same_status, status_manifest
from cachewright.reconcile.store_checks import StoreChecks, StoreQuestions
from cachewright.stores.probes import ProbeState

log = structlog.get_logger(__name__)


BEATS_PER_TIMEOUT: Final = 5.0
"""So that a few lost beats, or a restart of the operator, leave gateways their permission."""

DUE_MARGIN_SECONDS: Final = 1.0
"""Timestamps have whole seconds; a little later is surely over."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a pass ended."""

    requeue_after_seconds: float | None = None
    """When to look again without an event; None leaves it to watches and resync."""
    retry: bool = False
    """True where something failed that may work later: the queue backs off and tries again."""
    ready: bool | None = None
    """Whether the object was ready; None where it is gone."""
    hits: EngineHits | None = None
    """What the engine's pods told of their prefix caches; None where they were not asked."""
    watched: frozenset[Reference] = frozenset()
    """What of other people's concerns the object, and is to be watched."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Everything a pass needs, built once per process."""

    kube: KubeClient
    settings: OperatorSettings
    clock: Callable[[], datetime]
    events: EventSink
    open_record_store: OpenRecordStore
    monotonic: Callable[[], float] = time.monotonic
    questions: StoreQuestions = field(default_factory=StoreQuestions)
    _settling: Settling = field(init=False)
    _store_checks: StoreChecks = field(init=False)
    _engines: EngineCalls = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no switch known."""
        settling = Settling(self.monotonic, self.settings.switch_seconds)
        object.__setattr__(self, "_settling", settling)
        object.__setattr__(self, "_store_checks", StoreChecks(self.monotonic, self.questions))
        interval_seconds, timeout_seconds = (
            self.settings.scrape_engines_seconds,
            self.settings.engine_timeout_seconds,
        )
        engines = EngineCalls(self.monotonic, interval_seconds, timeout_seconds)
        object.__setattr__(self, "_engines", engines)

    async def reconcile(self, namespace: str, name: str) -> Outcome:
        """Bring one object one step nearer to its spec."""
        document = await self.kube.get(INFERENCE_CACHES, namespace, name)
        if document is None:
            self._engines.forget(namespace, name)
            return await self._left_behind(namespace, name)
        if document["metadata"].get("deletionTimestamp"):
            # Children go with the object by garbage collection; writing any now would bring them back.
            self._store_checks.forget(str(document["metadata"]["uid"]))
            self._engines.forget(namespace, name)
            return await self._ended(document) if has_finalizer(document) else Outcome()
        try:
            spec = load(document).spec
        except InvalidSpec:
            spec = None
        try:
            # Looking writes too: a pod that is never stored, to see what becomes of it.
            observed = await observe(
                self.kube, document, spec, self.open_record_store, self.settings, self._store_checks
            )
            planned = plan(observed, self.settings.render, self.clock())
            url = store_url(observed.children, observed.secrets, name)
            before = await self._foretell(observed, planned)
            applied = await apply(self.kube, planned, url, self.open_record_store, self.settings)
        except KubeTerminating:
            # The namespace is going, and the object with it: there is nothing to bring back, nobody to tell.
            return Outcome()
        observed = await self._engines.hear(observed, planned)
        uid = str(document["metadata"]["uid"])
        left = self._settling.seconds_left(
            uid, document.get("status") or {}, planned.record, _held(observed, planned, applied)
        )
        if left:
            # Told before, a switch would be taken for done while a gateway may still serve from its memory.
            ready = _is_ready(document.get("status") or {})
            return self._outcome(planned, applied, observed, ready, left)
        observed = await self._engines.flush(observed, planned)
        status = await self._tell(observed, planned, applied, before, settled=left is not None)
        return self._outcome(planned, applied, observed, _is_ready(status))

    async def _left_behind(self, namespace: str, name: str) -> Outcome:
        """Give back what a deleted object changed of other people's."""
        try:
            await give_back(self.kube, namespace, name, engine_stacks=self.settings.engine_stacks)
        except KubeConflict:
            return Outcome(retry=True)
        except KubeTerminating:
            return Outcome()
        except KubeForbidden as e:
            log.warning("workload not given back", namespace=namespace, name=name, error=str(e))
        return Outcome()

    async def _ended(self, document: Manifest) -> Outcome:
        """Clean up behind an object that is being deleted."""
        deletion = Deletion(self.kube, self.settings, self.clock, self.events, self.open_record_store)
        return Outcome(requeue_after_seconds=await deletion.step(document))

    async def _foretell(self, observed: Observed, planned: Plan) -> Manifest | None:
        """Write into status what this pass is about to change of what runs; returns the status as it is then.

        Only such a pass writes status twice.
        """
        before: Manifest | None = observed.document.get("status")
        told = planned_status(planned.changes)
        # What is only missing is made at once, as it always was.
        changes_something = any(change.effect != "Create" for change in planned.changes)
        if not changes_something or planned.blocked is not None or (before or {}).get("planned") == told:
            return before
        status = {**(before or {}), "planned": told}
        await self.kube.apply_status(status_manifest(observed, status))
        message = planned_sentence(planned.changes)
        fields = {"changes": [f"{change.effect} {change.kind}/{change.name}" for change in planned.changes]}
        said = Announcement("change_planned", fields, "Normal", Reason.PLANNED, message)
        await self._say(observed.document, said)
        return status

    async def _tell(
        self, observed: Observed, planned: Plan, applied: Applied, before: Manifest | None, *, settled: bool
    ) -> Manifest:
        """Write status, and an event and a log line where something changed; returns the status.

        `before` is the status as it stands.
        """
        status = build_status(observed, planned, applied, self.clock(), settled)
        if not is_same_status(before, status):
            await self.kube.apply_status(status_manifest(observed, status))
            for said in announcements(before or {}, status):
                await self._say(observed.document, said)
        problem = planned.blocked or applied.error
        if problem is not None and problem.reason is not Reason.SUSPENDED:
            await self.events.warn(observed.document, str(problem.reason), problem.message)
        return status

    async def _say(self, document: Manifest, said: Announcement) -> None:
        metadata = document["metadata"]
        log.info(said.log_event, namespace=metadata["namespace"], name=metadata["name"], **said.log_fields)
        if said.event == "Normal":
            await self.events.normal(document, said.reason, said.message)
        elif said.event == "Warning":
            await self.events.warn(document, said.reason, said.message)

    def _outcome(
        self,
        planned: Plan,
        applied: Applied,
        observed: Observed,
        ready: bool,
        left: float | None = None,
    ) -> Outcome:
        waits = [left] if left else []
        if planned.beat is not None:
            waits.append(planned.beat.heartbeat_seconds / BEATS_PER_TIMEOUT)
        if planned.due is not None:
            waits.append(max((planned.due - self.clock()).total_seconds(), 0.0) + DUE_MARGIN_SECONDS)
        if planned.record is not None and planned.record.in_state(KeyspaceState.DELETING):
            waits.append(self.settings.reclaim_seconds)
        if observed.store.filled is not None and planned.record is not None and has_spare(planned.record):
            waits.append(self.settings.memory_seconds)
        prefix = observed.prefix
        if (observed.workload is not None and observed.workload.problem) or (
            prefix is not None
            and (prefix.problem or prefix.is_proven is False or (prefix.flush and prefix.flush.left))
        ):
            waits.append(self.settings.retry_workload_seconds)
        if prefix is not None and prefix.hits is not None and prefix.pods:
            waits.append(self.settings.scrape_engines_seconds)
        if observed.must_ask:
            waits.append(self.settings.check_stores_seconds)
        if untried_layers(observed, planned, self.clock()):
            waits.append(self.settings.await_probes_seconds)
        probes = fresh_probes(observed, self.clock())
        failing = any(report.state is not ProbeState.WELL for report in probes.values())
        if (
            observed.store.error
            or observed.checks
            or failing
            or applied.store_error
            or (planned.writes and planned.publish is None)
        ):
            # Our own writes come back as events; the timer is for what sends none, such as a store.
            waits.append(self.settings.retry_store_seconds)
        return Outcome(
            requeue_after_seconds=min(waits, default=None),
            retry=applied.error is not None,
            ready=ready,
            hits=prefix.hits if prefix is not None else None,
            watched=observed.watched,
        )


def _held(observed: Observed, planned: Plan, applied: Applied) -> bool:
    """Tell whether the store holds the record that this pass wants."""
    copy = observed.store.record
    wanted = planned.record.revision if planned.record is not None else 0
    return applied.published or (copy is not None and copy.revision >= wanted)


def _is_ready(status: Manifest) -> bool:
    conditions = status.get("conditions") or []
    return any(c.get("type") == ConditionType.READY and c.get("status") == "True" for c in conditions)
