"""InferenceCache documents for tests, as a user would write them and as the API server returns them."""

from __future__ import annotations

import copy
from typing import Any

Document = dict[str, Any]

UID = "11111111-2222-3333-4444-555555555555"

SPEC: Document = {
    "model": {"name": "demo-model", "version": "2026-11-28"},
    "upstream": {"url": "http://engine:8000/v1"},
    "tenancy": {"mode": "Required", "source": {"trustedHeader": {"name": "X-Tenant-Id"}}},
    "stores": {"redis": {"managed": {"flavor": "Valkey", "maxMemory": "64Mi"}}},
    "layers": {"exact": {"ttl": "30m"}},
}


def cache_document(
    name: str = "demo", namespace: str = "ml", *, spec: Document | None = None, **metadata: object
) -> Document:
    """Build a document; `spec` replaces top-level parts of the usual one, None removes a part."""
    parts: Document = copy.deepcopy(SPEC) | copy.deepcopy(spec or {})
    return {
        "apiVersion": "cachewright.dev/v1alpha1",
        "kind": "InferenceCache",
        "metadata": {"name": name, "namespace": namespace, "uid": UID, "generation": 1, **metadata},
        "spec": {key: value for key, value in parts.items() if value is not None},
    }


EXTERNAL_REDIS: Document = {"redis": {"external": {"urlSecretRef": {"name": "my-redis", "key": "url"}}}}
"""`spec.stores` for a store that somebody else runs."""
