"""The restricted profile of the Pod Security Standards, as a list of what a pod spec lacks.

Used on everything this project renders that runs: the chart's pods, gateways and stores. Beyond the
profile it asks for a read-only root file system.
Source: Kubernetes documentation, "Pod Security Standards", restricted, as of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

PodSpec = dict[str, Any]
Container = dict[str, Any]

ALLOWED_VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
HOST_FIELDS: Final = ("hostNetwork", "hostPID", "hostIPC")
ALLOWED_SECCOMP: Final = ("RuntimeDefault", "Localhost")


def violations(pod: PodSpec) -> list[str]:
    """List each way in which a pod spec breaks the profile; empty where it holds."""
    problems = [f"{field} is set" for field in HOST_FIELDS if pod.get(field)]
    problems += list(_volume_problems(pod))
    context = pod.get("securityContext", {})
    if context.get("sysctls"):
        problems.append("sysctls are set")
    for container in [*pod.get("initContainers", []), *pod.get("containers", [])]:
        problems += [
            f"container {container['name']}: {text}" for text in _container_problems(container, context)
        ]
    return problems


def _volume_problems(pod: PodSpec) -> Iterator[str]:
    for volume in pod.get("volumes", []):
        kinds = set(volume) - {"name"}
        if not kinds <= ALLOWED_VOLUMES:
            yield f"volume {volume['name']} is of kind {', '.join(sorted(kinds))}"


def _container_problems(container: Container, pod_context: dict[str, Any]) -> Iterator[str]:
    own = container.get("securityContext", {})
    inherited = {**pod_context, **own}
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield "does not drop ALL capabilities"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "adds capabilities"
    if own.get("allowPrivilegeEscalation") is not False:
        yield "allows privilege escalation"
    if own.get("privileged"):
        yield "is privileged"
    if own.get("readOnlyRootFilesystem") is not True:
        yield "can write to its root file system"
    if inherited.get("runAsNonRoot") is not True:
        yield "may run as root"
    if inherited.get("runAsUser") == 0:
        yield "runs as uid 0"
    if inherited.get("seccompProfile", {}).get("type") not in ALLOWED_SECCOMP:
        yield "has no seccomp profile"
    if any(port.get("hostPort") for port in container.get("ports", [])):
        yield "takes a port of the host"
