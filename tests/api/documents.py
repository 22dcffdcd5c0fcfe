"""InferenceCaches with every field and with none to spare, and how tests change them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

Document = dict[str, Any]


class _Gone:
    """Marks a field that a case takes away."""

    def __repr__(self) -> str:
        return "GONE"


GONE: Final = _Gone()


_RESOURCES: Final = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": 1, "memory": "1Gi"}}
_PLACEMENT: Final = {
    "image": "example/image:1",
    "imagePullPolicy": "IfNotPresent",
    "imagePullSecrets": [{"name": "pull"}],
    "resources": _RESOURCES,
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}
    ],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    },
    "topologySpreadConstraints": [
        {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        {"topologyKey": "host", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
    ],
    "priorityClassName": "serving",
}

FULL: Final[Document] = {
    "apiVersion": "cachewright.dev/v1alpha1",
    "kind": "InferenceCache",
    "metadata": {"name": "full", "namespace": "default"},
    "spec": {
        "model": {
            "name": "m",
            "aliases": ["m-1", "m-2"],
            "version": "1",
            "workloadRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "engine",
                "container": "engine",
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": "engine"}},
            },
        },
        "promptTemplate": {"version": "t1"},
        "cacheID": "0123456789abcdef",
        "epoch": 2,
        "rotation": {
            "fence": "Workload",
            "deadline": "30m",
            "heartbeatTimeout": "10m",
            "retain": "24h",
            "maxRetained": 3,
        },
        "upstream": {
            "url": "https://engine:8000/v1",
            "timeout": "120s",
            "apiKeySecretRef": {"name": "upstream", "key": "token"},
            "caSecretRef": {"name": "authority", "key": "ca.crt"},
            "allowedPaths": ["/v1/files", "/v1/models"],
            "varyHeaders": ["X-A", "X-B"],
        },
        "tenancy": {
            "mode": "Required",
            "source": {"trustedHeader": {"name": "X-Tenant-Id"}},
            "role": {"header": "X-Role"},
            "user": {"header": "X-User"},
            "onMissing": "Bypass",
        },
        "routes": [
            {
                "name": "chat",
                "match": {"path": "/v1/chat/completions"},
                "layers": ["Exact", "Semantic"],
                "sampling": "Strict",
                "promptTemplate": {"version": "v7"},
                "experiment": {"armHeader": "X-Arm"},
                "documents": "Optional",
                "extractDocuments": {"between": {"start": "[doc:", "end": "]"}},
                "question": {"between": {"start": "[ask:", "end": "]"}},
                "threshold": 0.95,
                "sideEffects": False,
            },
            {"name": "other", "match": {"path": "/v1/completions"}},
        ],
        "embedder": {
            "url": "https://embedder:8080/v1",
            "model": "bge-m3",
            "revision": "2",
            "dimensions": 1024,
            "maxTokens": 8192,
            "timeout": "10s",
            "apiKeySecretRef": {"name": "embedder", "key": "token"},
            "caSecretRef": {"name": "authority", "key": "ca.crt"},
        },
        "stores": {
            "redis": {"managed": {"flavor": "Redis", "maxMemory": "256Mi", **_PLACEMENT}},
            "qdrant": {
                "external": {
                    "url": "https://qdrant:6333",
                    "apiKeySecretRef": {"name": "qdrant", "key": "api-key"},
                    "caSecretRef": {"name": "authority", "key": "ca.crt"},
                }
            },
            "postgres": {
                "external": {
                    "dsnSecretRef": {"name": "postgres", "key": "dsn"},
                    "caSecretRef": {"name": "authority", "key": "ca.crt"},
                }
            },
        },
        "layers": {
            "exact": {"ttl": "30m", "local": {"maxEntries": 10_000, "ttl": "30s"}, "epoch": 1},
            "embedding": {"hotTTL": "24h", "cold": "Postgres", "shareAcrossTenants": False, "epoch": 1},
            "semantic": {
                "mode": "Serve",
                "store": "Qdrant",
                "profile": "General",
                "threshold": 0.93,
                "ttl": "24h",
                "maxEntries": 1_000_000,
                "maxEntriesPerTenant": 10_000,
                "maxTurns": 1,
                "guard": ["Numbers", "Negation", "Order", "Antonyms", "Names"],
                "otherLanguages": "Exact",
                "admission": {"minSeen": 2},
                "exposeSimilarity": False,
                "hnsw": {"m": 16, "efConstruct": 100, "payloadM": 16},
                "quantization": "None",
                "epoch": 1,
            },
            "prefix": {
                "engine": "VLLM",
                "engineVersion": "0.32.0",
                "delivery": "Inject",
                "rollout": "OnNextRollout",
                "workloadRef": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": "engine",
                    "container": "engine",
                    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "engine"}},
                },
                "blockSize": 32,
                "hashAlgorithm": "SHA256",
                "eviction": "LRU",
                "gpuMemoryShare": 0.9,
                "hostMemory": "64Gi",
                "connector": "Native",
                "disk": {"size": "1Ti", "path": "/cache"},
                "events": {"endpoint": "tcp://*:5557"},
                "tenantSalt": True,
                "reportCachedTokens": True,
                "flush": "Never",
                "metrics": {"enabled": True, "port": 8000},
                "extraArgs": ["--seed=1"],
                "suppressArgs": ["--block-size", "--seed"],
            },
        },
        "limits": {
            "budget": {"exact": "5ms", "total": "50ms"},
            "coalesceTimeout": "2s",
            "maxCacheableBody": "1Mi",
            "maxBody": "64Mi",
        },
        "sweep": {"interval": "1h", "reclaimRate": 10_000},
        "gateway": {"replicas": 2, **_PLACEMENT},
        "deletionPolicy": "Retain",
        "suspend": False,
    },
}
"""Every field is given but those that exclude one that is."""


def changed(base: Document, **changes: Any) -> Document:
    """Return a copy with paths (`__` for `.`) set, or taken away where the value is GONE."""
    document = _copy(base)
    for path, value in changes.items():
        put(document, path.replace("__", "."), value)
    return document


def _copy(value: Document) -> Document:
    """Copy without keeping what is shared within: one placement stands in two components."""
    copied: Document = json.loads(json.dumps(value))
    return copied


def put(document: Document, path: str, value: Any) -> None:
    """Set the value at a path such as `spec.routes[0].name`, making objects on the way."""
    *parents, last = steps(path)
    target: Any = document
    for step in parents:
        target = target[step] if isinstance(step, int) else target.setdefault(step, {})
    if value is GONE:
        del target[last]
    else:
        target[last] = value


def steps(path: str) -> list[str | int]:
    """Split a path into field names and indices."""
    found = re.findall(r"\[(\d+)\]|\[([^\]]+)\]|([^.\[]+)", path)
    return [int(index) if index else key or name for index, key, name in found]


MINIMAL: Final = {
    **FULL,
    "spec": {
        "model": {"name": "m", "version": "1"},
        "upstream": {"url": "http://engine:8000/v1"},
        "tenancy": {"mode": "Single"},
        "stores": {"redis": {"managed": {}}},
        "layers": {"exact": {}},
    },
}
"""Nothing is given that has a default."""

EXTERNAL: Final = changed(
    FULL,
    spec__promptTemplate={"fromConfigMap": {"name": "template", "key": "prompt.txt"}},
    spec__stores__redis={
        "external": {
            "urlSecretRef": {"name": "redis", "key": "url"},
            "caSecretRef": {"name": "redis-ca", "key": "ca.crt"},
        }
    },
    spec__embedder={"builtin": {"resources": _RESOURCES}},
    spec__tenancy__source={"apiKeys": {"secretRef": {"name": "keys", "key": "keys.yaml"}}},
    spec__tenancy__user={"bodyField": "SafetyIdentifier"},
)
"""The other side of each choice: a store that exists already, API keys, the embedder that ships."""

MANAGED: Final = changed(
    FULL,
    spec__stores__qdrant={
        "managed": {"memory": "1Gi", "storage": {"size": "10Gi", "storageClassName": "fast"}, **_PLACEMENT}
    },
    spec__stores__postgres={
        "managed": {
            "provider": "CloudNativePG",
            "instances": 3,
            "memory": "1Gi",
            "storage": {"size": "10Gi", "storageClassName": "fast"},
            **_PLACEMENT,
        }
    },
)
"""Every store that the operator can run is run by it."""

CREDENTIAL: Final = changed(
    FULL,
    spec__layers__prefix={"engine": "Triton", "engineVersion": "2.50", "responseCache": "1Gi"},
    spec__tenancy__source={"clientCredential": {"ttl": "5m"}},
    spec__layers__embedding=GONE,
    spec__upstream__apiKeySecretRef=GONE,
)
"""Tenants known by what they present to the upstream, and an engine that keeps whole answers."""
