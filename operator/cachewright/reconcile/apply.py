"""Carry out a plan: the record first, then its copy in the store, children, and removals.

The copy comes before the children, so that no refused child leaves gateways with a permission they lost.
Called by service. The first error ends the pass; everything is repeated from a fresh look by the next one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cachewright.api.conditions import Reason
from cachewright.errors import (
    InvalidInput,
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeInvalid,
    KubeTerminating,
    KubeUnavailable,
    StoreError,
)
from cachewright.keys.record import Record
from cachewright.kube.protocol import KubeClient
from cachewright.reconcile.janitor_job import see_to
from cachewright.reconcile.observe import KINDS_BY_NAME, OpenRecordStore
from cachewright.reconcile.settings import OperatorSettings
from cachewright.reconcile.state import Applied, Finding, Manifest, Plan, RecordWrite
from cachewright.reconcile.store_checks import reason_of
from cachewright.stores.protocols import RecordStore


async def apply(
    kube: KubeClient,
    plan: Plan,
    url: str | None,
    open_record_store: OpenRecordStore,
    settings: OperatorSettings,
) -> Applied:
    """Write what the plan says and tell how it went; `url` is the store's, None while there is none.

    Raises KubeTerminating where the namespace is being deleted: nobody is left to tell.
    """
    published = Applied()
    writing: Manifest | None = None
    try:
        if plan.finalizer is not None:
            await kube.apply(plan.finalizer)
        if plan.keys is not None:
            await kube.apply(plan.keys)
        await _write_record(kube, plan.record_write)
        told = (plan.publish, plan.beat, plan.probe_request)
        if url is not None and any(each is not None for each in told):
            published = await publish(plan, url, open_record_store, settings)
        rest = (child for child in plan.applies if child is not plan.keys)
        for child in (*rest, *([plan.stamp] if plan.stamp is not None else [])):
            writing = child
            await kube.apply(child)
        writing = None
        if plan.release is not None:
            await kube.replace(plan.release)
        for child in plan.deletes:
            metadata = child["metadata"]
            kind = KINDS_BY_NAME[child["kind"]]
            await kube.delete(kind, metadata["namespace"], metadata["name"], metadata["uid"])
        if plan.janitor is not None:
            await see_to(kube, plan.janitor)
    except KubeTerminating:
        raise
    except KubeError as e:
        return replace(published, error=finding_of(e, writing))
    return published


def finding_of(error: KubeError, writing: Manifest | None = None) -> Finding:
    """Turn an error of the API server into a reason and a sentence; `writing` is the child it refused."""
    claims_volume = writing is not None and writing["kind"] == "PersistentVolumeClaim"
    match error:
        case KubeForbidden() if claims_volume and "must support resize" in str(error):
            # The verdict of an admission plugin, not of a role.
            return Finding(Reason.VOLUME_NOT_EXPANDABLE, f"A volume cannot grow: {error}", stalled=True)
        case KubeForbidden():
            return Finding(Reason.FORBIDDEN, f"The operator lacks a right: {error}", stalled=True)
        case KubeInvalid():
            return Finding(Reason.APPLY_FAILED, f"The API server refused a child: {error}", stalled=True)
        case KubeConflict() | KubeUnavailable():
            return Finding(Reason.API_UNAVAILABLE, f"To be tried again: {error}", stalled=False)
        case _:
            return Finding(Reason.APPLY_FAILED, str(error), stalled=False)


async def _write_record(kube: KubeClient, write: RecordWrite | None) -> None:
    if write is None:
        return
    if write.is_new:
        await kube.create(write.manifest)
    else:
        await kube.replace(write.manifest)


async def publish(
    plan: Plan, url: str, open_record_store: OpenRecordStore, settings: OperatorSettings
) -> Applied:
    """Bring the store's copy up to the plan's record, and beat; trouble is told, not raised."""
    store = None
    published = False
    try:
        async with asyncio.timeout(settings.store_timeout_seconds):
            store = open_record_store(url)
            if plan.publish is not None:
                published = await store.publish_record(plan.publish) >= plan.publish.revision
            beats = plan.beat is not None and await _beat(store, plan.beat)
            if plan.probe_request is not None and plan.record is not None:
                await store.request_probes(plan.record.cache_id, plan.probe_request)
            return Applied(published=published, beats=beats)
    except TimeoutError:
        error = f"no answer within {settings.store_timeout_seconds:g} s"
        return Applied(published=published, store_error=error)
    except (StoreError, InvalidInput) as e:
        return Applied(published=published, store_error=str(e), store_reason=reason_of(e))
    finally:
        if store is not None:
            await store.aclose()


async def _beat(store: RecordStore, record: Record) -> bool:
    """Let gateways go on writing, by what was seen of the pods in this very pass."""
    beat = (record.cache_id, record.revision, float(record.heartbeat_seconds))
    if await store.beat(*beat):
        return True
    # Some of the copies were lost since they were read.
    await store.publish_record(record)
    return await store.beat(*beat)
