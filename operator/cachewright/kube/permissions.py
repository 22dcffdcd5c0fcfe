"""The one table of what the operator asks of the Kubernetes API; pure data.

The chart renders its roles from the same facts and a test compares the two; the API tests run the operator
with nothing but these rights. Discovery (`/api`, `/apis`) is open to every client and not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cachewright.api.names import GROUP, PLURAL


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on resources of one API group, and what for."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str


OWNED_VERBS: Final = ("create", "delete", "get", "list", "patch", "watch")
"""Children: read to compare, watched to repair, applied (patch; create where missing), deleted by label."""

CACHE_PERMISSIONS: Final[tuple[Permission, ...]] = (
    Permission(
        GROUP,
        (PLURAL,),
        ("get", "list", "patch", "watch"),
        "The objects that declare caches; patch is for the finalizer of `deletionPolicy: Delete` alone.",
    ),
    Permission(GROUP, (f"{PLURAL}/status",), ("patch",), "What has been seen, by server-side apply."),
    Permission(
        GROUP,
        (f"{PLURAL}/finalizers",),
        ("update",),
        "Owner references that block the owner's deletion, where an admission plugin checks who sets them.",
    ),
    Permission(
        "",
        ("configmaps",),
        (*OWNED_VERBS, "update"),
        "Rendered configuration; update is the record's compare-and-swap.",
    ),
    Permission(
        "",
        ("secrets",),
        OWNED_VERBS,
        "Generated credentials, and Secrets that objects refer to; watched by label, never all.",
    ),
    Permission("", ("services",), OWNED_VERBS, "The store's and the gateway's names."),
    Permission("", ("persistentvolumeclaims",), OWNED_VERBS, "Volumes of managed stores."),
    Permission(
        "apps",
        ("deployments", "statefulsets"),
        (*OWNED_VERBS, "update"),
        "The gateway and the store; update gives an engine's workload back that `delivery: Patch` changed.",
    ),
    Permission(
        "postgresql.cnpg.io",
        ("clusters", "databases"),
        OWNED_VERBS,
        "PostgreSQL that CloudNativePG runs, where an object asks for it.",
    ),
    Permission(
        "",
        ("pods",),
        ("list", "watch"),
        "Engines' pods, of workloads that objects name: what they run decides what may be cached;"
        " and stores' pods, whose restarts are told to gateways.",
    ),
    Permission(
        "",
        ("pods",),
        ("create",),
        "A pod that is never stored (`dryRun=All`): it proves that engines' pods are edited as they should.",
    ),
    Permission(
        "batch",
        ("jobs",),
        ("create", "delete", "get"),
        "Jobs that remove what a cache gave up: one without gateways, or one that is deleted.",
    ),
    Permission("policy", ("poddisruptionbudgets",), OWNED_VERBS, "Keep a gateway pod through node drains."),
    Permission(
        "networking.k8s.io", ("networkpolicies",), OWNED_VERBS, "Who may reach the store and the gateway."
    ),
    Permission("events.k8s.io", ("events",), ("create",), "Errors, said beside the object they concern."),
)
"""Needed in every namespace whose InferenceCaches are served."""

STACK_PERMISSIONS: Final[tuple[Permission, ...]] = (
    Permission(
        "production-stack.vllm.ai",
        ("vllmruntimes",),
        ("get", "list", "patch", "update"),
        "The words of an engine that vLLM's production stack runs, under `delivery: Patch`.",
    ),
    Permission(
        "serving.kserve.io",
        ("llminferenceservices",),
        ("get", "list", "patch", "update"),
        "The words of an engine that KServe runs, under `delivery: Patch`.",
    ),
)
"""Needed beside them where such objects are to be patched; the chart grants them on request."""

LEASE_PERMISSIONS: Final[tuple[Permission, ...]] = (
    Permission("coordination.k8s.io", ("leases",), ("create",), "The Lease, where it does not exist yet."),
    Permission(
        "coordination.k8s.io",
        ("leases",),
        ("get", "update", "watch"),
        "Holding the Lease, and seeing its renewals; narrowed to its name.",
    ),
)
"""Needed in the namespace of the Lease; all verbs but create may be narrowed to its name."""


def rules(permissions: tuple[Permission, ...]) -> list[dict[str, Any]]:
    """Return the permissions as the `rules` of a Role or ClusterRole."""
    return [
        {"apiGroups": [each.group], "resources": list(each.resources), "verbs": list(each.verbs)}
        for each in permissions
    ]
