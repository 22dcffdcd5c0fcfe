"""The janitor's Job of a cache without gateways: when there is one, and what becomes of one that is over."""

from __future__ import annotations

import pytest

from cachewright.crd.validation import load
from cachewright.keys.record import KeyspaceState
from cachewright.kube.memory import MemoryKube
from cachewright.kube.protocol import JOBS, Manifest
from cachewright.reconcile.janitor_job import see_to
from cachewright.render.janitor import build_janitor_job
from cachewright.stores.reclaim import ReclaimReport, ReclaimState
from tests.support.caches import cache_document
from tests.support.passes import SETTINGS, World


def rotated(replicas: int) -> World:
    """Return a cache that just gave a keyspace up."""
    spec = {"gateway": {"replicas": replicas}, "rotation": {"maxRetained": 0}}
    world = World(cache_document(spec=spec))
    world.settle()
    world.change(model={"name": "demo-model", "version": "2"})
    return world


def test_there_is_one_where_no_gateway_works_and_something_is_left() -> None:
    """Not before, not once it is reported done, and not beside gateways."""
    assert rotated(replicas=2).step().janitor is None
    world = rotated(replicas=0)
    job = world.step().janitor
    assert job is not None
    assert job["metadata"]["name"] == "demo-janitor"
    (past,) = world.record().in_state(KeyspaceState.DELETING)
    for state, is_wanted in (
        (ReclaimState.RUNNING, True),
        (ReclaimState.FAILED, True),
        (ReclaimState.DONE, False),
    ):
        world.reclaims = {past.keyspace: ReclaimReport(state)}
        assert (world.step().janitor is not None) is is_wanted


@pytest.mark.parametrize(
    ("condition", "then"),
    [(None, "left"), ("Failed", "left"), ("Complete", "gone")],
)
async def test_one_that_worked_makes_room_for_the_next(condition: str | None, then: str) -> None:
    """One that works goes on, and one that failed is left for people until its time to live is over."""
    kube, job = MemoryKube(), build_janitor_job(load(cache_document()), SETTINGS)
    await see_to(kube, job)
    assert await live(kube) == "there"
    if condition is not None:
        ended = {"conditions": [{"type": condition, "status": "True"}]}
        await kube.apply_status({**job, "status": ended})
    await see_to(kube, job)
    assert await live(kube) == ("there" if then == "left" else "")
    await see_to(kube, job)
    assert await live(kube) == "there"


async def test_a_job_of_somebody_elses_is_left_alone() -> None:
    """Also when it is over."""
    kube, job = MemoryKube(), build_janitor_job(load(cache_document()), SETTINGS)
    foreign: Manifest = {**job, "metadata": {**job["metadata"], "ownerReferences": []}}
    await kube.create(foreign)
    await kube.apply_status({**foreign, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    await see_to(kube, job)
    assert await live(kube) == "there"


async def live(kube: MemoryKube) -> str:
    """Tell whether there is a Job."""
    return "there" if await kube.list(JOBS, "ml") else ""
