"""`status.planned` on a real API server: written before anything is changed, and gone once it is."""

from __future__ import annotations

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import STATEFUL_SETS
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import Harness
from tests.support.caches import SPEC, cache_document
from tests.support.faulty_kube import ProcessKilledError

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

MORE_MEMORY = {**SPEC["stores"]["redis"]["managed"], "maxMemory": "128Mi"}
EDITED = cache_document(spec={"stores": {"redis": {"managed": MORE_MEMORY}}})


@pytest.fixture
def harness(api_server: ApiServer, kube_api: KubeApi, namespace: str) -> Harness:
    """An operator whose passes the test runs."""
    return Harness(api_server, kube_api, namespace)


async def test_a_change_is_told_before_it_is_made(harness: Harness) -> None:
    """Whoever looks between the two reads what comes, and an operator that dies there changed nothing.

    Afterwards nothing is planned, an Event has told it, and passes at rest write nothing.
    """
    harness.apply(cache_document())
    await harness.settle()
    before = await harness.child(STATEFUL_SETS, "demo-redis")
    harness.apply(EDITED)
    harness.restart()
    harness.kube.dies_after = 1
    with pytest.raises(ProcessKilledError):
        await harness.reconcile()
    status = (await harness.cache())["status"]
    (told,) = status["planned"]
    assert (told["kind"], told["name"], told["effect"]) == ("StatefulSet", "demo-redis", "Roll")
    assert "spec.template.spec.containers[redis].resources.limits.memory" in told["fields"]
    assert status["conditions"], "the rest of status stays as it was"
    after = await harness.child(STATEFUL_SETS, "demo-redis")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]

    harness.apply(cache_document())  # whoever does not like it takes it back
    harness.restart()
    await harness.settle()
    assert "planned" not in (await harness.cache())["status"]
    after = await harness.child(STATEFUL_SETS, "demo-redis")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]

    harness.apply(EDITED)
    harness.restart()
    await harness.settle()
    first = next(write for write in harness.kube.writes if write != "create Event")
    assert harness.kube.writes.index(first) == 0
    assert first == "apply_status InferenceCache demo"
    assert "apply StatefulSet demo-redis" in harness.kube.writes
    assert "planned" not in (await harness.cache())["status"]
    events = harness.kubectl(
        "get", "events.events.k8s.io", "-o", "jsonpath={.items[?(@.reason=='Planned')].note}"
    )
    assert "StatefulSet demo-redis is rolled: " in events
    harness.kube.writes.clear()
    await harness.reconcile()
    assert harness.kube.writes == []


async def test_a_suspended_object_shows_what_would_be_done(harness: Harness) -> None:
    """So `suspend` is a dry run: nothing is changed, and status says what would be."""
    harness.apply(cache_document())
    await harness.settle()
    harness.apply(EDITED | {"spec": {**EDITED["spec"], "suspend": True}})
    await harness.settle()
    (told,) = (await harness.cache())["status"]["planned"]
    assert (told["name"], told["effect"]) == ("demo-redis", "Roll")
    assert not [write for write in harness.kube.writes if write.startswith("apply StatefulSet")][1:]
    harness.apply(EDITED)
    await harness.settle()
    assert "planned" not in (await harness.cache())["status"]
