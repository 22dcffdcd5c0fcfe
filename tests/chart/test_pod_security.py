"""The check for the restricted profile, on pods that break it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.chart.pod_security import PodSpec, violations

RESTRICTED: PodSpec = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "c",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        }
    ],
    "volumes": [{"name": "tmp", "emptyDir": {}}],
}


def test_a_restricted_pod_has_no_violations() -> None:
    """A pod that keeps every rule gives an empty list."""
    assert violations(RESTRICTED) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda pod: pod.update(hostNetwork=True), "hostNetwork is set"),
        (lambda pod: pod["volumes"].append({"name": "h", "hostPath": {"path": "/"}}), "hostPath"),
        (lambda pod: pod["securityContext"].pop("runAsNonRoot"), "may run as root"),
        (lambda pod: pod["securityContext"].update(runAsUser=0), "runs as uid 0"),
        (lambda pod: pod["securityContext"].pop("seccompProfile"), "no seccomp profile"),
        (lambda pod: pod["securityContext"].update(sysctls=[{"name": "a", "value": "b"}]), "sysctls"),
        (lambda pod: pod["containers"][0]["securityContext"].pop("capabilities"), "ALL capabilities"),
        (
            lambda pod: pod["containers"][0]["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]),
            "adds capabilities",
        ),
        (
            lambda pod: pod["containers"][0]["securityContext"].pop("allowPrivilegeEscalation"),
            "privilege escalation",
        ),
        (lambda pod: pod["containers"][0]["securityContext"].update(privileged=True), "is privileged"),
        (
            lambda pod: pod["containers"][0]["securityContext"].pop("readOnlyRootFilesystem"),
            "root file system",
        ),
        (lambda pod: pod["containers"][0].update(ports=[{"hostPort": 80}]), "port of the host"),
        (lambda pod: pod.update(initContainers=[{"name": "i"}]), "container i"),
    ],
)
def test_each_broken_rule_is_named(change: Callable[[PodSpec], object], problem: str) -> None:
    """A pod that breaks one rule is reported with that rule."""
    pod = copy.deepcopy(RESTRICTED)
    change(pod)
    assert any(problem in text for text in violations(pod)), violations(pod)
