"""One pass over one object: `observe → plan → apply → one status write`. Called by the work queue.

Level-triggered: a pass looks at no event and remembers nothing, so once and twice give the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from cachewright.api.conditions import ConditionType, Reason
from cachewright.crd.validation import load
from cachewright.errors import InvalidSpec, KubeTerminating
from cachewright.kube.events import EventSink
from cachewright.kube.protocol import INFERENCE_CACHES, KubeClient
from cachewright.reconcile.apply import apply
from cachewright.reconcile.observe import OpenRecordStore, observe, store_url
from cachewright.reconcile.plan import plan
from cachewright.reconcile.settings import OperatorSettings
from cachewright.reconcile.state import Applied, Manifest, Observed, Plan
from cachewright.reconcile.status import build_status, is_same_status, status_manifest

log = structlog.get_logger(__name__)


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


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Everything a pass needs, built once per process."""

    kube: KubeClient
    settings: OperatorSettings
    clock: Callable[[], datetime]
    events: EventSink
    open_record_store: OpenRecordStore

    async def reconcile(self, namespace: str, name: str) -> Outcome:
        """Bring one object one step nearer to its spec."""
        document = await self.kube.get(INFERENCE_CACHES, namespace, name)
        if document is None or document["metadata"].get("deletionTimestamp"):
            # Children go with the object by garbage collection; writing any now would bring them back.
            return Outcome()
        try:
            spec = load(document).spec
        except InvalidSpec:
            spec = None
        observed = await observe(self.kube, document, spec, self.open_record_store, self.settings)
        planned = plan(observed, self.settings.render, self.clock())
        url = store_url(observed.children, observed.secrets, name)
        try:
            applied = await apply(self.kube, planned, url, self.open_record_store, self.settings)
        except KubeTerminating:
            # The namespace is going, and the object with it: there is nothing to bring back, nobody to tell.
            return Outcome()
        if applied.published and observed.store.record is not None:
            await asyncio.sleep(self.settings.switch_seconds)
        status = await self._tell(observed, planned, applied)
        ready = _condition(status, ConditionType.READY).get("status") == "True"
        return self._outcome(planned, applied, observed, ready)

    async def _tell(self, observed: Observed, planned: Plan, applied: Applied) -> Manifest:
        """Write status once, and an event and a log line where something changed; returns the status."""
        status = build_status(observed, planned, applied, self.clock())
        before = observed.document.get("status")
        if not is_same_status(before, status):
            await self.kube.apply_status(status_manifest(observed, status))
            await self._announce(observed.document, before or {}, status)
        problem = planned.blocked or applied.error
        if problem is not None and problem.reason is not Reason.SUSPENDED:
            await self.events.warn(observed.document, str(problem.reason), problem.message)
        return status

    async def _announce(self, document: Manifest, before: Manifest, status: Manifest) -> None:
        ready = _condition(status, ConditionType.READY)
        former = _condition(before, ConditionType.READY)
        if ready.get("status") == former.get("status") and ready.get("reason") == former.get("reason"):
            return
        metadata = document["metadata"]
        log.info(
            "ready_changed",
            namespace=metadata["namespace"],
            name=metadata["name"],
            ready=ready["status"],
            reason=ready["reason"],
        )
        if ready["status"] == "True" and former.get("status") != "True":
            await self.events.normal(document, ready["reason"], ready["message"])

    def _outcome(self, planned: Plan, applied: Applied, observed: Observed, ready: bool) -> Outcome:
        if applied.error is not None:
            return Outcome(retry=True, ready=ready)
        store_trouble = observed.store.error or applied.store_error
        written = planned.writes and planned.publish is None
        if store_trouble or written:
            # Our own writes come back as events; the timer is for what sends none, such as a store.
            return Outcome(requeue_after_seconds=self.settings.retry_store_seconds, ready=ready)
        if planned.due is None:
            return Outcome(ready=ready)
        wait = max((planned.due - self.clock()).total_seconds(), 0.0) + DUE_MARGIN_SECONDS
        return Outcome(requeue_after_seconds=wait, ready=ready)


def _condition(status: Manifest, kind: ConditionType) -> Manifest:
    found: Manifest = next((c for c in status.get("conditions") or [] if c.get("type") == kind), {})
    return found
