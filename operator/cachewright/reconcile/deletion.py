"""The end of an object under `deletionPolicy: Delete`: its entries leave the stores that outlive it. Bounded.

`service` calls `step` in each pass over an object that is being deleted and still carries our finalizer.
Nothing is made again that goes with the object; the one Job that is made removes entries, and goes too.
Whatever happens, the finalizer is gone after `CLEAN_UP_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from cachewright.api.conditions import Reason
from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import LABEL_CACHE, LABEL_COMPONENT
from cachewright.crd.validation import load
from cachewright.errors import InvalidSpec, KubeConflict, KubeError, KubeTerminating
from cachewright.keys.record import Record
from cachewright.kube.events import EventSink
from cachewright.kube.protocol import DEPLOYMENTS, INFERENCE_CACHES, JOBS, PODS, KubeClient
from cachewright.reconcile.apply import publish
from cachewright.reconcile.finalizer import finalizer_manifest
from cachewright.reconcile.known_record import best_record, own_cache_id
from cachewright.reconcile.observe import OpenRecordStore, observe, store_url
from cachewright.reconcile.rotation import all_deleting, at_next_revision
from cachewright.reconcile.settings import OperatorSettings
from cachewright.reconcile.state import Manifest, Observed, Plan
from cachewright.reconcile.timestamps import from_timestamp
from cachewright.render.janitor import build_delete_job
from cachewright.render.metadata import gateway_name

CLEAN_UP_SECONDS: Final = 300
"""How long the end of an object may be held up."""

LOOK_AGAIN_SECONDS: Final = 2.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Deletion:
    """Everything the end of an object needs."""

    kube: KubeClient
    settings: OperatorSettings
    clock: Callable[[], datetime]
    events: EventSink
    open_record_store: OpenRecordStore

    async def step(self, document: Manifest) -> float | None:
        """Bring the end one step nearer; returns the seconds until the next step, None after the last."""
        try:
            cache = load(document)
        except InvalidSpec:
            return await self._released(document)
        if cache.spec.deletion_policy != "Delete":
            return await self._released(document)
        if self._is_late(document):
            message = (
                f"Entries could not all be removed in {CLEAN_UP_SECONDS} s; those left end with their ttl."
            )
            return await self._released(document, Reason.CLEAN_UP_FAILED, message)
        try:
            return await self._cleaned(document, cache)
        except KubeTerminating:
            # The namespace goes, and no Job can be made in it any more.
            message = "The namespace is being deleted: entries in external stores are left to their ttl."
            return await self._released(document, Reason.CLEAN_UP_FAILED, message)

    async def _cleaned(self, document: Manifest, cache: InferenceCache) -> float | None:
        observed = await observe(self.kube, document, cache.spec, self.open_record_store, self.settings)
        record, _ = best_record(observed, self.clock())
        cache_id = record.cache_id if record else own_cache_id(document)
        job = build_delete_job(cache, cache_id, self.settings.render)
        if job is None:
            return await self._released(document)
        if record is not None:
            await self._give_up(record, observed, cache)
        if await self._gateway_serves(cache):
            return LOOK_AGAIN_SECONDS
        return await self._worked(document, job)

    async def _give_up(self, record: Record, observed: Observed, cache: InferenceCache) -> None:
        """Tell the store that no keyspace is in use, so that nothing is written behind the Job's back."""
        wanted = at_next_revision(record, all_deleting(record, self.clock()))
        copy = observed.store.record
        url = store_url(observed.children, observed.secrets, cache.metadata.name)
        if url is None or (copy is not None and copy.revision >= wanted.revision):
            return
        applied = await publish(Plan(publish=wanted), url, self.open_record_store, self.settings)
        if applied.store_error is not None:
            # The Job needs the same store, and says in its turn that it cannot be reached.
            log.warning("record not published", name=cache.metadata.name, error=applied.store_error)

    async def _gateway_serves(self, cache: InferenceCache) -> bool:
        """Stop the gateways, which would bring the record back; tells whether some are left."""
        namespace, name = cache.metadata.namespace, cache.metadata.name
        live = await self.kube.get_metadata(DEPLOYMENTS, namespace, gateway_name(name))
        if live is not None and not live["metadata"].get("deletionTimestamp"):
            await self.kube.delete(DEPLOYMENTS, namespace, gateway_name(name), live["metadata"]["uid"])
        pods = await self.kube.list(PODS, namespace, f"{LABEL_CACHE}={name},{LABEL_COMPONENT}=gateway")
        return bool(pods)

    async def _worked(self, document: Manifest, job: Manifest) -> float | None:
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        live = await self.kube.get(JOBS, namespace, name)
        if live is None:
            try:
                await self.kube.create(job)
            except KubeConflict:
                log.info("job exists", name=name)
            return LOOK_AGAIN_SECONDS
        conditions = (live.get("status") or {}).get("conditions") or []
        ended = {str(each["type"]) for each in conditions if each.get("status") == "True"}
        if not ended & {"Complete", "Failed"}:
            return LOOK_AGAIN_SECONDS
        if "Complete" in ended:
            reason, message = Reason.CLEANED_UP, "The entries of this cache are gone from its stores."
        else:
            reason = Reason.CLEAN_UP_FAILED
            message = f"Job {name} failed: entries that are left end with their ttl."
        # First the object: a Job that is left behind goes by itself, one that is missing would be made again.
        await self._released(document, reason, message)
        await self.kube.delete(JOBS, namespace, name, live["metadata"]["uid"])
        return None

    async def _released(
        self, document: Manifest, reason: Reason | None = None, message: str = ""
    ) -> float | None:
        """Let the object go, and say what came of it."""
        if reason is Reason.CLEANED_UP:
            await self.events.normal(document, reason, message)
        elif reason is not None:
            await self.events.warn(document, reason, message)
        metadata = document["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        try:
            await self.kube.apply(finalizer_manifest(document, wanted=False))
        except KubeError:
            live = await self.kube.get_metadata(INFERENCE_CACHES, namespace, name)
            if live is not None and live["metadata"]["uid"] == metadata["uid"]:
                raise
        log.info("object released", namespace=namespace, name=name, reason=reason)
        return None

    def _is_late(self, document: Manifest) -> bool:
        since = from_timestamp(str(document["metadata"]["deletionTimestamp"]))
        return since is None or self.clock() >= since + timedelta(seconds=CLEAN_UP_SECONDS)
