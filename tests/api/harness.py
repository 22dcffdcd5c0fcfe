"""Runs reconcile passes against a real API server, with a store in memory and faults on demand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

from cachewright.api.names import LABEL_CACHE
from cachewright.kube.client import KubeApi
from cachewright.kube.events import KubeEvents
from cachewright.kube.protocol import CHILD_KINDS, INFERENCE_CACHES, VOLUME_CLAIMS, Manifest, ResourceKind
from cachewright.reconcile.service import Outcome, Reconciler
from cachewright.reconcile.settings import OperatorSettings
from cachewright.render.settings import RenderSettings
from cachewright.stores.protocols import RecordStore
from e2e.cluster.apiserver import ApiServer
from tests.support.faulty_kube import FaultyKube
from tests.support.kept_store import KeptStore
from tests.support.store_questions import WELL

SETTINGS = OperatorSettings(
    render=RenderSettings(gateway_image="cachewright:test"), switch_seconds=0.2, engine_timeout_seconds=60.0
)

Versions = dict[tuple[str, str], str]


class Harness:
    """One operator without its watches: passes are run by the test."""

    def __init__(self, server: ApiServer, api: KubeApi, namespace: str) -> None:
        self.server = server
        self.api = api
        self.namespace = namespace
        self.store = KeptStore(time.time)
        self.store_urls: list[str] = []
        self.monotonic = 0.0
        """Seconds, as the reconciler sees them; `settle` lets them go by."""
        self.restart()

    def restart(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Begin anew with nothing remembered, as a new process does."""
        self.kube = FaultyKube(self.api)
        self.reconciler = Reconciler(
            kube=self.kube,
            settings=SETTINGS,
            clock=clock,
            events=KubeEvents(self.kube, "test-operator", lambda: datetime.now(UTC)),
            open_record_store=self._open,
            monotonic=lambda: self.monotonic,
            questions=WELL,
        )

    def _open(self, url: str) -> RecordStore:
        self.store_urls.append(url)
        return self.store

    def apply(self, document: Manifest) -> None:
        """Apply as a user does, under a field manager that is not ours."""
        metadata = {"name": document["metadata"]["name"], "namespace": self.namespace}
        manifest = json.dumps({**document, "metadata": metadata})
        self.kubectl("apply", "--server-side", "--field-manager=user", "-f", "-", stdin=manifest)

    def patch(self, target: str, patch: Manifest, *options: str) -> None:
        """Merge a patch into an object by hand."""
        self.kubectl("patch", target, "--type=merge", f"--patch={json.dumps(patch)}", *options)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl in the test's namespace."""
        return self.server.kubectl("--namespace", self.namespace, *arguments, stdin=stdin)

    async def reconcile(self, name: str = "demo") -> Outcome:
        """Run one pass."""
        return await self.reconciler.reconcile(self.namespace, name)

    async def settle(self, name: str = "demo") -> None:
        """Run passes, with pods reported ready, until one writes nothing."""
        for _ in range(8):
            before = len(self.kube.writes)
            await self.reconcile(name)
            await self.report_pods_ready(name)
            self.monotonic += SETTINGS.switch_seconds
            if len(self.kube.writes) == before:
                return
        raise AssertionError(f"passes do not settle: {self.kube.writes[-12:]}")

    async def report_pods_ready(self, name: str) -> None:
        """Do what the controller manager would: say in the children's status that their pods run."""
        for kind in CHILD_KINDS:
            if kind.kind not in {"Deployment", "StatefulSet"}:
                continue
            for child in await self.api.list(kind, self.namespace, f"{LABEL_CACHE}={name}"):
                count = child["spec"]["replicas"]
                status = {
                    "observedGeneration": child["metadata"]["generation"],
                    "replicas": count,
                    "updatedReplicas": count,
                    "readyReplicas": count,
                    "availableReplicas": count,
                }
                if status.items() <= (child.get("status") or {}).items():
                    continue
                target = f"{kind.plural}/{child['metadata']['name']}"
                self.patch(target, {"status": status}, "--subresource=status")
        for claim in await self.api.list(VOLUME_CLAIMS, self.namespace, f"{LABEL_CACHE}={name}"):
            if (claim.get("status") or {}).get("phase") != "Bound":
                self.bind(claim)

    def bind(self, claim: Manifest) -> None:
        """Give a claim a volume of the size that it asks for, as a storage driver would."""
        capacity = claim["spec"]["resources"]["requests"]
        status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": capacity}
        target = f"persistentvolumeclaims/{claim['metadata']['name']}"
        self.patch(target, {"status": status}, "--subresource=status")

    async def cache(self, name: str = "demo") -> Manifest:
        """Read the object."""
        document = await self.api.get(INFERENCE_CACHES, self.namespace, name)
        assert document is not None
        return document

    async def conditions(self, name: str = "demo") -> dict[str, str]:
        """Read the conditions as `status reason`, by type."""
        status = (await self.cache(name)).get("status") or {}
        return {c["type"]: f"{c['status']} {c['reason']}" for c in status.get("conditions", [])}

    async def children(self, name: str = "demo") -> dict[tuple[str, str], Manifest]:
        """Read all children."""
        found = {}
        for kind in CHILD_KINDS:
            for child in await self.api.list(kind, self.namespace, f"{LABEL_CACHE}={name}"):
                found[kind.kind, child["metadata"]["name"]] = child
        return found

    async def child(self, kind: ResourceKind, name: str) -> Manifest:
        """Read one child."""
        child = await self.api.get(kind, self.namespace, name)
        assert child is not None
        return child

    async def versions(self, name: str = "demo") -> Versions:
        """Read the resourceVersion of the object and of every child."""
        found = {
            identity: child["metadata"]["resourceVersion"]
            for identity, child in (await self.children(name)).items()
        }
        found["InferenceCache", name] = (await self.cache(name))["metadata"]["resourceVersion"]
        return found

    async def everything_but_secrets(self, name: str = "demo") -> str:
        """Read all that people without rights to Secrets may see, as one text."""
        children = await self.children(name)
        visible = [child for (kind, _), child in children.items() if kind != "Secret"]
        return json.dumps([await self.cache(name), *visible])
