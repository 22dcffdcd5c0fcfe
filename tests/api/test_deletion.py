"""`deletionPolicy: Delete` against a real API server: bounded, in order, and with nothing made again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cachewright.api.names import FINALIZER
from cachewright.keys.record import KeyspaceState
from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import DEPLOYMENTS, INFERENCE_CACHES, JOBS, Manifest
from cachewright.reconcile.deletion import CLEAN_UP_SECONDS, LOOK_AGAIN_SECONDS
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import Harness
from tests.support.caches import EXTERNAL_REDIS, cache_document
from tests.support.faulty_kube import ProcessKilledError

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "my-redis", "labels": {"cachewright.dev/use": "true"}},
    "stringData": {"url": "redis://one:6379/0"},
}


@pytest.fixture
async def harness(api_server: ApiServer, kube_api: KubeApi, namespace: str) -> Harness:
    """A settled cache in an external store whose entries are to go with it."""
    made = Harness(api_server, kube_api, namespace)
    made.kubectl("apply", "-f", "-", stdin=json.dumps(SECRET))
    made.apply(cache_document(spec={"stores": EXTERNAL_REDIS, "deletionPolicy": "Delete"}))
    await made.settle()
    assert (await made.cache())["metadata"]["finalizers"] == [FINALIZER]
    return made


async def cache_of(harness: Harness) -> Manifest | None:
    """Read the object; None where it is gone."""
    return await harness.api.get(INFERENCE_CACHES, harness.namespace, "demo")


async def job_of(harness: Harness) -> Manifest | None:
    """Read the Job; None where there is none."""
    return await harness.api.get(JOBS, harness.namespace, "demo-delete")


def delete(harness: Harness) -> None:
    """Delete the object, and do not wait for its end."""
    harness.kubectl("delete", "icache/demo", "--wait=false")


def end_job(harness: Harness, kind: str) -> None:
    """Do what the Job's controller would do at its end."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    before = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    conditions = [
        {"type": each, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
        for each in (before, kind)
    ]
    status: dict[str, Any] = {"conditions": conditions, "startTime": now}
    if kind == "Complete":
        status |= {"completionTime": now, "succeeded": 1}
    harness.patch("job/demo-delete", {"status": status}, "--subresource=status")


def events_of(harness: Harness) -> set[str]:
    """Return the reasons of all events."""
    found = json.loads(harness.kubectl("get", "events.events.k8s.io", "-o", "json"))
    return {each["reason"] for each in found["items"]}


async def test_entries_go_before_the_object(harness: Harness) -> None:
    """No keyspace is in use any more, then the gateways go, then a Job works, then the object is let go."""
    gateway_pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "gateway-1",
            "labels": {"cachewright.dev/cache": "demo", "app.kubernetes.io/component": "gateway"},
        },
        "spec": {"containers": [{"name": "gateway", "image": "cachewright:test"}]},
    }
    harness.kubectl("apply", "-f", "-", stdin=json.dumps(gateway_pod))
    cache_id = (await harness.cache())["status"]["cacheID"]
    delete(harness)
    assert (await harness.reconcile()).requeue_after_seconds == LOOK_AGAIN_SECONDS
    copy = await harness.store.read_record(cache_id)
    assert copy is not None
    assert copy.layers == {}
    assert {past.state for past in copy.past} == {KeyspaceState.DELETING}
    assert await harness.api.get(DEPLOYMENTS, harness.namespace, "demo-gateway") is None
    assert await job_of(harness) is None, "a gateway's pod would bring the record back"
    harness.kubectl("delete", "pod/gateway-1", "--grace-period=0", "--force")
    await harness.reconcile()
    job = await job_of(harness)
    assert job is not None
    assert cache_id in job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert (await harness.reconcile()).requeue_after_seconds == LOOK_AGAIN_SECONDS
    assert await cache_of(harness) is not None
    end_job(harness, "Complete")
    assert (await harness.reconcile()).requeue_after_seconds is None
    assert await cache_of(harness) is None
    assert "CleanedUp" in events_of(harness)


async def test_a_failed_job_holds_nothing_up(harness: Harness) -> None:
    """The object goes, and an event says that entries are left."""
    delete(harness)
    await harness.reconcile()
    await harness.reconcile()
    end_job(harness, "Failed")
    await harness.reconcile()
    assert await cache_of(harness) is None
    assert "CleanUpFailed" in events_of(harness)


async def test_the_end_is_held_up_for_five_minutes_at_most(harness: Harness) -> None:
    """Also while the Job never starts."""
    delete(harness)
    await harness.reconcile()
    late = datetime.now(UTC) + timedelta(seconds=CLEAN_UP_SECONDS)
    harness.restart(clock=lambda: late)
    assert (await harness.reconcile()).requeue_after_seconds is None
    assert await cache_of(harness) is None
    assert "CleanUpFailed" in events_of(harness)


async def test_a_change_of_mind_takes_the_finalizer_away(harness: Harness) -> None:
    """Before the end and during it."""
    harness.patch("icache/demo", {"spec": {"deletionPolicy": "Retain"}})
    await harness.settle()
    assert "finalizers" not in (await harness.cache())["metadata"]
    harness.patch("icache/demo", {"spec": {"deletionPolicy": "Delete"}})
    await harness.settle()
    delete(harness)
    harness.patch("icache/demo", {"spec": {"deletionPolicy": "Retain"}})
    await harness.reconcile()
    assert await cache_of(harness) is None
    assert await job_of(harness) is None


async def test_a_namespace_that_is_deleted_waits_for_no_job(harness: Harness) -> None:
    """No Job can be made in it, so the object is let go at once."""
    harness.server.kubectl("delete", "namespace", harness.namespace, "--wait=false")
    delete(harness)
    for _ in range(3):
        if await cache_of(harness) is None:
            break
        await harness.reconcile()
    assert await cache_of(harness) is None


async def test_an_operator_that_dies_after_any_write_of_the_end_comes_to_the_same(harness: Harness) -> None:
    """Each next one goes on where the last one died; the Job is made once and removed."""
    delete(harness)
    harness.kube.dies_after = 1
    for _ in range(12):
        try:
            await harness.reconcile()
        except ProcessKilledError:
            harness.restart()
            harness.kube.dies_after = 1
        if await cache_of(harness) is None:
            break
        job = await job_of(harness)
        if job is not None and not job.get("status", {}).get("conditions"):
            end_job(harness, "Complete")
    assert await cache_of(harness) is None
