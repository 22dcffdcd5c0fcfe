"""`KubeApi`: implements KubeClient over one connection, as paths and queries of the Kubernetes API.

`controller` makes one for the process; reconcile, the lease and events call it through the Protocol.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from cachewright.api.names import FIELD_MANAGER
from cachewright.errors import KubeConflict, KubeInvalid, KubeNotFound, KubeUnavailable
from cachewright.kube.connection import WATCH_SERVER_TIMEOUT_SECONDS, KubeConnection, Request
from cachewright.kube.failures import ListExpired
from cachewright.kube.protocol import (
    CHILD_KINDS,
    CLOUDNATIVE_PG_KINDS,
    EVENTS,
    INFERENCE_CACHES,
    JOBS,
    LEASES,
    PODS,
    STACK_KINDS,
    Manifest,
    ResourceKind,
)

PAGE_SIZE: Final = 250
"""Objects a page: bounds the memory that one answer takes."""
MAX_RESTARTS: Final = 3
"""A list whose continue token expired (410) starts again this many times."""
APPLY_PATCH: Final = "application/apply-patch+yaml"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Manifests = list[Manifest]
"""For annotations inside KubeApi, where `list` is a method."""

KINDS: Final[Mapping[tuple[str, str], ResourceKind]] = {
    (kind.api_version, kind.kind): kind
    for kind in (
        *(INFERENCE_CACHES, EVENTS, JOBS, PODS, LEASES),
        *(*CHILD_KINDS, *CLOUDNATIVE_PG_KINDS, *STACK_KINDS),
    )
}
"""Every kind that may be written, by apiVersion and kind."""


class KubeApi:
    """The verbs of KubeClient on a real API server, and watches."""

    def __init__(self, connection: KubeConnection, page_size: int = PAGE_SIZE) -> None:
        self._connection = connection
        self._page_size = page_size

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """Read one object; None where it does not exist."""
        return await self._read(kind, namespace, name, "application/json")

    async def get_metadata(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """Read one object's metadata alone."""
        return await self._read(kind, namespace, name, METADATA_ONLY)

    async def list(
        self, kind: ResourceKind, namespace: str | None = None, label_selector: str = ""
    ) -> list[Manifest]:
        """Read all objects that match, in pages; KubeNotFound where the API server does not know the kind."""
        return await self._list(kind, namespace, label_selector, "application/json")

    async def list_metadata(
        self, kind: ResourceKind, namespace: str | None = None, label_selector: str = ""
    ) -> Manifests:
        """Read the metadata of all objects that match, in pages."""
        return await self._list(kind, namespace, label_selector, METADATA_LIST_ONLY)

    async def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply with our field manager, taking over conflicting fields."""
        return await self._apply(manifest, "")

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Server-side apply of the status subresource."""
        return await self._apply(manifest, "/status")

    async def create(self, manifest: Manifest) -> Manifest:
        """Create; KubeConflict where the name is taken."""
        kind, namespace, name = _identity(manifest)
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        path = collection_path(kind, namespace)
        return await self._write(
            Request("create", kind.kind, path, f"{namespace}/{name}", query=query, body=manifest)
        )

    async def dry_run(self, manifest: Manifest) -> Manifest:
        """Ask what would come of a create, admission included; nothing is stored."""
        kind, namespace, name = _identity(manifest)
        query = {"dryRun": "All", "fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        path = collection_path(kind, namespace)
        return await self._write(
            Request("create", kind.kind, path, f"{namespace}/{name}", query=query, body=manifest)
        )

    async def replace(self, manifest: Manifest) -> Manifest:
        """Replace; KubeConflict where `metadata.resourceVersion` is not the current one."""
        kind, namespace, name = _identity(manifest)
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        path = f"{collection_path(kind, namespace)}/{name}"
        return await self._write(
            Request("update", kind.kind, path, f"{namespace}/{name}", query=query, body=manifest)
        )

    async def delete(self, kind: ResourceKind, namespace: str, name: str, uid: str) -> None:
        """Delete in the background, only the object with that uid; nothing happens where it is gone."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        path = f"{collection_path(kind, namespace)}/{name}"
        try:
            await self._connection.send(
                Request("delete", kind.kind, path, f"{namespace}/{name}", body=options)
            )
        except (KubeNotFound, KubeConflict):
            # Conflict: another object has the name by now, so the one that was meant is gone.
            return

    async def watch(
        self, kind: ResourceKind, namespace: str | None, *, field_selector: str = "", label_selector: str = ""
    ) -> AsyncGenerator[tuple[str, Manifest]]:
        """Yield (type, object) of one watch, until it ends: what exists, as ADDED, then each change.

        Raises KubeError's subclasses; an expired watch ends as if the server had closed it.
        The caller closes it (`aclosing`), which closes the connection.
        """
        query: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_SERVER_TIMEOUT_SECONDS,
        }
        query |= _selectors(label_selector, field_selector)
        request = Request("watch", kind.kind, collection_path(kind, namespace), namespace or "*", query=query)
        async with aclosing(self._connection.stream(request)) as events:
            async for event in events:
                if event["type"] == "ERROR":
                    status = event["object"]
                    if status.get("code") == HTTPStatus.GONE:
                        return
                    said = status.get("message", status.get("reason"))
                    raise KubeUnavailable(f"{request.description}: {said}")
                if event["type"] != "BOOKMARK":
                    yield event["type"], event["object"]

    async def _read(self, kind: ResourceKind, namespace: str, name: str, accept: str) -> Manifest | None:
        path = f"{collection_path(kind, namespace)}/{name}"
        try:
            found: Manifest = await self._connection.send(
                Request("get", kind.kind, path, f"{namespace}/{name}", accept=accept)
            )
        except KubeNotFound:
            return None
        return found

    async def _list(
        self, kind: ResourceKind, namespace: str | None, label_selector: str, accept: str
    ) -> Manifests:
        query = _selectors(label_selector, "") | {"limit": self._page_size}
        path = collection_path(kind, namespace)
        first = Request("list", kind.kind, path, namespace or "*", query=query, accept=accept)
        for _ in range(MAX_RESTARTS):
            try:
                return [item async for item in self._pages(first)]
            except ListExpired:
                continue
        return [item async for item in self._pages(first)]

    async def _pages(self, first: Request) -> AsyncIterator[Manifest]:
        request = first
        while True:
            page = await self._connection.send(request)
            # Items of a list of built-in objects carry no kind of their own.
            own = {"apiVersion": page["apiVersion"], "kind": page["kind"].removesuffix("List")}
            # An empty list of metadata comes as null.
            for item in page["items"] or []:
                yield own | item
            token = page["metadata"].get("continue")
            if not token:
                return
            request = replace(first, query={**(first.query or {}), "continue": token})

    async def _apply(self, manifest: Manifest, subresource: str) -> Manifest:
        kind, namespace, name = _identity(manifest)
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        path = f"{collection_path(kind, namespace)}/{name}{subresource}"
        return await self._write(
            Request(
                "patch",
                kind.kind,
                path,
                f"{namespace}/{name}",
                query=query,
                body=manifest,
                content_type=APPLY_PATCH,
            )
        )

    async def _write(self, request: Request) -> Manifest:
        written: Manifest = await self._connection.send(request)
        return written


def collection_path(kind: ResourceKind, namespace: str | None) -> str:
    """Return the URL path of a kind's collection, in one namespace or in all."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    place = f"/namespaces/{namespace}" if namespace is not None and kind.namespaced else ""
    return f"{root}{place}/{kind.plural}"


def _identity(manifest: Manifest) -> tuple[ResourceKind, str, str]:
    kind = KINDS.get((manifest["apiVersion"], manifest["kind"]))
    if kind is None:
        raise KubeInvalid(f"{manifest['apiVersion']} {manifest['kind']} is no kind that the operator writes")
    metadata = manifest["metadata"]
    return kind, metadata["namespace"], metadata["name"]


def _selectors(label_selector: str, field_selector: str) -> dict[str, str | int]:
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in given.items() if value}
