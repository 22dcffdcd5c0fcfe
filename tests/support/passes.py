"""Drive reconcile's pure part: observed state in, plan carried out in memory, next observed state out."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.reconcile.plan import child_id, plan
from cachewright.reconcile.state import (
    Applied,
    ChildId,
    FreshSecrets,
    Manifest,
    Observed,
    Plan,
    StoreState,
)
from cachewright.reconcile.status import build_status
from cachewright.reconcile.workload import WorkloadSeen
from cachewright.render.settings import RenderSettings
from cachewright.stores.probes import ProbeReport, ProbeState
from cachewright.stores.protocols import ServerFacts
from cachewright.stores.reclaim import ReclaimReport

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SETTINGS = RenderSettings(gateway_image="registry.example/cachewright:0.1.0")
FRESH = FreshSecrets(
    digest_key="ab" * 32,
    admin_token="t" * 43,
    gateway_password="g" * 43,
    operator_password="o" * 43,
    qdrant_api_key="q" * 43,
    postgres_password="p" * 43,
)


def observed(document: Manifest, **parts: Any) -> Observed:
    """Build what a first look at a new object sees."""
    values: dict[str, Any] = {
        "children": {},
        "foreign": {},
        "secrets": (),
        "store": StoreState(),
        "fresh": FRESH,
    }
    return Observed(document=document, **{**values, **parts})


@dataclass
class World:
    """A cluster reduced to one object, its children and its store's copy of the record."""

    document: Manifest
    children: dict[ChildId, Manifest] = field(default_factory=dict)
    store_record: Record | None = None
    store_up: bool = False
    now: datetime = NOW
    version: int = 0
    pods: Mapping[str, int] | None = None
    """How many pods of the workload carry each identity; None where none are looked at."""
    problem: str = ""
    """Why pods could not be looked for."""
    template: str = ""
    """Digest of the prompt template in a ConfigMap."""
    reclaims: Mapping[Keyspace, ReclaimReport] = field(default_factory=dict)
    server: ServerFacts | None = None

    def probes(self) -> dict[str, ProbeReport]:
        """Report what gateways would: that every layer is well."""
        layers = self.store_record.layers if self.store_record else ()
        return {layer: ProbeReport(ProbeState.WELL, at=self.now.timestamp()) for layer in layers}

    def workload(self) -> WorkloadSeen | None:
        """Look at the pods."""
        return None if self.pods is None else WorkloadSeen(dict(self.pods), problem=self.problem)

    def look(self, **parts: Any) -> Observed:
        """Observe, with other fresh secrets each time, as the real one does."""
        self.version += 1
        fresh = FreshSecrets(
            digest_key=f"{self.version:064x}",
            admin_token=f"admin-{self.version:037d}",
            gateway_password=f"gateway-{self.version:035d}",
            operator_password=f"operator-{self.version:035d}",
            qdrant_api_key=f"qdrant-{self.version:036d}",
            postgres_password=f"postgres-{self.version:034d}",
        )
        store = StoreState()
        if self.store_up:
            store = StoreState(
                self.store_record,
                reclaims=self.reclaims,
                server=self.server,
                asked=True,
                probes=self.probes(),
            )
        seen = {"workload": self.workload(), "template": self.template}
        values = {**seen, "children": copy.deepcopy(self.children), "store": store, "fresh": fresh, **parts}
        return observed(copy.deepcopy(self.document), **values)

    def step(self, **parts: Any) -> Plan:
        """Run one pass and carry its plan out."""
        seen = self.look(**parts)
        planned = plan(seen, SETTINGS, self.now)
        self.carry_out(planned)
        applied = Applied(published=planned.publish is not None)
        self.document["status"] = build_status(seen, planned, applied, self.now)
        return planned

    def carry_out(self, planned: Plan) -> None:
        """Write what the plan says."""
        if planned.record_write:
            self.put(planned.record_write.manifest)
        for child in planned.applies:
            self.put(child)
        for child in planned.deletes:
            del self.children[child_id(child)]
        if planned.publish:
            self.store_record = planned.publish

    def put(self, manifest: Manifest) -> None:
        """Store a child as the API server would, keeping its status."""
        self.version += 1
        live = copy.deepcopy(manifest)
        live["metadata"]["resourceVersion"] = str(self.version)
        live["metadata"]["uid"] = f"uid-{manifest['metadata']['name']}-{manifest['kind']}"
        live["metadata"]["generation"] = 1
        before = self.children.get(child_id(manifest), {})
        self.children[child_id(manifest)] = {
            **live,
            **({"status": before["status"]} if "status" in before else {}),
        }

    def settle(self) -> None:
        """Let every pod become ready and the store answer, then run passes until nothing is written."""
        self.step()
        for (kind, _), child in self.children.items():
            if kind in {"Deployment", "StatefulSet"}:
                count = child["spec"]["replicas"]
                child["status"] = {
                    "observedGeneration": 1,
                    "replicas": count,
                    "updatedReplicas": count,
                    "availableReplicas": count,
                    "readyReplicas": count,
                }
        self.store_up = True
        for _ in range(4):
            if not self.step().writes:
                return
        raise AssertionError("passes do not settle")

    def change(self, **spec: Any) -> None:
        """Edit the object's spec."""
        self.document["spec"].update(copy.deepcopy(spec))
        self.document["metadata"]["generation"] += 1

    def record(self) -> Record:
        """Return the record as it stands."""
        name = f"{self.document['metadata']['name']}-record"
        return Record.from_json(self.children["ConfigMap", name]["data"]["record.json"])

    def condition(self, kind: str) -> Manifest:
        """Return one condition of the status, empty where there is none."""
        found: Manifest = next((c for c in self.document["status"]["conditions"] if c["type"] == kind), {})
        return found


def with_value(seen: Observed, **parts: Any) -> Observed:
    """Change parts of an observed state."""
    return replace(seen, **parts)
