"""The janitor's Job, for a cache without gateways to tidy up: from a plan to a Job that works once.

Called by plan and apply. A Job is made while something is to be reclaimed. One that worked, and left or got
more to do, is followed by another; one that failed stays until its time to live is over, so that a store
which is away is not asked again and again, and people can look at it.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.keys.record import KeyspaceState, Record
from cachewright.kube.protocol import JOBS, KubeClient
from cachewright.reconcile.state import Manifest, Observed
from cachewright.render.janitor import build_janitor_job
from cachewright.render.settings import RenderSettings
from cachewright.stores.reclaim import ReclaimState

_COMPLETE: Final = "Complete"


def wanted_job(
    cache: InferenceCache, record: Record, observed: Observed, settings: RenderSettings
) -> Manifest | None:
    """Return the Job where nobody else would reclaim what the record gave up; None where none is needed."""
    if cache.spec.gateway.replicas != 0:
        return None
    reports = observed.store.reclaims
    done = {keyspace for keyspace, report in reports.items() if report.state is ReclaimState.DONE}
    left = [past for past in record.in_state(KeyspaceState.DELETING) if past.keyspace not in done]
    return build_janitor_job(cache, settings) if left else None


async def see_to(kube: KubeClient, job: Manifest) -> None:
    """Make the Job, unless there is one that works or has failed. Raises KubeError."""
    metadata = job["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    live = await kube.get(JOBS, namespace, name)
    if live is None:
        await kube.create(job)
        return
    ours = live["metadata"].get("ownerReferences") == metadata["ownerReferences"]
    conditions = (live.get("status") or {}).get("conditions") or []
    if ours and any(each.get("type") == _COMPLETE and each.get("status") == "True" for each in conditions):
        await kube.delete(JOBS, namespace, name, live["metadata"]["uid"])
