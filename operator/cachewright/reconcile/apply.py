"""Carry out a plan: the record first, then children, removals, and the store's copy of the record.

Called by service. The first error ends the pass; everything is repeated from a fresh look by the next one.
"""

from __future__ import annotations

import asyncio

from cachewright.api.conditions import Reason
from cachewright.errors import (
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
from cachewright.reconcile.observe import KINDS_BY_NAME, OpenRecordStore
from cachewright.reconcile.settings import OperatorSettings
from cachewright.reconcile.state import Applied, Finding, Plan
from cachewright.render.record import build_record_config_map


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
    try:
        await _write_record(kube, plan)
        for child in plan.applies:
            await kube.apply(child)
        for child in plan.deletes:
            metadata = child["metadata"]
            kind = KINDS_BY_NAME[child["kind"]]
            await kube.delete(kind, metadata["namespace"], metadata["name"], metadata["uid"])
    except KubeTerminating:
        raise
    except KubeError as e:
        return Applied(error=finding_of(e))
    if plan.publish is None or url is None:
        return Applied()
    return await _publish(plan.publish, url, open_record_store, settings)


def finding_of(error: KubeError) -> Finding:
    """Turn an error of the API server into a reason and a sentence."""
    match error:
        case KubeForbidden():
            return Finding(Reason.FORBIDDEN, f"The operator lacks a right: {error}", stalled=True)
        case KubeInvalid():
            return Finding(Reason.APPLY_FAILED, f"The API server refused a child: {error}", stalled=True)
        case KubeConflict() | KubeUnavailable():
            return Finding(Reason.API_UNAVAILABLE, f"To be tried again: {error}", stalled=False)
        case _:
            return Finding(Reason.APPLY_FAILED, str(error), stalled=False)


async def _write_record(kube: KubeClient, plan: Plan) -> None:
    write = plan.record_write
    if write is None or plan.cache is None:
        return
    manifest = build_record_config_map(plan.cache, write.record, write.replaces)
    if write.replaces is None:
        await kube.create(manifest)
    else:
        await kube.replace(manifest)


async def _publish(
    record: Record, url: str, open_record_store: OpenRecordStore, settings: OperatorSettings
) -> Applied:
    store = None
    try:
        async with asyncio.timeout(settings.store_timeout_seconds):
            store = open_record_store(url)
            held = await store.publish_record(record)
            return Applied(published=held >= record.revision)
    except TimeoutError:
        return Applied(store_error=f"no answer within {settings.store_timeout_seconds:g} s")
    except StoreError as e:
        return Applied(store_error=str(e))
    finally:
        if store is not None:
            await store.aclose()
