"""Metadata of every child: names, labels, owner reference."""

from __future__ import annotations

from typing import Any, Final, Literal

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import (
    API_VERSION,
    KIND,
    LABEL_CACHE,
    LABEL_COMPONENT,
    LABEL_INSTANCE,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    LABEL_USE,
    USE_OPERATOR,
)

Manifest = dict[str, Any]

Component = Literal["record", "redis", "qdrant", "postgres", "gateway", "janitor", "prefix", "engine"]

PRODUCT: Final = "cachewright"


def record_name(cache_name: str) -> str:
    """Name of the record's ConfigMap."""
    return f"{cache_name}-record"


def keys_name(cache_name: str) -> str:
    """Name of the Secret with the digest key."""
    return f"{cache_name}-keys"


def admin_name(cache_name: str) -> str:
    """Name of the Secret with the admin token."""
    return f"{cache_name}-admin"


def redis_name(cache_name: str) -> str:
    """Name of everything that belongs to the managed Redis or Valkey."""
    return f"{cache_name}-redis"


def gateway_name(cache_name: str) -> str:
    """Name of everything that belongs to the gateway."""
    return f"{cache_name}-gateway"


def janitor_name(cache_name: str) -> str:
    """Name of the Job that tidies the stores of a cache without gateways."""
    return f"{cache_name}-janitor"


def delete_name(cache_name: str) -> str:
    """Name of the Job that removes a deleted cache from stores that outlive it."""
    return f"{cache_name}-delete"


def prefix_name(cache_name: str) -> str:
    """Name of the ConfigMap with the file of an engine's prefix cache."""
    return f"{cache_name}-prefix"


def engine_name(cache_name: str) -> str:
    """Name of the ConfigMap that notes how the engine's workload was patched."""
    return f"{cache_name}-engine"


def selector_labels(cache: InferenceCache, component: Component) -> dict[str, str]:
    """Labels that select a component's pods; they never change."""
    return {
        LABEL_NAME: PRODUCT,
        LABEL_INSTANCE: cache.metadata.name,
        LABEL_COMPONENT: component,
        LABEL_CACHE: cache.metadata.name,
    }


def child_labels(cache: InferenceCache, component: Component) -> dict[str, str]:
    """Labels of a child; children are found and deleted by them."""
    return {**selector_labels(cache, component), LABEL_MANAGED_BY: PRODUCT}


def child_metadata(cache: InferenceCache, name: str, component: Component) -> Manifest:
    """Metadata of a child that the garbage collector removes with the object."""
    return {
        "name": name,
        "namespace": cache.metadata.namespace,
        "labels": child_labels(cache, component),
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": cache.metadata.name,
                "uid": cache.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def secret_metadata(cache: InferenceCache, name: str, component: Component) -> Manifest:
    """Metadata of a Secret of ours: the operator's one watch of Secrets narrows on the `use` label."""
    metadata = child_metadata(cache, name, component)
    return {**metadata, "labels": {**metadata["labels"], LABEL_USE: USE_OPERATOR}}


def endpoint_url(cache: InferenceCache) -> str:
    """URL that clients use as OpenAI base URL."""
    return f"http://{gateway_name(cache.metadata.name)}.{cache.metadata.namespace}.svc:8080/v1"
