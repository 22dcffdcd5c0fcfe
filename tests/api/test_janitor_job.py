"""A cache without gateways: a Job reclaims what it gave up, on a real API server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from cachewright.keys.record import KeyspaceState, Record
from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import CONFIG_MAPS, JOBS, Manifest
from cachewright.stores.reclaim import ReclaimReport, ReclaimState
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import Harness
from tests.support.caches import cache_document

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]


@pytest.fixture
async def stopped(api_server: ApiServer, kube_api: KubeApi, namespace: str) -> Harness:
    """A settled cache without gateways that retains nothing."""
    made = Harness(api_server, kube_api, namespace)
    spec = {"gateway": {"replicas": 0}, "rotation": {"maxRetained": 0}}
    made.apply(cache_document(spec=spec))
    await made.settle()
    assert (await made.conditions())["Ready"] == "False GatewayStopped"
    return made


async def job_of(harness: Harness) -> Manifest | None:
    """Read the Job; None where there is none."""
    return await harness.api.get(JOBS, harness.namespace, "demo-janitor")


async def record_of(harness: Harness) -> Record:
    """Read the record."""
    return Record.from_json((await harness.child(CONFIG_MAPS, "demo-record"))["data"]["record.json"])


async def bump(harness: Harness, version: str) -> None:
    """Change the version: the keyspace of the former one is to be deleted."""
    harness.patch("icache/demo", {"spec": {"model": {"version": version}}})
    await harness.settle()
    assert len((await record_of(harness)).in_state(KeyspaceState.DELETING)) == 1


async def report(harness: Harness, state: ReclaimState, problem: str = "") -> None:
    """Leave in the store what a janitor does."""
    record = await record_of(harness)
    for past in record.in_state(KeyspaceState.DELETING):
        told = ReclaimReport(state, 7, problem)
        await harness.store.write_reclaim(record.cache_id, past.keyspace, told)


def end(harness: Harness, kind: str) -> None:
    """Do what the Job's controller would do at its end."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    before = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    conditions = [{"type": each, "status": "True", "lastTransitionTime": now} for each in (before, kind)]
    status: dict[str, Any] = {"conditions": conditions, "startTime": now}
    if kind == "Complete":
        status |= {"completionTime": now, "succeeded": 1}
    harness.patch("job/demo-janitor", {"status": status}, "--subresource=status")


async def test_a_job_does_what_no_gateway_does(stopped: Harness) -> None:
    """One while something is left, none when it is done, another for the next, and a failure is told."""
    assert await job_of(stopped) is None
    await bump(stopped, "2")
    job = await job_of(stopped)
    assert job is not None
    owner = (await stopped.cache())["metadata"]["uid"]
    assert [each["uid"] for each in job["metadata"]["ownerReferences"]] == [owner]
    await stopped.reconcile()
    await report(stopped, ReclaimState.DONE)
    end(stopped, "Complete")
    await stopped.settle()
    assert (await record_of(stopped)).past == ()

    await bump(stopped, "3")  # the Job that is over makes room, then another works
    again = await job_of(stopped)
    assert again is not None
    assert again["metadata"]["uid"] != job["metadata"]["uid"]
    await report(stopped, ReclaimState.FAILED, "the store is loading")
    end(stopped, "Failed")
    await stopped.settle()
    assert (await stopped.conditions())["RotationComplete"] == "False ReclaimFailed"
    left = await job_of(stopped)
    assert left is not None, "a Job that failed stays for people to look at"
    assert left["metadata"]["uid"] == again["metadata"]["uid"]
    assert (await stopped.reconcile()).requeue_after_seconds == 30.0

    stopped.kubectl("delete", "job/demo-janitor")  # as its time to live does
    stopped.patch("icache/demo", {"spec": {"gateway": {"replicas": 1}}})
    await stopped.settle()
    assert await job_of(stopped) is None, "gateways do it themselves"
