"""Definitions with the shapes of VLLMRuntime and LLMInferenceService, as far as words of engines go."""

from __future__ import annotations

from typing import Any, Final

from tests.support.caches import Document

TEXT: Final = {"type": "string"}
TEXTS: Final = {"type": "array", "items": TEXT}


def _object(**properties: Any) -> Document:
    # The real ones have many more fields.
    return {"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": True}


def _by_name(item: Document) -> Document:
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    return {"type": "array", "items": {**item, "required": ["name"]}, **keyed}


def _definition(group: str, kind: str, spec: Document, *versions: str) -> Document:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[-1],
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": _object(spec=spec)},
                }
                for version in versions
            ],
        },
    }


VLLM_RUNTIME: Final = _definition(
    "production-stack.vllm.ai",
    "VLLMRuntime",
    _object(
        model=_object(modelURL=TEXT),
        vllmConfig=_object(
            enablePrefixCaching={"type": "boolean"},
            gpuMemoryUtilization=TEXT,
            extraArgs=TEXTS,
            port={"type": "integer", "default": 8000},
        ),
    ),
    "v1alpha1",
)
"""Of vLLM's production stack."""

LLM_INFERENCE_SERVICE: Final = _definition(
    "serving.kserve.io",
    "LLMInferenceService",
    _object(
        model=_object(uri=TEXT, name=TEXT),
        template=_object(
            containers=_by_name(_object(name=TEXT, image=TEXT, env=_by_name(_object(name=TEXT, value=TEXT))))
        ),
    ),
    "v1alpha1",
    "v1alpha2",
)
"""Of KServe, with lists by name as its newer definitions have them."""
