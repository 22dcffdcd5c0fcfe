"""Caches that look after an engine's prefix cache, and the engine's pod templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.caches import Document, cache_document


def prefix_cache(name: str = "demo", **layer: Any) -> Document:
    """Return a cache whose engine is Deployment `vllm`."""
    prefix = {"engine": "VLLM", "engineVersion": "0.32.0", **layer}
    return cache_document(
        name,
        spec={
            "model": {"name": "demo-model", "version": "1", "workloadRef": {"name": "vllm"}},
            "rotation": {"fence": "None"},
            "layers": {
                "exact": {},
                "prefix": {"workloadRef": {"name": "vllm", "container": "engine"}} | prefix,
            },
        },
    )


def engine_template(*args: str, command: Sequence[str] = (), image: str = "engine:1") -> Document:
    """Return a pod template with one container, which has these words."""
    container: Document = {"name": "engine", "image": image, "env": [{"name": "A", "value": "1"}]}
    if args:
        container["args"] = list(args)
    if command:
        container["command"] = list(command)
    return {
        "metadata": {"labels": {"app": "vllm"}},
        "spec": {"automountServiceAccountToken": False, "containers": [container]},
    }


def engine_deployment(*args: str, name: str = "vllm", image: str = "engine:1") -> Document:
    """Return a Deployment of it."""
    template = engine_template(*args, image=image)
    template["metadata"]["labels"] = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }
