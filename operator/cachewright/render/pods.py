"""Pod parts shared by all components: restricted security, placement, checksums."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

from cachewright.api.base import ApiModel
from cachewright.api.workload import PodPlacement, ResourceRequirements
from cachewright.render.metadata import Manifest


def pod_security_context(user: int) -> Manifest:
    """Pod-level part of the restricted Pod Security Standard."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security_context() -> Manifest:
    """Container-level part of the restricted Pod Security Standard, with a read-only root."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def placement_fields(placement: PodPlacement, match_labels: dict[str, str]) -> Manifest:
    """Fields of a pod spec that place it; what is not given is left to Kubernetes, except the spread."""
    fields: Manifest = {"topologySpreadConstraints": _spread(placement, match_labels)}
    given: dict[str, Any] = {
        "nodeSelector": placement.node_selector,
        "affinity": placement.affinity,
        "priorityClassName": placement.priority_class_name,
        "tolerations": _dump_list(placement.tolerations),
        "imagePullSecrets": _dump_list(placement.image_pull_secrets),
    }
    return fields | {name: value for name, value in given.items() if value}


def resources(placement: PodPlacement, derived: Manifest) -> Manifest:
    """CPU and memory of a container: what the object gives, over what was derived."""
    return container_resources(placement.resources, derived)


def container_resources(wanted: ResourceRequirements | None, derived: Manifest) -> Manifest:
    """CPU and memory of a container: what is wanted, over what was derived."""
    if wanted is None:
        return derived
    given = wanted.model_dump(by_alias=True, exclude_none=True)
    return {part: {**derived.get(part, {}), **given.get(part, {})} for part in ("requests", "limits")}


def secret_volume(name: str, secret: str, items: dict[str, str]) -> Manifest:
    """Mount some keys of a Secret as files: `items` maps key to file name."""
    return {
        "name": name,
        "secret": {
            "secretName": secret,
            "defaultMode": 0o440,
            "items": [{"key": key, "path": path} for key, path in items.items()],
        },
    }


def config_volume(name: str, config_map: str) -> Manifest:
    """Mount a ConfigMap."""
    return {"name": name, "configMap": {"name": config_map, "defaultMode": 0o444}}


def mount(name: str, path: str, *, read_only: bool = True) -> Manifest:
    """Mount a volume; read-only unless said otherwise."""
    fields: Manifest = {"name": name, "mountPath": path}
    return {**fields, "readOnly": True} if read_only else fields


def encode_secret_data(values: dict[str, str]) -> dict[str, str]:
    """Encode texts as the `data` of a Secret."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


def checksum(text: str) -> str:
    """Short digest of public text, for annotations that roll pods."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _spread(placement: PodPlacement, match_labels: dict[str, str]) -> list[Manifest]:
    constraints = placement.topology_spread_constraints
    if constraints is None:
        default = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
        }
        return [{**default, "labelSelector": {"matchLabels": match_labels}}]
    return [
        {**constraint.model_dump(by_alias=True), "labelSelector": {"matchLabels": match_labels}}
        for constraint in constraints
    ]


def _dump_list(items: Sequence[ApiModel] | None) -> list[Manifest]:
    return [item.model_dump(by_alias=True, exclude_none=True) for item in items or []]
