"""`MemoryKube`: implements KubeClient in memory, for tests of reconcile and for whoever builds on it.

It passes the contract suite that the real client passes. What it leaves out: defaults, validation, admission,
other field managers, and every controller but garbage collection by owner.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from cachewright.errors import KubeConflict, KubeInvalid, KubeNotFound
from cachewright.kube.merge import merged
from cachewright.kube.protocol import Manifest, ResourceKind
from cachewright.kube.selectors import matches

WITHOUT_STATUS: Final = frozenset(
    {"ConfigMap", "Secret", "Event", "Lease", "NetworkPolicy"},
)
"""Kinds without a status subresource; for all others a write to the object leaves status alone."""
CREATED: Final = "2026-01-01T00:00:00Z"

Manifests = list[Manifest]
"""For annotations inside MemoryKube, where `list` is a method."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where an object is kept."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(slots=True)
class _Stored:
    live: Manifest
    applied: Manifest = field(default_factory=dict)
    """What our manager asked for last; the next apply removes what it no longer asks for."""
    applied_status: Manifest = field(default_factory=dict)


class MemoryKube:
    """Objects in a dictionary, with the API server's versions, generations, uids and conflicts."""

    def __init__(self) -> None:
        self._objects: dict[Place, _Stored] = {}
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)
        self.writes: list[tuple[str, Place]] = []
        """Every write asked for: verb and place, in order, those without effect included."""
        self.before_write: Callable[[str, Place], None] = lambda _verb, _place: None
        """Called before each write; a test raises from it to play a crash or a refusal."""

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """Read one object; None where it does not exist."""
        stored = self._objects.get(Place(kind.api_version, kind.kind, namespace, name))
        return deepcopy(stored.live) if stored else None

    async def get_metadata(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """Read one object's metadata alone."""
        found = await self.get(kind, namespace, name)
        return _metadata_only(found) if found else None

    async def list(
        self, kind: ResourceKind, namespace: str | None = None, label_selector: str = ""
    ) -> list[Manifest]:
        """Read all objects that match, ordered by namespace and name."""
        return [
            deepcopy(stored.live)
            for place, stored in sorted(self._objects.items(), key=lambda item: item[0])
            if (place.api_version, place.kind) == (kind.api_version, kind.kind)
            and namespace in (None, place.namespace)
            and matches(stored.live["metadata"].get("labels", {}), label_selector)
        ]

    async def list_metadata(
        self, kind: ResourceKind, namespace: str | None = None, label_selector: str = ""
    ) -> Manifests:
        """Read the metadata of all objects that match."""
        return [_metadata_only(found) for found in await self.list(kind, namespace, label_selector)]

    async def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply of everything but status."""
        place = self._begin("patch", manifest)
        stored = self._objects.get(place)
        if stored is None:
            return self._insert(place, manifest, applied=_wish(manifest, place))
        _check_preconditions(place, stored, manifest)
        wish = _wish(manifest, place)
        live: Manifest = merged(stored.live, stored.applied, wish)
        stored.applied = wish
        return self._update(stored, live)

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Server-side apply of status; KubeNotFound where the object does not exist."""
        place = self._begin("patch", manifest)
        stored = self._existing("patch", place)
        _check_preconditions(place, stored, manifest)
        wish = {"status": deepcopy(manifest.get("status", {}))}
        live: Manifest = merged(stored.live, stored.applied_status, wish)
        stored.applied_status = wish
        return self._update(stored, live)

    async def create(self, manifest: Manifest) -> Manifest:
        """Create; KubeConflict where the name is taken."""
        place = self._begin("create", manifest)
        if place in self._objects:
            raise KubeConflict(f"create {place}: AlreadyExists")
        return self._insert(place, manifest, applied={})

    async def dry_run(self, manifest: Manifest) -> Manifest:
        """Ask what would come of a create; there is no admission here."""
        return deepcopy(manifest)

    async def replace(self, manifest: Manifest) -> Manifest:
        """Replace; KubeConflict where `metadata.resourceVersion` is not the current one."""
        place = self._begin("update", manifest)
        stored = self._existing("update", place)
        _check_preconditions(place, stored, manifest)
        live = _wish(manifest, place)
        kept = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "resourceVersion")
        live["metadata"] |= {
            key: stored.live["metadata"][key] for key in kept if key in stored.live["metadata"]
        }
        if place.kind not in WITHOUT_STATUS and "status" in stored.live:
            live["status"] = deepcopy(stored.live["status"])
        return self._update(stored, live)

    async def delete(self, kind: ResourceKind, namespace: str, name: str, uid: str) -> None:
        """Delete the object with that uid, and what it owns; nothing happens where it is gone."""
        place = Place(kind.api_version, kind.kind, namespace, name)
        self._note("delete", place)
        stored = self._objects.get(place)
        if stored is not None and stored.live["metadata"]["uid"] == uid:
            del self._objects[place]
            self._collect(namespace, uid)

    def _collect(self, namespace: str, owner_uid: str) -> None:
        """Remove what the deleted owner was the last owner of, and what that owned in turn."""
        for place, stored in list(self._objects.items()):
            owners = stored.live["metadata"].get("ownerReferences", [])
            if place.namespace == namespace and [each["uid"] for each in owners] == [owner_uid]:
                del self._objects[place]
                self._collect(namespace, stored.live["metadata"]["uid"])

    def _begin(self, verb: str, manifest: Manifest) -> Place:
        metadata = manifest["metadata"]
        place = Place(manifest["apiVersion"], manifest["kind"], metadata["namespace"], metadata["name"])
        self._note(verb, place)
        if verb == "patch" and metadata.get("managedFields"):
            raise KubeInvalid(f"patch {place}: metadata.managedFields must be nil")
        return place

    def _note(self, verb: str, place: Place) -> None:
        self.before_write(verb, place)
        self.writes.append((verb, place))

    def _existing(self, verb: str, place: Place) -> _Stored:
        if place not in self._objects:
            raise KubeNotFound(f"{verb} {place}: NotFound")
        return self._objects[place]

    def _insert(self, place: Place, manifest: Manifest, applied: Manifest) -> Manifest:
        live = _wish(manifest, place)
        live["metadata"] |= {
            "uid": f"00000000-0000-4000-8000-{next(self._uids):012}",
            "creationTimestamp": CREATED,
            "resourceVersion": str(next(self._versions)),
        }
        if _has_generation(live):
            live["metadata"]["generation"] = 1
        self._objects[place] = _Stored(live, applied)
        return deepcopy(live)

    def _update(self, stored: _Stored, live: Manifest) -> Manifest:
        if live != stored.live:
            if _has_generation(live) and _wanted(live) != _wanted(stored.live):
                live["metadata"]["generation"] = stored.live["metadata"].get("generation", 0) + 1
            live["metadata"]["resourceVersion"] = str(next(self._versions))
            stored.live = live
        return deepcopy(stored.live)


def _wish(manifest: Manifest, place: Place) -> Manifest:
    """Return what a write may say: no status where that is a subresource, no field of the server's."""
    wish = deepcopy(manifest)
    if place.kind not in WITHOUT_STATUS:
        wish.pop("status", None)
    for key in ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"):
        wish["metadata"].pop(key, None)
    return wish


def _check_preconditions(place: Place, stored: _Stored, manifest: Manifest) -> None:
    for key in ("resourceVersion", "uid"):
        wanted = manifest["metadata"].get(key)
        if wanted and wanted != stored.live["metadata"][key]:
            raise KubeConflict(
                f"{place}: Conflict: metadata.{key} is {stored.live['metadata'][key]}, not {wanted}"
            )


def _metadata_only(manifest: Manifest) -> Manifest:
    return {
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": manifest["metadata"],
    }


def _has_generation(manifest: Manifest) -> bool:
    return "spec" in manifest and manifest["kind"] not in WITHOUT_STATUS - {"NetworkPolicy"} | {"Service"}


def _wanted(manifest: Manifest) -> Manifest:
    return {key: value for key, value in manifest.items() if key not in ("metadata", "status")}
