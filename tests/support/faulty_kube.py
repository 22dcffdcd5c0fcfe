"""A Kubernetes client that counts writes and dies with them, in place of an operator that is killed."""

from __future__ import annotations

from dataclasses import dataclass, field

from cachewright.kube.protocol import KubeClient, Manifest, ResourceKind


class ProcessKilledError(Exception):
    """Stands for the operator's death right after a write."""


@dataclass
class FaultyKube:
    """Passes everything on to another client, counts writes, and dies after a given number of them."""

    api: KubeClient
    writes: list[str] = field(default_factory=list)
    dies_after: int | None = None

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """Pass on."""
        return await self.api.get(kind, namespace, name)

    async def get_metadata(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """Pass on."""
        return await self.api.get_metadata(kind, namespace, name)

    async def list(
        self, kind: ResourceKind, namespace: str | None = None, label_selector: str = ""
    ) -> list[Manifest]:
        """Pass on."""
        return await self.api.list(kind, namespace, label_selector)

    async def apply(self, manifest: Manifest) -> Manifest:
        """Pass on and count."""
        return self._written("apply", await self.api.apply(manifest))

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Pass on and count."""
        return self._written("apply_status", await self.api.apply_status(manifest))

    async def create(self, manifest: Manifest) -> Manifest:
        """Pass on and count."""
        return self._written("create", await self.api.create(manifest))

    async def dry_run(self, manifest: Manifest) -> Manifest:
        """Pass on; nothing is written."""
        return await self.api.dry_run(manifest)

    async def replace(self, manifest: Manifest) -> Manifest:
        """Pass on and count."""
        return self._written("replace", await self.api.replace(manifest))

    async def delete(self, kind: ResourceKind, namespace: str, name: str, uid: str) -> None:
        """Pass on and count."""
        await self.api.delete(kind, namespace, name, uid)
        self._written("delete", {"kind": kind.kind, "metadata": {"name": name}})

    def _written(self, verb: str, manifest: Manifest) -> Manifest:
        self.writes.append(f"{verb} {manifest['kind']} {manifest['metadata'].get('name', '')}")
        if self.dies_after is not None and len(self.writes) >= self.dies_after:
            raise ProcessKilledError(self.writes[-1])
        return manifest
