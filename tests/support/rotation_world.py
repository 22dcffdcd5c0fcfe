"""A cache over its whole life: its object and operator, real gateways and a real store, its janitor and pods.

Whoever uses it edits the object, rolls the pods, and lets things go wrong. After every pass of the operator
two gateways serve requests by what store and mount tell them, the janitor works, and what must never be is
looked for. The API server may be a real one or one in memory.
"""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from redis import Redis

from cachewright.api.names import LABEL_CACHE
from cachewright.errors import StoreError
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, PastKeyspace, Record
from cachewright.kube.events import KubeEvents
from cachewright.kube.protocol import (
    CHILD_KINDS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    INFERENCE_CACHES,
    PODS,
    SECRETS,
    KubeClient,
    Manifest,
    ResourceKind,
)
from cachewright.layers.breaker import Breaker
from cachewright.layers.exact import ExactLayer, ExactSettings, Hit, Miss
from cachewright.layers.janitor import Drop, Janitor, JanitorSettings, Removal
from cachewright.layers.known_record import KnownRecord
from cachewright.reconcile.known_record import parse_record
from cachewright.reconcile.service import Reconciler
from cachewright.reconcile.settings import OperatorSettings
from cachewright.render.settings import RenderSettings
from cachewright.stores.probes import ProbeReport, ProbeState
from cachewright.stores.reclaim import ReclaimReport, SweepReport
from cachewright.stores.redis_client import RedisLink, open_link
from cachewright.stores.redis_entries import RedisCacheStore
from tests.stores.backdoors import RedisBackdoor
from tests.support.caches import EXTERNAL_REDIS, Document, cache_document
from tests.support.faulty_kube import FaultyKube, ProcessKilledError
from tests.support.redis_servers import RedisServer

SETTINGS = OperatorSettings(render=RenderSettings(gateway_image="cachewright:test"), switch_seconds=0.2)
STORE_URL = base64.b64encode(b"redis://one:6379/0").decode()
KEY = bytes(32)
TTL_SECONDS = 48 * 3600.0
"""So long that nothing ends by itself while the story lasts."""
BUDGET_SECONDS = 30.0
QUESTIONS = tuple(f"{number:064x}" for number in range(2))
MOST_PASSES = 30

_numbers = itertools.count(1)


class KeptRedis(RedisCacheStore):
    """A store that the operator opens in each pass; its connections are kept until the test is over.

    It plays the gateways' reports too: every layer is well, by the clock of the story.
    """

    def __init__(self, link: RedisLink, clock: Callable[[], datetime]) -> None:
        super().__init__(link)
        self._clock = clock

    async def read_probes(self, cache_id: str, layers: Collection[str]) -> dict[str, ProbeReport]:
        """Read the reports on these layers."""
        at = self._clock().timestamp()
        played = {layer: ProbeReport(ProbeState.WELL, at=at) for layer in layers}
        return played | await super().read_probes(cache_id, layers)

    async def aclose(self) -> None:
        """Keep them."""

    async def end(self) -> None:
        """Close them."""
        await super().aclose()


class Unheard:
    """Listener of a janitor that keeps nothing."""

    def removed(self, keys: int, why: Removal) -> None:
        """Pass over."""

    def reclaimed(self, past: PastKeyspace, report: ReclaimReport) -> None:
        """Pass over."""

    def swept(self, report: SweepReport) -> None:
        """Pass over."""


@dataclass
class Gateway:
    """One gateway's exact layer, under the policy that a record is bound to."""

    known: KnownRecord
    breaker: Breaker
    layer: ExactLayer
    binding: str

    @classmethod
    def make(cls, store: RedisCacheStore, record: Record) -> Gateway:
        """Start a gateway with this record mounted."""
        known = KnownRecord(record.cache_id)
        known.offer(record)
        binding = record.layers["Exact"].binding
        settings = ExactSettings(record.cache_id, binding, TTL_SECONDS, BUDGET_SECONDS)
        breaker = Breaker(store.ping, BUDGET_SECONDS, lambda _: None)
        return cls(known, breaker, ExactLayer(store, known, breaker, settings, KEY, time.time), binding)


@dataclass
class RotationWorld:
    """One cache called demo in front of pods, and what was ever given up or given."""

    api: KubeClient
    server: RedisServer
    namespace: str
    dies_after: int | None = None
    """Each operator process dies after so many writes; None where none dies."""
    drops: dict[str, Drop] = field(default_factory=dict)
    """What the janitor has to call besides emptying Redis, by layer."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    pods: dict[str, Manifest] = field(default_factory=dict)
    """By version of the engine that each runs."""
    gateways: list[Gateway] = field(default_factory=list)
    monotonic: float = 0.0
    """Seconds, as the operator sees them."""
    kept_record: Manifest = field(default_factory=dict)
    """The record's ConfigMap as it was a step ago."""
    hits: int = 0
    """Answers from the cache."""
    steps: int = 0
    """How often `remember` was called; each answer tells in which step it was given."""
    _remembered: tuple[RedisBackdoor, Manifest] | None = None
    _dead: set[tuple[str, Keyspace]] = field(default_factory=set)
    _said: dict[tuple[str, int], Record] = field(default_factory=dict)
    """By cache and revision."""
    _given: dict[tuple[str, int], Keyspace] = field(default_factory=dict)
    _answers: dict[tuple[str, Keyspace], str] = field(default_factory=dict)
    """Version of the engine whose answers a keyspace holds."""

    def __post_init__(self) -> None:
        """Open the store, and let every process of the operator go by the story's time."""
        self.store = KeptRedis(open_link(self.server.url("root"), 8), lambda: self.now)
        self.client = Redis.from_url(self.server.url("root"))
        self.restart()

    async def end(self) -> None:
        """Close what was opened."""
        for gateway in self.gateways:
            await gateway.breaker.aclose()
        await self.store.end()
        self.client.close()

    def restart(self) -> None:
        """Begin another process of the operator."""
        self.kube = FaultyKube(self.api, dies_after=self.dies_after)
        self.reconciler = Reconciler(
            kube=self.kube,
            settings=SETTINGS,
            clock=lambda: self.now,
            events=KubeEvents(self.kube, "test-operator", lambda: self.now),
            open_record_store=lambda _url: self.store,
            monotonic=lambda: self.monotonic,
        )

    async def begin(self, version: str) -> None:
        """Make the object in front of one pod."""
        secret = {"metadata": {"name": "my-redis", "labels": {"cachewright.dev/use": "true"}}}
        await self.create({**secret, "data": {"url": STORE_URL}}, SECRETS)
        await self.start(version)
        await self.make(spec_of(version))
        await self.settle()

    async def make(self, spec: Document) -> None:
        """Create the object as a user does."""
        await self.create({**cache_document(spec=spec), "metadata": {"name": "demo"}}, INFERENCE_CACHES)

    async def create(self, manifest: Manifest, kind: ResourceKind) -> Manifest:
        """Create an object in the test's namespace."""
        metadata = {**manifest["metadata"], "namespace": self.namespace}
        kinds = {"apiVersion": kind.api_version, "kind": kind.kind}
        return await self.api.create({**manifest, **kinds, "metadata": metadata})

    async def delete(self, kind: ResourceKind, manifest: Manifest) -> None:
        """Delete an object."""
        metadata = manifest["metadata"]
        await self.api.delete(kind, self.namespace, metadata["name"], metadata["uid"])

    async def edit(self, **spec: Any) -> None:
        """Change fields of the object's spec; `version` is the model's."""
        document = await self.child(INFERENCE_CACHES, "demo")
        if version := spec.pop("version", ""):
            document["spec"]["model"]["version"] = version
        document["spec"].update(spec)
        await self.api.replace(document)

    async def start(self, version: str) -> None:
        """Let a pod with this version of the engine come."""
        pod = {
            "metadata": {"name": f"engine-{next(_numbers)}", "labels": {"app": "engine"}},
            "spec": {
                "containers": [{"name": "engine", "image": f"engine:{version}"}],
                "automountServiceAccountToken": False,
            },
        }
        self.pods[version] = await self.create(pod, PODS)

    async def roll(self, before: str, after: str) -> None:
        """Bump the version and replace the pod, and let the operator see both."""
        await self.edit(version=after)
        await self.start(after)
        await self.stop(before)
        await self.settle()

    async def stop(self, version: str) -> None:
        """Let it go."""
        await self.delete(PODS, self.pods.pop(version))

    async def remember(self) -> None:
        """Begin another step; what goes back goes to where store and record were at the one before."""
        self.steps += 1
        record = await self.record()
        backdoor = RedisBackdoor(self.client, record.cache_id)
        kept = await self.child(CONFIG_MAPS, "demo-record")
        backdoor.remember()
        self.backdoor, self.kept_record = self._remembered or (backdoor, kept)
        self._remembered = backdoor, kept

    async def record(self) -> Record:
        """Read the record as it stands in its ConfigMap."""
        record = parse_record(await self.child(CONFIG_MAPS, "demo-record"))
        assert record is not None
        return record

    async def child(self, kind: ResourceKind, name: str) -> Manifest:
        """Read an object of the test's namespace."""
        found = await self.api.get(kind, self.namespace, name)
        assert found is not None
        return found

    async def conditions(self) -> dict[str, str]:
        """Read the conditions as `status reason`, by type."""
        status = (await self.child(INFERENCE_CACHES, "demo"))["status"]
        return {each["type"]: f"{each['status']} {each['reason']}" for each in status["conditions"]}

    async def reconcile(self) -> None:
        """Run one pass."""
        await self.reconciler.reconcile(self.namespace, "demo")

    async def _report_pods_ready(self) -> None:
        gateway = await self.api.get(DEPLOYMENTS, self.namespace, "demo-gateway")
        if gateway is None or (gateway.get("status") or {}).get("availableReplicas"):
            return
        names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        status = dict.fromkeys(names, gateway["spec"]["replicas"])
        seen = {"observedGeneration": gateway["metadata"]["generation"]}
        metadata = {key: gateway["metadata"][key] for key in ("name", "namespace")}
        kinds = {"apiVersion": DEPLOYMENTS.api_version, "kind": DEPLOYMENTS.kind}
        await self.api.apply_status({**kinds, "metadata": metadata, "status": {**status, **seen}})

    async def settle(self) -> None:
        """Run passes, whoever dies meanwhile, until one writes nothing; then all must know the same."""
        for _ in range(MOST_PASSES):
            self.monotonic += 1.0
            if await self._pass():
                break
        else:
            raise AssertionError(f"passes do not settle: {self.kube.writes[-12:]}")
        record = await self.record()
        await self.serve(record)
        assert await self.store.read_record(record.cache_id) == record
        assert [gateway.known.best for gateway in self.gateways] == [record, record]

    async def _pass(self) -> bool:
        """Run one pass, look at what it did, and let the others work; tells whether nothing was written."""
        before = len(self.kube.writes)
        try:
            await self.reconcile()
            quiet = len(self.kube.writes) == before
        except ProcessKilledError:
            quiet = False
            self.restart()
        await self._report_pods_ready()
        live = await self.api.get(CONFIG_MAPS, self.namespace, "demo-record")
        record = parse_record(live) if live else None
        if record is not None:
            self.look_at(record)
            with suppress(StoreError):
                await self.serve(record)
                await self.tidy(record)
        return quiet

    def look_at(self, record: Record) -> None:
        """Look for what must never be in a record."""
        cache = record.cache_id
        in_use = {layer.keyspace for layer in record.layers.values()}
        kept = {past.keyspace for past in record.in_state(KeyspaceState.RETAINED)}
        said = self._said.setdefault((cache, record.revision), record)
        assert said == record, "a revision has two contents"
        assert len(set(record.keyspaces())) == len(record.keyspaces()), "a keyspace is named twice"
        revived = {each for each in in_use | kept if (cache, each) in self._dead}
        assert not revived, f"{revived} was being deleted"
        self._dead |= {(cache, past.keyspace) for past in record.in_state(KeyspaceState.DELETING)}
        for keyspace in record.keyspaces():
            given = self._given.setdefault((cache, keyspace.incarnation), keyspace)
            assert given == keyspace, "an incarnation was given twice"
        for layer in record.layers.values():
            assert layer.state is KeyspaceState.READONLY or len(self.pods) == 1, "written while pods differ"

    async def serve(self, record: Record) -> None:
        """Let both gateways serve; the first has the newest record mounted, the second an old one."""
        bound = {(each.known.best.cache_id, each.binding) for each in self.gateways if each.known.best}
        layer = record.layers.get("Exact")
        if layer is None:
            return
        if bound != {(record.cache_id, layer.binding)}:
            for gateway in self.gateways:
                await gateway.breaker.aclose()
            self.gateways = [Gateway.make(self.store, record) for _ in range(2)]
        self.gateways[0].known.offer(record)
        for gateway in self.gateways:
            await gateway.breaker.closed()
            await gateway.layer.catch_up()
        for number, question in enumerate(QUESTIONS):
            for gateway in self.gateways:
                await self._ask(gateway, question, number)

    async def _ask(self, gateway: Gateway, question: str, number: int) -> None:
        found = await gateway.layer.look_up("tenant", question)
        if isinstance(found, Hit):
            self.hits += 1
            self._heard(found)
        elif isinstance(found, Miss) and self.pods:
            version = sorted(self.pods)[number % len(self.pods)]
            await gateway.layer.write(found, "application/json", json.dumps([version, self.steps]).encode())

    def _heard(self, hit: Hit) -> None:
        """Check that an answer is of the engine whose keyspace it was found in."""
        (version, _), name = json.loads(hit.entry.body), hit.place.name
        of_it = self._answers.setdefault((name.cache_id, name.keyspace), version)
        assert version == of_it, f"{name.keyspace} gave answers of {of_it} and {version}"
        assert (name.cache_id, name.keyspace) not in self._dead, "an answer came from what is being deleted"

    async def served_from(self) -> set[int]:
        """Return in which steps the answers were given that are served now; -1 for what is not there."""
        served = set()
        for question in QUESTIONS:
            found = await self.gateways[0].layer.look_up("tenant", question)
            served.add(json.loads(found.entry.body)[1] if isinstance(found, Hit) else -1)
        return served

    async def tidy(self, record: Record) -> None:
        """Let the janitor work, which must not touch what is in use."""
        if not record.in_state(KeyspaceState.DELETING):
            return
        before = await self._stored(record)
        settings = JanitorSettings(record.cache_id, 1e6, 3600.0, self.drops)
        await Janitor(self.store, settings, Unheard(), time.monotonic, time.time).work(record)
        assert await self._stored(record) == before, "the janitor took entries that are in use"

    async def _stored(self, record: Record) -> Sequence[bytes]:
        kept = (*(layer.keyspace for layer in record.layers.values()), *_retained(record))
        found: list[bytes] = []
        for keyspace in kept:
            found += self.client.scan_iter(match=f"*:{keyspace}:*", count=1000)
        return sorted(found)

    async def cache_gone(self) -> Document:
        """Delete the object with all that it owns; returns its document."""
        document = await self.child(INFERENCE_CACHES, "demo")
        await self.delete(INFERENCE_CACHES, document)
        for kind in CHILD_KINDS:
            for child in await self.api.list(kind, self.namespace, f"{LABEL_CACHE}=demo"):
                await self.delete(kind, child)
        return document


def _retained(record: Record) -> list[Keyspace]:
    return [past.keyspace for past in record.in_state(KeyspaceState.RETAINED)]


def spec_of(version: str) -> Document:
    """Return the spec of a fenced cache in a store of somebody else's."""
    selector = {"matchLabels": {"app": "engine"}}
    workload = {"apiVersion": "example.com/v1", "kind": "Engine", "name": "engine", "podSelector": selector}
    model = {"name": "demo-model", "version": version, "workloadRef": workload}
    return {"model": model, "stores": EXTERNAL_REDIS}
