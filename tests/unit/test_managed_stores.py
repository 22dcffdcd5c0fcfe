"""Stores with volumes, which the operator runs: crashes between writes, lost credentials, refused changes."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cachewright.crd.validation import load
from cachewright.errors import StoreRefused
from cachewright.kube.events import KubeEvents
from cachewright.kube.memory import MemoryKube, Place
from cachewright.kube.protocol import CHILD_KINDS, CLOUDNATIVE_PG_KINDS, INFERENCE_CACHES, Manifest
from cachewright.reconcile.observe_store_pods import see_store_pods
from cachewright.reconcile.references import what_counts
from cachewright.reconcile.service import Reconciler
from cachewright.reconcile.settings import OperatorSettings
from cachewright.reconcile.store_checks import StoreQuestions
from cachewright.stores.checking import PostgresAccess, PostgresFacts, QdrantAccess
from tests.support.caches import SPEC, cache_document
from tests.support.kept_store import KeptStore
from tests.support.passes import SETTINGS, World
from tests.support.store_questions import WELL

STORES = {**SPEC["stores"], "qdrant": {"managed": {}}, "postgres": {"managed": {"memory": "2Gi"}}}
LAYERS = {"exact": {}, "semantic": {"store": "Qdrant"}, "embedding": {"cold": "Postgres"}}


def document() -> Manifest:
    """An object with every store managed."""
    return cache_document(spec={"stores": STORES, "layers": LAYERS, "embedder": {"builtin": {}}})


def clustered() -> Manifest:
    """One whose PostgreSQL is CloudNativePG's, and nothing else but Redis."""
    postgres = {"managed": {"provider": "CloudNativePG", "instances": 3}}
    layers = {"exact": {}, "semantic": {"store": "Postgres"}}
    return cache_document(
        spec={
            "stores": {**SPEC["stores"], "postgres": postgres},
            "layers": layers,
            "embedder": {"builtin": {}},
        }
    )


class KilledError(Exception):
    """Stands for the operator's death before a write."""


class Cluster:
    """An API server in memory, whose controllers report every pod ready at once."""

    def __init__(self) -> None:
        self.questions = WELL
        self.kube = MemoryKube()
        self.store = KeptStore(time.time)
        self.left: int | None = None
        self.kube.before_write = self._count

    def _count(self, _verb: str, place: Place) -> None:
        if self.left is not None and place.kind != "Event":
            self.left -= 1
            if self.left < 0:
                raise KilledError(str(place))

    async def settle(self) -> None:
        """Run passes of a new process until one writes nothing."""
        ticks = iter(range(0, 100_000, 60))
        reconciler = Reconciler(
            kube=self.kube,
            settings=OperatorSettings(render=SETTINGS),
            clock=lambda: datetime.now(UTC),
            events=KubeEvents(self.kube, "test", lambda: datetime.now(UTC)),
            open_record_store=lambda _url: self.store,
            monotonic=lambda: float(next(ticks)),
            questions=self.questions,
        )
        for _ in range(8):
            before = len(self.kube.writes)
            await reconciler.reconcile("ml", "demo")
            if len(self.kube.writes) == before:
                return
            await self._report()
        raise AssertionError("passes do not settle")

    async def _report(self) -> None:
        left, self.left = self.left, None
        for kind in (*CHILD_KINDS, *CLOUDNATIVE_PG_KINDS):
            for child in await self.kube.list(kind, "ml"):
                if kind in CLOUDNATIVE_PG_KINDS:
                    status = {"applied": True, "readyInstances": child["spec"].get("instances", 0)}
                    await self.kube.apply_status({**child, "status": status})
                replicas = child.get("spec", {}).get("replicas")
                if kind.kind in {"Deployment", "StatefulSet"}:
                    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
                    status = {"observedGeneration": child["metadata"]["generation"]}
                    await self.kube.apply_status({**child, "status": status | dict.fromkeys(names, replicas)})
        self.left = left

    async def children(self) -> set[tuple[str, str]]:
        """List what was made for the object."""
        kinds = (*CHILD_KINDS, *CLOUDNATIVE_PG_KINDS)
        found = [(kind.kind, child) for kind in kinds for child in await self.kube.list(kind, "ml")]
        return {(kind, child["metadata"]["name"]) for kind, child in found}

    async def condition(self, kind: str) -> Manifest:
        """Return one condition of the object."""
        live = await self.kube.get(INFERENCE_CACHES, "ml", "demo")
        assert live is not None
        found: Manifest = next(each for each in live["status"]["conditions"] if each["type"] == kind)
        return found


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        (document(), {("StatefulSet", "demo-qdrant"), ("StatefulSet", "demo-postgres")}),
        (clustered(), {("Cluster", "demo-postgres"), ("Database", "demo-postgres")}),
    ],
)
async def test_a_crash_before_every_write_converges(wish: Manifest, named: set[tuple[str, str]]) -> None:
    """Killed before the first, second, third … write, the next process always ends in the same state."""
    whole = Cluster()
    await whole.kube.apply(wish)
    await whole.settle()
    wanted = await whole.children()
    assert wanted >= {("StatefulSet", "demo-redis"), ("Deployment", "demo-gateway"), *named}
    for survived in range(200):
        cluster = Cluster()
        await cluster.kube.apply(wish)
        cluster.left = survived
        try:
            await cluster.settle()
        except KilledError:
            cluster.left = None
            await cluster.settle()
        else:
            break
        assert await cluster.children() == wanted, survived
        assert (await cluster.condition("Ready"))["status"] == "True", survived
    assert survived > len(wanted), "each child's write was interrupted once"


async def test_a_managed_store_is_asked_once_its_pod_is_ready() -> None:
    """With what was generated for it; what a ready pod cannot do, such as write to a full disk, is told."""
    cluster = Cluster()
    keys: set[QdrantAccess] = set()
    dsns: set[PostgresAccess] = set()

    async def qdrant(access: QdrantAccess) -> None:
        keys.add(access)
        raise StoreRefused("write: no space left on device")

    async def postgres(access: PostgresAccess) -> PostgresFacts:
        dsns.add(access)
        return PostgresFacts(connections=3)

    cluster.questions = StoreQuestions(qdrant, postgres)
    await cluster.kube.apply(document())
    await cluster.settle()
    (key,), (dsn,) = keys, dsns
    assert (key.url, len(key.api_key or "")) == ("http://demo-qdrant.ml.svc:6333", 43)
    assert dsn.dsn.endswith("@demo-postgres.ml.svc:5432/cachewright")
    assert not dsn.holds_vectors, "vectors are searched in Qdrant"
    ready = await cluster.condition("StoresReady")
    assert (ready["status"], ready["reason"]) == ("False", "StoreRefused")
    assert ready["message"] == "Qdrant: write: no space left on device."
    cluster.questions = replace(cluster.questions, qdrant=WELL.qdrant)
    await cluster.settle()
    ready = await cluster.condition("StoresReady")
    assert ready["reason"] == "TooFewConnections"
    assert "raise stores.postgres.managed.memory" in ready["message"]


async def test_a_failover_of_cloudnative_pg_has_gateways_try_again() -> None:
    """The server that takes writes counts: when another one does, what gateways said of the first is old."""
    kube, spec = MemoryKube(), load(clustered()).spec

    async def servers(**roles: str) -> str:
        for number, (name, role) in enumerate(roles.items()):
            labels = {"cnpg.io/cluster": "demo-postgres", "cnpg.io/instanceRole": role}
            metadata = {"name": name, "namespace": "ml", "labels": labels}
            pod = await kube.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}})
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": f"2026-11-30T12:00:0{number}Z"}
            await kube.apply_status({**pod, "status": {"conditions": [ready]}})
        return await see_store_pods(kube, "ml", "demo", spec)

    before = await servers(one="primary", two="replica")
    assert before
    assert await servers(one="primary", two="replica", three="replica") == before
    assert await servers(one="replica", two="primary") not in ("", before)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"status": {"phase": "Failing over"}}, True),
        ({"status": {"currentPrimary": "demo-postgres-2"}}, True),
        ({"spec": {"instances": 1}}, True),
        ({"metadata": {"labels": {}}}, True),
        ({"metadata": {"labels": {"a": "b"}, "resourceVersion": "2"}}, False),
        ({"status": {"phase": "Healthy", "timelineID": 7}}, False),
    ],
)
def test_what_of_a_cluster_is_looked_at_again(change: Manifest, counts: bool) -> None:
    """What is wished for and what something is told of; not whatever else CloudNativePG writes down."""
    cluster = {
        "metadata": {"labels": {"a": "b"}, "resourceVersion": "1"},
        "spec": {"instances": 3},
        "status": {"phase": "Healthy"},
    }
    assert (what_counts("Cluster", cluster) != what_counts("Cluster", {**cluster, **change})) is counts


@pytest.fixture
def world() -> World:
    """A settled object with every store managed."""
    made = World(document())
    made.settle()
    return made


@pytest.mark.parametrize("store", ["qdrant", "postgres"])
def test_a_lost_credential_rolls_server_and_gateways(world: World, store: str) -> None:
    """Both read it at start only, so both are started anew with the one that is made in its place."""
    del world.children["Secret", f"demo-{store}"]
    applied = world.step().applies
    rolled = {child["metadata"]["name"] for child in applied if "template" in child.get("spec", {})}
    assert rolled == {f"demo-{store}", "demo-gateway"}


@pytest.mark.parametrize("store", ["qdrant", "postgres"])
def test_a_store_that_is_taken_out_goes_with_its_volume(world: World, store: str) -> None:
    """Everything of it is deleted, and nothing of the others."""
    stores = {name: each for name, each in STORES.items() if name != store}
    world.change(stores=stores, layers={"exact": {}})
    planned = world.step()
    assert {child["metadata"]["name"] for child in planned.deletes} == {f"demo-{store}"}
    assert "PersistentVolumeClaim" in {child["kind"] for child in planned.deletes}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"external": {"url": "http://q:6333"}}, "spec.stores.qdrant cannot change from managed to external"),
        ({"managed": {"storage": {"storageClassName": "slow"}}}, "storageClassName cannot change from the"),
        ({"managed": {"storage": {"size": "1Gi"}}}, "volume claim demo-qdrant asks for 10Gi"),
    ],
)
def test_what_an_older_crd_lets_through_is_refused(world: World, change: dict[str, Any], said: str) -> None:
    """Ownership, class and a smaller volume change nothing, and the condition says why."""
    world.change(stores={**STORES, "qdrant": change})
    planned = world.step()
    assert not planned.writes
    assert said in world.condition("Ready")["message"]
    assert world.condition("Stalled")["reason"] == "ImmutableField"


def test_a_provider_that_an_older_crd_lets_through_is_refused(world: World) -> None:
    """Who runs a store cannot change: the volumes of one are not those of the other."""
    world.change(stores={**STORES, "postgres": {"managed": {"provider": "CloudNativePG"}}})
    assert not world.step().writes
    said = "spec.stores.postgres cannot change from managed to managed by CloudNativePG"
    assert said in world.condition("Ready")["message"]


def test_a_store_that_is_not_ready_is_named_with_what_it_waits_for(world: World) -> None:
    """Each managed store counts, and an unbound volume claim is told where there is one."""
    world.children["StatefulSet", "demo-postgres"]["status"]["readyReplicas"] = 0
    world.step()
    waiting = "Pod demo-postgres-0 is not ready: volume claim demo-postgres is not bound."
    assert world.condition("StoresReady")["message"] == waiting
    world.children["PersistentVolumeClaim", "demo-postgres"]["status"] = {"phase": "Bound"}
    world.step()
    assert world.condition("StoresReady")["message"] == "Pod demo-postgres-0 is not ready."


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ({}, "to 10Gi."),
        (
            {"conditions": [{"type": "FileSystemResizePending", "status": "True"}]},
            "to 10Gi; its file system grows when the pod is started next.",
        ),
        (
            {"allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"}},
            "to 10Gi, which its driver cannot do.",
        ),
    ],
)
def test_a_volume_that_grows_is_told_with_what_is_in_the_way(
    world: World, status: Manifest, end: str
) -> None:
    """Both sizes, and what the driver says, until they are the same."""
    claim = world.children["PersistentVolumeClaim", "demo-qdrant"]
    claim["status"] = {"phase": "Bound", "capacity": {"storage": "5Gi"}, **status}
    world.step()
    assert world.condition("StoresSized")["message"] == f"Volume claim demo-qdrant grows from 5Gi {end}"
    claim["status"]["capacity"]["storage"] = "10240Mi"
    world.step()
    assert world.condition("StoresSized")["status"] == "True"
