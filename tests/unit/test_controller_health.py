"""Probes, metrics and the accounting of passes, on a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from cachewright.controller.health import (
    LEASE_SILENCE_SECONDS,
    OUTAGE_SECONDS,
    UNANSWERED_SECONDS,
    Vitals,
    health_app,
    serving,
)
from cachewright.controller.metrics import OperatorMetrics
from cachewright.controller.passes import Passes, TryAgain
from cachewright.controller.queue import CacheKey, WorkQueue
from cachewright.controller.roster import Roster
from cachewright.errors import KubeUnavailable
from cachewright.reconcile.service import Outcome

A = CacheKey("ns", "a")
B = CacheKey("ns", "b")
RESYNC_SECONDS = 300.0


class Clock:
    """Seconds that pass when told to."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the moment it is."""
        return self.now


class Bench:
    """A replica's vitals and what they depend on."""

    def __init__(self, *, elects: bool = True) -> None:
        self.clock = Clock()
        self.roster = Roster(self.clock)
        self.vitals = Vitals(self.roster, self.clock, RESYNC_SECONDS, elects=elects)
        self.metrics = OperatorMetrics()


@pytest.fixture
def bench() -> Bench:
    """A replica that takes part in an election and has just started."""
    return Bench()


def test_a_fresh_replica_is_alive_and_not_ready(bench: Bench) -> None:
    """Nothing was seen yet: no reason to restart it, none to count on it."""
    assert bench.vitals.ailments() == []
    assert bench.vitals.obstacles() == ["the lease was not seen yet"]


def test_a_standby_that_sees_renewals_is_ready(bench: Bench) -> None:
    """It needs no watches of its own."""
    bench.vitals.saw_renewal()
    assert bench.vitals.obstacles() == []


def test_a_leader_is_ready_when_its_watches_have_started(bench: Bench) -> None:
    """Until then events would be missed."""
    bench.vitals.saw_renewal()
    bench.vitals.leads = True
    assert bench.vitals.obstacles() == ["the watches have not started yet"]
    bench.vitals.watches = True
    assert bench.vitals.obstacles() == []
    bench.vitals.stopping = True
    assert bench.vitals.obstacles() == ["stopping"]


def test_silence_on_the_lease_is_deadly(bench: Bench) -> None:
    """A process that sees no renewals, not even others', has lost its requests or its watches."""
    bench.vitals.saw_renewal()
    bench.clock.now += LEASE_SILENCE_SECONDS
    assert bench.vitals.ailments() == []
    bench.clock.now += 1
    assert len(bench.vitals.ailments()) == 1
    assert "61 s" in bench.vitals.ailments()[0]
    bench.vitals.saw_renewal()
    assert bench.vitals.ailments() == []


def test_a_silent_api_server_is_no_reason_to_restart(bench: Bench) -> None:
    """While requests are known to get no answer a restart cures nothing; after a long time it is tried."""
    bench.vitals.saw_renewal()
    for code in ("timeout", "error", "cancelled", "503"):
        bench.clock.now += LEASE_SILENCE_SECONDS
        bench.vitals.saw_request(code)
        assert bench.vitals.ailments() == []
    assert bench.vitals.obstacles() == ["the API server does not answer"]
    bench.clock.now += UNANSWERED_SECONDS
    assert bench.vitals.ailments() != [], "requests get answers, or none is sent: we are deaf"
    bench.clock.now += OUTAGE_SECONDS
    bench.vitals.saw_request("timeout")
    assert bench.vitals.ailments() != []
    bench.vitals.saw_renewal()
    assert bench.vitals.ailments() == []


def test_answers_that_we_dislike_are_answers(bench: Bench) -> None:
    """A missing right to the Lease shows as a failing probe, not as an outage."""
    bench.clock.now += LEASE_SILENCE_SECONDS + 1
    for code in ("200", "403", "404", "409"):
        bench.vitals.saw_request(code)
        assert bench.vitals.ailments() != []


def test_a_single_replica_without_election_needs_no_lease() -> None:
    """Its probes go by watches and resyncs alone."""
    bench = Bench(elects=False)
    assert bench.vitals.obstacles() == ["the watches have not started yet"]
    bench.vitals.watches = True
    bench.clock.now += 10 * LEASE_SILENCE_SECONDS
    assert bench.vitals.obstacles() == []


