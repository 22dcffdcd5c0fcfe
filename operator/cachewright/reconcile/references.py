"""What of other people's objects concerns an InferenceCache: pods of its workload, its prompt template. Pure.

`observe` notes it, and the controller watches it: a change there is looked at as soon as one of the object.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.names import ANNOTATION_PREFIX_ORIGINAL, ANNOTATION_PREFIX_SETTINGS
from cachewright.reconcile.workload import TERMINAL_PHASES, annotated_version, identity_of_template

_TOLD_BY_CLOUDNATIVE_PG: Final = (
    "readyInstances",
    "currentPrimary",
    "phase",
    "resizingPVC",
    "applied",
    "message",
)
"""What of a status of CloudNativePG's something is made of here."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Objects of one kind in the object's namespace: those of others, or of kinds that others define."""

    kind: Literal["ConfigMap", "Pod", "Cluster", "Database"]
    label_selector: str = ""
    field_selector: str = ""


def watched(spec: InferenceCacheSpec | None, pod_selectors: Iterable[str]) -> frozenset[Reference]:
    """List what has to be watched; of the selectors of pods, an empty one selects none."""
    found = {Reference("Pod", label_selector=each) for each in pod_selectors if each}
    template = spec.prompt_template if spec is not None else None
    if template is not None and template.from_config_map is not None:
        field = f"metadata.name={template.from_config_map.name}"
        found.add(Reference("ConfigMap", field_selector=field))
    return frozenset(found)


def what_counts(kind: str, found: Mapping[str, Any]) -> str | None:
    """Name the state of a watched object as far as it matters; None where it no longer does."""
    if kind == "Pod":
        if (found.get("status") or {}).get("phase") in TERMINAL_PHASES:
            return None
        return f"{annotated_version(found)}/{identity_of_template(found, None)}/{_prefix_settings(found)}"
    if kind in ("Cluster", "Database"):
        metadata = found["metadata"]
        status = {field: (found.get("status") or {}).get(field) for field in _TOLD_BY_CLOUDNATIVE_PG}
        owned = {field: metadata.get(field) for field in ("labels", "annotations", "ownerReferences")}
        content = [owned, found.get("spec"), status]
    else:
        content = [found.get("data"), found.get("binaryData")]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _prefix_settings(pod: Mapping[str, Any]) -> str:
    """Name the settings of its prefix cache that a pod asks for, and tell whether it got them."""
    annotations = pod["metadata"].get("annotations") or {}
    return f"{annotations.get(ANNOTATION_PREFIX_SETTINGS, '')}/{ANNOTATION_PREFIX_ORIGINAL in annotations}"
