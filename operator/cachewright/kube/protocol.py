"""What the operator needs of the Kubernetes API, as a Protocol over plain JSON objects.

`kube.client` implements it on `kubernetes.aio`, `kube.memory` in memory; one contract suite runs on both.
All methods raise KubeError's subclasses; "not found" on reads is None, not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Manifest = dict[str, Any]
"""A Kubernetes object as JSON."""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """Where a kind of object lives in the API."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """API group; empty for the core group."""
        group, _, _ = self.api_version.rpartition("/")
        return group


INFERENCE_CACHES = ResourceKind("cachewright.dev/v1alpha1", "InferenceCache", "inferencecaches")
CONFIG_MAPS = ResourceKind("v1", "ConfigMap", "configmaps")
SECRETS = ResourceKind("v1", "Secret", "secrets")
SERVICES = ResourceKind("v1", "Service", "services")
EVENTS = ResourceKind("events.k8s.io/v1", "Event", "events")
PODS = ResourceKind("v1", "Pod", "pods")
DEPLOYMENTS = ResourceKind("apps/v1", "Deployment", "deployments")
STATEFUL_SETS = ResourceKind("apps/v1", "StatefulSet", "statefulsets")
VOLUME_CLAIMS = ResourceKind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
JOBS = ResourceKind("batch/v1", "Job", "jobs")
POD_DISRUPTION_BUDGETS = ResourceKind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICIES = ResourceKind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
LEASES = ResourceKind("coordination.k8s.io/v1", "Lease", "leases")

CLUSTERS = ResourceKind("postgresql.cnpg.io/v1", "Cluster", "clusters")
DATABASES = ResourceKind("postgresql.cnpg.io/v1", "Database", "databases")

CHILD_KINDS: tuple[ResourceKind, ...] = (
    CONFIG_MAPS,
    SECRETS,
    SERVICES,
    VOLUME_CLAIMS,
    STATEFUL_SETS,
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
)
"""Every kind that we make for an InferenceCache, of those that every API server knows."""

CLOUDNATIVE_PG_KINDS: tuple[ResourceKind, ...] = (CLUSTERS, DATABASES)
"""Kinds of CloudNativePG's that we make where an object asks for it; an API server may not know them."""

STACK_KINDS: tuple[ResourceKind, ...] = (
    ResourceKind("production-stack.vllm.ai/v1alpha1", "VLLMRuntime", "vllmruntimes"),
    ResourceKind("serving.kserve.io/v1alpha2", "LLMInferenceService", "llminferenceservices"),
    ResourceKind("serving.kserve.io/v1alpha1", "LLMInferenceService", "llminferenceservices"),
)
"""Kinds of stacks that run engines, with fields for their words; they may not exist."""

PATCHED_KINDS: Mapping[tuple[str, str], ResourceKind] = {
    (kind.api_version, kind.kind): kind for kind in (DEPLOYMENTS, STATEFUL_SETS, *STACK_KINDS)
}
"""Workloads of other people whose engines' words may be changed, by apiVersion and kind."""


def patched_kinds(*, engine_stacks: bool) -> tuple[ResourceKind, ...]:
    """Return the kinds that an installation may have patched, with or without rights to those of stacks."""
    return (DEPLOYMENTS, STATEFUL_SETS, *(STACK_KINDS if engine_stacks else ()))


class KubeClient(Protocol):
    """The verbs that reconcile uses."""

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """Read one object; None where it does not exist."""

    async def get_metadata(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """Read one object's metadata alone (PartialObjectMetadata); a Secret's content stays unread."""

    async def list(
        self, kind: ResourceKind, namespace: str | None = None, label_selector: str = ""
    ) -> list[Manifest]:
        """Read all objects that match, in pages; `namespace` None means every namespace."""

    async def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply with our field manager, taking over conflicting fields."""

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Server-side apply of the status subresource."""

    async def create(self, manifest: Manifest) -> Manifest:
        """Create; KubeConflict where the name is taken."""

    async def dry_run(self, manifest: Manifest) -> Manifest:
        """Ask what would come of a create, admission included; nothing is stored."""

    async def replace(self, manifest: Manifest) -> Manifest:
        """Replace; KubeConflict where `metadata.resourceVersion` is not the current one."""

    async def delete(self, kind: ResourceKind, namespace: str, name: str, uid: str) -> None:
        """Delete in the background, only if the object still has that uid; gone already is no error."""