def test_an_object_that_nobody_looks_at_is_deadly_for_the_leader(bench: Bench) -> None:
    """Twice the interval without a pass over some object means a stuck queue; a standby has none."""
    bench.roster.replace([A, B])
    bench.vitals.leads = True
    bench.clock.now += 2 * RESYNC_SECONDS
    bench.vitals.saw_renewal()
    bench.roster.visited(A, ready=True)
    assert bench.vitals.ailments() == []
    bench.clock.now += 1
    assert bench.vitals.ailments() == ["an object was not reconciled for 601 s"]
    bench.vitals.leads = False
    assert bench.vitals.ailments() == []


def test_the_roster_follows_the_list(bench: Bench) -> None:
    """A resync's list adds and removes objects and keeps what is known of the others."""
    bench.roster.replace([A])
    bench.roster.visited(A, ready=True)
    bench.roster.replace([A, B])
    assert (bench.roster.count(ready=True), bench.roster.count(ready=None)) == (1, 1)
    bench.roster.replace([B])
    assert bench.roster.in_namespace("ns") == [B]
    bench.roster.visited(A, ready=True)
    assert bench.roster.count(ready=True) == 0, "a pass over a deleted object does not bring it back"


@pytest.fixture
async def url(bench: Bench) -> AsyncIterator[str]:
    """Serve the port."""
    bench.metrics.follow(WorkQueue(asyncio.get_running_loop()), bench.roster)
    async with serving(health_app(bench.vitals, bench.metrics), 0) as port:
        yield f"http://127.0.0.1:{port}"


async def test_the_port_answers(bench: Bench, url: str) -> None:
    """200 or 503 with the reasons in words, and the metrics in Prometheus' format."""
    bench.metrics.count_request("get", "Secret", "403")
    bench.roster.replace([A, B])
    async with aiohttp.ClientSession(url) as session:

        async def get(path: str) -> tuple[int, str]:
            async with session.get(path) as answer:
                return answer.status, await answer.text()

        assert await get("/healthz") == (200, "ok\n")
        assert await get("/readyz") == (503, "the lease was not seen yet\n")
        status, text = await get("/metrics")
        assert status == 200
        for line in (
            'cachewright_kube_requests_total{code="403",kind="Secret",verb="get"} 1.0',
            'cachewright_caches{ready="unknown"} 2.0',
            "cachewright_queue_depth 0.0",
            "cachewright_queue_oldest_seconds 0.0",
            "cachewright_leader 0.0",
        ):
            assert line in text.splitlines()
        assert "process_resident_memory_bytes" in text


def make_passes(bench: Bench, outcome: Outcome | Exception) -> Passes:
    """Return passes that all end the same way."""

    async def reconcile(namespace: str, name: str) -> Outcome:
        assert (namespace, name) == A
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Passes(reconcile, bench.roster, bench.metrics, bench.clock, lambda _key, _references: None)


def results(bench: Bench) -> dict[str, float]:
    """Return how many passes ended how."""
    (family,) = [each for each in bench.metrics.registry.collect() if each.name == "cachewright_reconciles"]
    return {s.labels["result"]: s.value for s in family.samples if s.name.endswith("_total")}


async def test_a_good_pass_is_accounted_for(bench: Bench) -> None:
    """It is counted, its object was seen, and its wish to come back is handed on."""
    bench.roster.replace([A])
    passes = make_passes(bench, Outcome(requeue_after_seconds=5.0, ready=True))
    assert await passes(A) == 5.0
    assert results(bench) == {"ok": 1}
    assert bench.roster.count(ready=True) == 1


@pytest.mark.parametrize(
    ("outcome", "error", "result"),
    [
        (Outcome(retry=True, ready=False), TryAgain, "retry"),
        (KubeUnavailable("get Secret ns/a: no answer in time"), KubeUnavailable, "retry"),
        (TimeoutError(), TimeoutError, "timeout"),
        (RuntimeError("a bug"), RuntimeError, "error"),
    ],
)
async def test_a_bad_pass_is_counted_and_tried_again(
    bench: Bench, outcome: Any, error: type[Exception], result: str
) -> None:
    """Whatever went wrong reaches the queue as an exception, and the object counts as seen."""
    bench.roster.replace([A])
    bench.clock.now += 100
    with pytest.raises(error):
        await make_passes(bench, outcome)(A)
    assert results(bench) == {result: 1}
    assert bench.roster.oldest_visit_seconds == 0
