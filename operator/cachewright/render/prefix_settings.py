"""Settings that the chart's admission policy adds to an engine's pods, and the pod that proves that it does.

The policy reads the ConfigMap as its parameters; `data` is what it reads, one word a line, and never changes.
A pod is edited only if its template names the ConfigMap, so that pods of an older template stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import ANNOTATION_PREFIX_SETTINGS
from cachewright.render.metadata import Manifest, child_metadata, prefix_name
from cachewright.render.prefix import FILE_KEY

PROOF_IMAGE: Final = "cachewright.invalid/proof"
"""Never pulled: the pod is never stored."""


@dataclass(frozen=True, slots=True)
class SettingsWords:
    """What the policy is told."""

    container: str
    labels: Mapping[str, str]
    unwanted: Sequence[str]
    """Flags that go, those that are appended included."""
    valued: Sequence[str]
    """Those of them whose value may be the next word."""
    blocking: Sequence[str]
    """Flags beside which nothing is added."""
    arguments: Sequence[str]
    file: str = ""
    """A file to be mounted beside them; empty for none."""


def settings_data(cache_name: str, words: SettingsWords) -> dict[str, str]:
    """Render what the policy reads."""
    data = {
        "family": f"{prefix_name(cache_name)}-",
        "container": words.container,
        "labels": _lines([f"{key}={value}" for key, value in sorted(words.labels.items())]),
        "unwanted": _lines(words.unwanted),
        "valued": _lines(words.valued),
        "blocking": _lines(words.blocking),
        "arguments": _lines(words.arguments),
    }
    return {**data, FILE_KEY: words.file} if words.file else data


def build_prefix_settings_config_map(
    cache: InferenceCache, name: str, data: Mapping[str, str], annotations: Mapping[str, str]
) -> Manifest:
    """Render the ConfigMap; `annotations` say how far the settings have come."""
    metadata = child_metadata(cache, name, "prefix")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "annotations": dict(annotations)},
        "data": dict(data),
        "immutable": True,
    }


def build_proof_pod(
    namespace: str, settings: str, words: SettingsWords, command: Sequence[str], args: Sequence[str]
) -> Manifest:
    """Render a pod that the policy must edit, small and plain enough for any quota and security standard."""
    container: Manifest = {
        "name": words.container,
        "image": PROOF_IMAGE,
        "args": list(args),
        "resources": {kind: {"cpu": "1m", "memory": "1Mi"} for kind in ("requests", "limits")},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if command:
        container["command"] = list(command)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{settings}-proof",
            "namespace": namespace,
            "labels": dict(words.labels),
            "annotations": {ANNOTATION_PREFIX_SETTINGS: settings},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "containers": [container],
        },
    }


def _lines(words: Sequence[str]) -> str:
    return "".join(f"{word}\n" for word in words)
