"""Users of the test API server who may do just what the table of permissions says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cachewright.kube.permissions import CACHE_PERMISSIONS, LEASE_PERMISSIONS, Permission, rules
from e2e.cluster.apiserver import ApiServer

RBAC = "rbac.authorization.k8s.io"
LEASE_NAME = "cachewright-operator"


def user_of_namespace(server: ApiServer, user: str, namespace: str) -> Path:
    """Make a user with the table's rights in one namespace, Lease included, and return its kubeconfig."""
    grant(server, user, CACHE_PERMISSIONS, namespace)
    _grant_lease(server, user, namespace)
    return server.user_kubeconfig(user)


def user_of_cluster(server: ApiServer, user: str, lease_namespace: str) -> Path:
    """Make a user with the table's rights in every namespace, and return its kubeconfig."""
    grant(server, user, CACHE_PERMISSIONS, None)
    _grant_lease(server, user, lease_namespace)
    return server.user_kubeconfig(user)


def _grant_lease(server: ApiServer, user: str, namespace: str) -> None:
    create, rest = rules(LEASE_PERMISSIONS)
    _bind(server, f"{user}-lease", user, [create, rest | {"resourceNames": [LEASE_NAME]}], namespace)


def grant(server: ApiServer, user: str, permissions: tuple[Permission, ...], namespace: str | None) -> None:
    """Give a user these rights, in one namespace or in all."""
    _bind(server, user, user, rules(permissions), namespace)


def _bind(
    server: ApiServer, name: str, user: str, role_rules: list[dict[str, Any]], namespace: str | None
) -> None:
    prefix = "" if namespace else "Cluster"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    role = {"apiVersion": f"{RBAC}/v1", "kind": f"{prefix}Role", "metadata": metadata, "rules": role_rules}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{prefix}RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
    for manifest in (role, binding):
        server.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
