"""The table of rights is narrow and explained."""

from cachewright.kube.permissions import CACHE_PERMISSIONS, LEASE_PERMISSIONS, rules
from cachewright.kube.protocol import CHILD_KINDS


def test_every_right_is_named_and_explained() -> None:
    """No wildcard, no verb that escalates, no empty reason."""
    allowed = {"create", "delete", "get", "list", "patch", "update", "watch"}
    for permission in (*CACHE_PERMISSIONS, *LEASE_PERMISSIONS):
        assert set(permission.verbs) <= allowed
        assert "*" not in (permission.group, *permission.resources)
        assert permission.why.endswith(".")


def test_nothing_outside_of_namespaces_is_needed() -> None:
    """Neither namespaces, nodes nor definitions: a namespaced install needs no right in the cluster."""
    resources = {each for permission in CACHE_PERMISSIONS for each in permission.resources}
    assert not resources & {"namespaces", "nodes", "customresourcedefinitions", "clusterroles", "pods/exec"}


def test_every_kind_of_child_is_in_the_table() -> None:
    """A kind that is rendered without a right to it would be noticed on the first cluster only."""
    listed = {(each.group, resource) for each in CACHE_PERMISSIONS for resource in each.resources}
    assert {(kind.group, kind.plural) for kind in CHILD_KINDS} <= listed


def test_rules_are_what_a_role_holds() -> None:
    """The table in the words of RBAC."""
    assert rules(LEASE_PERMISSIONS)[0] == {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["create"],
    }
