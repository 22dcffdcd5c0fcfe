"""Jobs that do the gateways' tidying where there is no gateway: one while a cache lives, one after its end.

The second must outlive the object's other children: deleted in the foreground, an object loses all that it
owns at once. So nobody owns it, it mounts nothing of ours, and it is told what it needs by its arguments.
Called by reconcile.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.references import SecretKeyRef
from cachewright.render.gateway import CONFIG_DIR, GATEWAY_USER, managed_volumes
from cachewright.render.metadata import (
    Manifest,
    child_labels,
    child_metadata,
    delete_name,
    gateway_name,
    janitor_name,
    record_name,
    redis_name,
    selector_labels,
)
from cachewright.render.pods import (
    config_volume,
    container_security_context,
    mount,
    placement_fields,
    pod_security_context,
    secret_volume,
)
from cachewright.render.settings import RenderSettings

DELETE_SECONDS: Final = 270
"""For the Job, pulling and starting included: the operator holds up a deletion for five minutes at most."""

DELETE_WORK_SECONDS: Final = 240

JANITOR_SECONDS: Final = 24 * 3600
"""Longest for one turn over a large store; what was removed stays so."""

KEPT_SECONDS: Final = 600
"""How long a Job that has ended is left for people to look at, should the operator not remove it."""

BACKOFF_LIMIT: Final = 3

RESOURCES: Final[Manifest] = {
    "requests": {"cpu": "50m", "memory": "96Mi"},
    "limits": {"memory": "256Mi"},
}


def build_janitor_job(cache: InferenceCache, settings: RenderSettings) -> Manifest:
    """Render one turn of the janitor, for a cache without gateways."""
    name = cache.metadata.name
    external = cache.spec.stores.redis.external
    volumes = [config_volume("policy", gateway_name(name)), config_volume("record", record_name(name))]
    if external is None:
        volumes.append(secret_volume("redis", redis_name(name), {"gateway-url": "url"}))
    volumes += managed_volumes(cache)
    arguments = ["--timeout", str(JANITOR_SECONDS - 60)]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": child_metadata(cache, janitor_name(name), "janitor"),
        "spec": _job_spec(cache, settings, arguments, [*volumes, *_store_volumes(cache)], JANITOR_SECONDS),
    }


def build_delete_job(cache: InferenceCache, cache_id: str, settings: RenderSettings) -> Manifest | None:
    """Render the removal of a cache from the stores that outlive it; None where there is no such store."""
    volumes = _store_volumes(cache)
    qdrant = cache.spec.stores.qdrant.external if cache.spec.stores.qdrant else None
    if not volumes and qdrant is None:
        return None
    arguments = ["--delete-cache", cache_id, "--timeout", str(DELETE_WORK_SECONDS)]
    arguments += ["--rate", str(cache.spec.sweep.reclaim_rate)]
    if qdrant is not None:
        arguments += ["--qdrant-url", qdrant.url.rstrip("/")]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": delete_name(cache.metadata.name),
            "namespace": cache.metadata.namespace,
            "labels": child_labels(cache, "janitor"),
        },
        "spec": _job_spec(cache, settings, arguments, volumes, DELETE_SECONDS),
    }


def _job_spec(
    cache: InferenceCache,
    settings: RenderSettings,
    arguments: list[str],
    volumes: list[Manifest],
    longest_seconds: int,
) -> Manifest:
    labels = selector_labels(cache, "janitor")
    gateway = cache.spec.gateway
    placement = placement_fields(gateway, labels)
    del placement["topologySpreadConstraints"]  # one pod has nothing to be spread over
    pull_policy = gateway.image_pull_policy or settings.image_pull_policy
    container = {
        "name": "janitor",
        "image": gateway.image or settings.gateway_image,
        **({"imagePullPolicy": pull_policy} if pull_policy else {}),
        "args": ["janitor", "--config-dir", CONFIG_DIR, *arguments],
        "resources": RESOURCES,
        "securityContext": container_security_context(),
        "volumeMounts": [mount(volume["name"], f"{CONFIG_DIR}/{volume['name']}") for volume in volumes],
    }
    return {
        "backoffLimit": BACKOFF_LIMIT,
        "activeDeadlineSeconds": longest_seconds,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": pod_security_context(GATEWAY_USER),
                "containers": [container],
                "volumes": volumes,
                **placement,
            },
        },
    }


def _store_volumes(cache: InferenceCache) -> list[Manifest]:
    """Mount the user's own Secrets with which stores are reached."""
    stores = cache.spec.stores
    qdrant = stores.qdrant.external if stores.qdrant else None
    postgres = stores.postgres.external if stores.postgres else None
    redis = stores.redis.external
    mounted: list[tuple[str, SecretKeyRef | None, str]] = [
        ("redis", redis.url_secret_ref if redis else None, "url"),
        ("redis-ca", redis.ca_secret_ref if redis else None, "ca.crt"),
        ("qdrant", qdrant.api_key_secret_ref if qdrant else None, "api-key"),
        ("qdrant-ca", qdrant.ca_secret_ref if qdrant else None, "ca.crt"),
        ("postgres", postgres.dsn_secret_ref if postgres else None, "dsn"),
        ("postgres-ca", postgres.ca_secret_ref if postgres else None, "ca.crt"),
    ]
    return [secret_volume(name, ref.name, {ref.key: path}) for name, ref, path in mounted if ref]
