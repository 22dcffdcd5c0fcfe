"""The rights that the chart grants are exactly those that the code uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cachewright.kube.permissions import CACHE_PERMISSIONS, LEASE_PERMISSIONS, STACK_PERMISSIONS, Permission
from tests.chart.helm import Helm, Manifest, of_kind

Right = tuple[str, str, str]
"""(API group, resource, verb)."""

NAMESPACED: dict[str, Any] = {"watchNamespaces": ["ml", "search"], "replicas": 2}


def granted(role: Manifest) -> set[Right]:
    """Flatten a role into single rights."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(permissions: Iterable[Permission]) -> set[Right]:
    """Flatten the code's table into single rights."""
    return {
        (permission.group, resource, verb)
        for permission in permissions
        for resource in permission.resources
        for verb in permission.verbs
    }


def named(manifests: list[Manifest], kind: str, name: str) -> list[Manifest]:
    """Pick the objects of one kind and name."""
    return [manifest for manifest in of_kind(manifests, kind) if manifest["metadata"]["name"] == name]


def test_the_cluster_role_equals_the_table(helm: Helm) -> None:
    """A cluster-wide install may do what the table lists, no less and no more."""
    (role,) = named(helm.manifests(), "ClusterRole", "cachewright-system-cw-cachewright")
    assert granted(role) == needed(CACHE_PERMISSIONS)


def test_each_namespaced_role_equals_the_table(helm: Helm) -> None:
    """A namespaced install may do the same, in each watched namespace."""
    roles = named(helm.manifests(NAMESPACED), "Role", "cw-cachewright")
    assert [role["metadata"]["namespace"] for role in roles] == ["ml", "search"]
    for role in roles:
        assert granted(role) == needed(CACHE_PERMISSIONS)


def test_rights_to_stacks_are_granted_on_request(helm: Helm) -> None:
    """With them the operator is told that it may use them."""
    manifests = helm.manifests({"prefixCaching": {"stacks": True}})
    (role,) = named(manifests, "ClusterRole", "cachewright-system-cw-cachewright")
    assert granted(role) == needed((*CACHE_PERMISSIONS, *STACK_PERMISSIONS))
    (deployment,) = of_kind(manifests, "Deployment")
    assert "--engine-stacks" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_the_election_role_equals_the_table_and_names_the_lease(helm: Helm) -> None:
    """In its own namespace the operator may use one Lease; only `create` cannot be narrowed to a name."""
    manifests = helm.manifests()
    (role,) = named(manifests, "Role", "cw-cachewright-leader-election")
    assert role["metadata"]["namespace"] == "cachewright-system"
    assert granted(role) == needed(LEASE_PERMISSIONS)
    for rule in role["rules"]:
        assert rule["verbs"] == ["create"] or rule["resourceNames"] == ["cw-cachewright"]


def test_a_namespaced_install_has_no_cluster_wide_object_but_the_crd(helm: Helm) -> None:
    """Whoever rules over a few namespaces can install the chart there, once the CRD is in place."""
    cluster_wide = [m["kind"] for m in helm.manifests(NAMESPACED) if "namespace" not in m["metadata"]]
    assert cluster_wide == ["CustomResourceDefinition"]
    without_crd = helm.manifests({**NAMESPACED, "crds": {"enabled": False}})
    assert all("namespace" in manifest["metadata"] for manifest in without_crd)
    namespaces = {m["metadata"]["namespace"] for m in without_crd if m["kind"] in {"Role", "RoleBinding"}}
    assert namespaces == {"ml", "search", "cachewright-system"}


def test_every_binding_leads_from_the_operators_account_to_a_rendered_role(helm: Helm) -> None:
    """No binding refers to a role that is not there, or to another account."""
    for values in ({}, NAMESPACED):
        manifests = helm.manifests(values)
        (account,) = of_kind(manifests, "ServiceAccount")
        bindings = of_kind(manifests, "RoleBinding") + of_kind(manifests, "ClusterRoleBinding")
        assert len(bindings) == (3 if values else 2)
        for binding in bindings:
            (role,) = named(manifests, binding["roleRef"]["kind"], binding["roleRef"]["name"])[:1]
            assert binding["metadata"].get("namespace") in {role["metadata"].get("namespace"), "search"}
            assert binding["subjects"] == [
                {
                    "kind": "ServiceAccount",
                    "name": account["metadata"]["name"],
                    "namespace": account["metadata"]["namespace"],
                }
            ]
        (deployment,) = of_kind(manifests, "Deployment")
        pod = deployment["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == account["metadata"]["name"]


def test_namespace_editors_may_edit_caches_and_viewers_may_see_them(helm: Helm) -> None:
    """The cluster's own roles view, edit and admin gain InferenceCaches, and nothing else."""
    manifests = helm.manifests()
    (view,) = named(manifests, "ClusterRole", "cachewright-system-cw-cachewright-view")
    (edit,) = named(manifests, "ClusterRole", "cachewright-system-cw-cachewright-edit")
    aggregate = "rbac.authorization.k8s.io/aggregate-to-"
    for role, targets in [(view, {"view", "edit", "admin"}), (edit, {"edit", "admin"})]:
        labels = role["metadata"]["labels"]
        assert {label.removeprefix(aggregate) for label in labels if label.startswith(aggregate)} == targets
        assert {right[:2] for right in granted(role)} == {("cachewright.dev", "inferencecaches")}
    assert {verb for _, _, verb in granted(view)} == {"get", "list", "watch"}
    assert {verb for _, _, verb in granted(edit)} == {
        "create",
        "delete",
        "deletecollection",
        "patch",
        "update",
    }


def test_no_role_is_made_when_roles_are_made_elsewhere(helm: Helm) -> None:
    """`rbac.create: false` leaves all roles and bindings to whoever installs."""
    kinds = {manifest["kind"] for manifest in helm.manifests({"rbac": {"create": False}})}
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
