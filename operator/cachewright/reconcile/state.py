"""What one pass has seen and what it wants to write, as plain values. Pure.

`observe` fills an `Observed`, `plan` turns it into a `Plan`, `apply` carries that out into an `Applied`,
and `status` tells all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from cachewright.api.conditions import Reason
from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import ANNOTATION_WORKLOAD_SERVES
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import Record
from cachewright.reconcile.prefix.patch_note import PatchSeen
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.references import Reference
from cachewright.reconcile.workload import WorkloadSeen
from cachewright.stores.probes import ProbeReport
from cachewright.stores.protocols import ServerFacts
from cachewright.stores.reclaim import ReclaimReport, SweepReport

Manifest = dict[str, Any]

ChildId = tuple[str, str]
"""(kind, name) of a child within the object's namespace."""


class SecretProblem(StrEnum):
    """Why a referenced Secret cannot be used."""

    MISSING = "missing"
    UNLABELLED = "unlabelled"
    KEY_MISSING = "key missing"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class SecretUse:
    """One reference from the spec to a key of a user's Secret."""

    field_path: str
    """Where the reference stands, such as `spec.upstream.apiKeySecretRef`."""
    mount: str
    """Name of the gateway's volume that carries it."""
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class SecretState:
    """What was found behind a reference."""

    use: SecretUse
    problem: SecretProblem | None = None
    value: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class StoreState:
    """What the store answered when it was asked for its copy of the record."""

    record: Record | None = None
    """Its copy; None where it holds none or did not answer."""
    error: str | None = None
    """Why it did not answer; None where it did, or was not asked."""
    reclaims: Mapping[Keyspace, ReclaimReport] = field(default_factory=dict)
    """What became of keyspaces that are being deleted."""
    asked: bool = False
    """False while there is nothing to ask yet: no pod, no URL."""
    reason: Reason = Reason.STORE_UNREACHABLE
    """What kind of trouble `error` tells of."""
    probes: Mapping[str, ProbeReport] = field(default_factory=dict)
    """What gateways found when they tried their layers, by layer."""
    probe_request: str = ""
    """What gateways are asked to try their layers for."""
    sweep: SweepReport | None = None
    """The last sweep over the cache's keys; None where none is known."""
    server: ServerFacts | None = None
    """What it says of itself; None where it was not asked, or may not be."""

    @property
    def filled(self) -> float | None:
        """Share of its memory limit that is in use; None where it has none, or does not tell."""
        if self.server is None or not self.server.max_bytes:
            return None
        return self.server.used_bytes / self.server.max_bytes


@dataclass(frozen=True, slots=True)
class StoreFinding:
    """What is wrong with one of an object's stores."""

    store: str
    """Its product, such as Qdrant."""
    reason: Reason
    message: str
    serves: bool = False
    """True where the store does its part all the same, and a person should know."""


@dataclass(frozen=True, slots=True)
class FreshSecrets:
    """Random values drawn for this pass; used only where nothing was generated before."""

    digest_key: str = field(repr=False)
    admin_token: str = field(repr=False)
    gateway_password: str = field(repr=False)
    operator_password: str = field(repr=False)
    qdrant_api_key: str = field(repr=False)
    postgres_password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Foreign:
    """An object under a name we need that is not ours."""

    whose: str
    """Whose it is, as the end of a sentence."""
    leaving: bool = False
    """True where garbage collection is about to remove it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason why something is not as it should be, and a sentence for people."""

    reason: Reason
    message: str
    stalled: bool
    """True when nothing will change until a person acts."""


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """What CloudNativePG runs for this object, beside the Cluster and the Database among its children."""

    problem: Finding | None = None
    """Why nothing could be looked at."""
    volumes: tuple[Manifest, ...] = ()
    """Its volume claims, which are CloudNativePG's."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything a pass reads, read once."""

    document: Manifest
    """The object as the API server gave it."""
    children: dict[ChildId, Manifest]
    """Objects that this object owns, by kind and name."""
    foreign: dict[ChildId, Foreign]
    """Objects that stand under a name we need and are not ours."""
    secrets: tuple[SecretState, ...]
    store: StoreState
    fresh: FreshSecrets
    workload: WorkloadSeen | None = None
    """The pods that run the model; None where nothing is fenced."""
    cluster: ClusterSeen | None = None
    """PostgreSQL as CloudNativePG runs it; None where it does not."""
    prefix: PrefixSeen | None = None
    """The engine whose prefix cache is looked after; None without that layer."""
    patched: PatchSeen | None = None
    """A workload whose pod template was patched; None where none is noted."""
    template: str = ""
    """SHA-256 of the prompt template that a ConfigMap holds; empty where there is none."""
    rivals: tuple[str, ...] = ()
    """Older objects that hold the cache id which this one wants to adopt."""
    checks: tuple[StoreFinding, ...] = ()
    """What is wrong with the stores beside Redis."""
    store_pods: str = ""
    """Digest of the ready pods of managed stores; empty where there are none."""
    must_ask: bool = False
    """True where something may fail that no event tells of: it is seen only by asking."""
    watched: frozenset[Reference] = frozenset()
    """What was looked at beyond the object's own children, and must be watched for changes."""

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.document["metadata"]["name"])

    @property
    def serves(self) -> str:
        """What a person vouches for by annotation; empty where there is none."""
        annotations = self.document["metadata"].get("annotations") or {}
        return str(annotations.get(ANNOTATION_WORKLOAD_SERVES, ""))

    @property
    def generation(self) -> int:
        """Generation of the spec that was seen."""
        return int(self.document["metadata"].get("generation", 0))


@dataclass(frozen=True, slots=True)
class RecordWrite:
    """The record to be written."""

    record: Record
    manifest: Manifest
    """The ConfigMap that says so; its `resourceVersion` is the one replaced."""

    @property
    def is_new(self) -> bool:
        """Tell whether there is no ConfigMap yet."""
        return "resourceVersion" not in self.manifest["metadata"]


@dataclass(frozen=True, slots=True)
class PrefixChildren:
    """What an engine's prefix cache needs."""

    applies: tuple[Manifest, ...] = ()
    keeps: frozenset[ChildId] = frozenset()
    """Children that are left as they are."""
    stamp: Manifest | None = None
    """To be applied to the engine's workload, which is its user's."""
    release: Manifest | None = None
    """To replace that workload by, so that nothing of it is ours any more."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One child, or the engine's workload, that is going to be another."""

    kind: str
    name: str
    effect: Literal["Create", "Live", "Roll", "Remove"]
    fields: tuple[str, ...] = ()
    """Paths of the fields that differ; none where a field is only taken out."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write, in order: finalizer, digest key, record, the store's copy, children, stamp, removals."""

    blocked: Finding | None = None
    """Set where nothing may be written; the last good state keeps running."""
    cache: InferenceCache | None = None
    """The object as parsed; None where it does not parse."""
    record: Record | None = None
    """The record as it will stand after the pass; None where there is none yet."""
    finalizer: Manifest | None = None
    """To be applied to the object itself, so that its finalizer is as wanted."""
    keys: Manifest | None = None
    """Which of `applies` holds a digest key that was drawn in this pass: the record's keyspaces are named by
    it, so it goes first. Else each process that dies in between would name them anew."""
    record_write: RecordWrite | None = None
    applies: tuple[Manifest, ...] = ()
    stamp: Manifest | None = None
    """To be applied to the engine's workload; it rolls the engine's pods."""
    release: Manifest | None = None
    """To replace the engine's workload by, which is its user's alone from then on; it rolls nothing."""
    deletes: tuple[Manifest, ...] = ()
    janitor: Manifest | None = None
    """The Job that reclaims what was given up; None where gateways do, or nothing is left to do."""
    publish: Record | None = None
    beat: Record | None = None
    """The record under which gateways may go on writing; None where they need no heartbeat, or get none."""
    probe_request: str | None = None
    """What to ask gateways to try their layers for; None where they were asked already."""
    changes: tuple[PlannedChange, ...] = ()
    """What of this a person wants to know beforehand; where the object is suspended, what would be done if
    it were not."""
    due: datetime | None = None
    """When something is to be done although nothing will have happened; None: never."""

    @property
    def writes(self) -> bool:
        """Tell whether the plan changes anything but status and the heartbeat."""
        children = self.applies or self.stamp or self.release or self.deletes
        return bool(self.finalizer or self.record_write or children or self.publish)


@dataclass(frozen=True, slots=True)
class Applied:
    """How carrying out the plan went."""

    error: Finding | None = None
    """The first write that failed; later ones were not tried."""
    store_error: str | None = None
    """Why the store's copy could not be written."""
    store_reason: Reason = Reason.STORE_UNREACHABLE
    """What kind of trouble that is."""
    published: bool = False
    """True where the store confirmed that it holds the record."""
    beats: bool = False
    """True where the store took the heartbeat."""
