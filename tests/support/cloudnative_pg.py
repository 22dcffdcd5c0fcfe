"""CloudNativePG's kinds in small: the fields that we write or read, as its own definitions have them."""

from __future__ import annotations

from typing import Any, Final

Manifest = dict[str, Any]


def _object(**properties: Manifest) -> Manifest:
    return {"type": "object", "properties": properties}


_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_REFERENCE: Final = {**_object(name=_TEXT), "required": ["name"]}
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_ENSURE: Final = {"type": "string", "enum": ["present", "absent"], "default": "present"}
_AMOUNTS: Final = {
    "type": "object",
    "additionalProperties": {"anyOf": [_NUMBER, _TEXT], "x-kubernetes-int-or-string": True},
}
_EXTENSION: Final = {**_object(name=_TEXT, ensure=_ENSURE, version=_TEXT), "required": ["name", "ensure"]}

CLUSTER: Final = _object(
    instances={"type": "integer", "minimum": 1, "default": 1},
    imageName=_TEXT,
    imagePullPolicy=_TEXT,
    imagePullSecrets={"type": "array", "items": _REFERENCE},
    bootstrap=_object(
        initdb=_object(
            database=_TEXT,
            owner=_TEXT,
            secret=_REFERENCE,
            encoding=_TEXT,
            localeCollate={**_TEXT, "default": "C"},
        )
    ),
    storage=_object(size=_TEXT, storageClass=_TEXT, resizeInUseVolumes={"type": "boolean", "default": True}),
    resources=_object(requests=_AMOUNTS, limits=_AMOUNTS),
    postgresql=_object(parameters={"type": "object", "additionalProperties": _TEXT}),
    enablePDB={"type": "boolean", "default": True},
    enableSuperuserAccess={"type": "boolean", "default": False},
    priorityClassName=_TEXT,
    topologySpreadConstraints={"type": "array", "items": _ANYTHING},
    affinity=_object(
        nodeSelector={"type": "object", "additionalProperties": _TEXT},
        tolerations={"type": "array", "items": _ANYTHING},
        nodeAffinity=_ANYTHING,
        additionalPodAffinity=_ANYTHING,
        additionalPodAntiAffinity=_ANYTHING,
    ),
)
DATABASE: Final = {
    **_object(
        cluster=_REFERENCE,
        name=_TEXT,
        owner=_TEXT,
        ensure=_ENSURE,
        databaseReclaimPolicy={"type": "string", "enum": ["delete", "retain"], "default": "retain"},
        extensions={"type": "array", "items": _EXTENSION},
    ),
    "required": ["cluster", "name", "owner"],
}
CLUSTER_STATUS: Final = _object(
    readyInstances=_NUMBER,
    instances=_NUMBER,
    phase=_TEXT,
    resizingPVC={"type": "array", "items": _TEXT},
)
DATABASE_STATUS: Final = _object(applied={"type": "boolean"}, message=_TEXT, observedGeneration=_NUMBER)


def definitions() -> list[Manifest]:
    """Return both CustomResourceDefinitions."""
    return [
        _definition("Cluster", "clusters", CLUSTER, CLUSTER_STATUS),
        _definition("Database", "databases", DATABASE, DATABASE_STATUS),
    ]


def _definition(kind: str, plural: str, spec: Manifest, status: Manifest) -> Manifest:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {**_object(spec=spec, status=status), "required": ["spec"]}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.postgresql.cnpg.io"},
        "spec": {
            "group": "postgresql.cnpg.io",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
