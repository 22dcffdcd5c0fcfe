"""The managed Qdrant: configuration, API key, volume, one pod, and who may reach it."""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import ANNOTATION_CHECKSUM_PREFIX, QDRANT_PORT, qdrant_name
from cachewright.api.stores import ManagedQdrant
from cachewright.render.inputs import RenderInputs
from cachewright.render.managed_store import (
    build_store_network_policy,
    build_store_pod_disruption_budget,
    build_store_service,
    build_store_stateful_set,
    kept_resources,
    kept_security_context,
)
from cachewright.render.metadata import Manifest, child_metadata, secret_metadata
from cachewright.render.pods import (
    checksum,
    config_volume,
    container_security_context,
    encode_secret_data,
    mount,
)
from cachewright.render.settings import RenderSettings
from cachewright.render.text import render_text
from cachewright.render.volumes import build_volume_claim, claim_volume

QDRANT_USER: Final = 1000
"""The uid that Qdrant's unprivileged images use."""

CONFIG_PATH: Final = "/etc/cachewright/config/qdrant.yaml"

STARTUP_SECONDS: Final = 600
"""Longest for loading collections from the volume before the pod is started anew."""


def build_qdrant_secret(cache: InferenceCache, api_key: str) -> Manifest:
    """Render the API key, which gateways send and the server asks for."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": secret_metadata(cache, qdrant_name(cache.metadata.name), "qdrant"),
        "data": encode_secret_data({"api-key": api_key}),
    }


def build_qdrant_config_map(cache: InferenceCache) -> Manifest:
    """Render the server's configuration."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(cache, qdrant_name(cache.metadata.name), "qdrant"),
        "data": {"qdrant.yaml": _configuration(cache)},
    }


def build_qdrant_volume_claim(cache: InferenceCache, managed: ManagedQdrant) -> Manifest:
    """Render the volume that collections are kept on."""
    return build_volume_claim(cache, qdrant_name(cache.metadata.name), "qdrant", managed.storage)


def build_qdrant_service(cache: InferenceCache) -> Manifest:
    """Render the address of the store."""
    return build_store_service(cache, qdrant_name(cache.metadata.name), "qdrant", "http", QDRANT_PORT)


def build_qdrant_network_policy(cache: InferenceCache, settings: RenderSettings) -> Manifest:
    """Let only this cache's gateways, its janitor and the operator reach the store."""
    return build_store_network_policy(
        cache, qdrant_name(cache.metadata.name), "qdrant", QDRANT_PORT, settings
    )


def build_qdrant_pod_disruption_budget(cache: InferenceCache) -> Manifest:
    """Render what a drain may do."""
    return build_store_pod_disruption_budget(cache, qdrant_name(cache.metadata.name), "qdrant")


def build_qdrant_stateful_set(
    cache: InferenceCache, managed: ManagedQdrant, inputs: RenderInputs, settings: RenderSettings
) -> Manifest:
    """Render the one pod that holds the vectors."""
    name = qdrant_name(cache.metadata.name)
    annotations = {
        f"{ANNOTATION_CHECKSUM_PREFIX}config": checksum(_configuration(cache)),
        f"{ANNOTATION_CHECKSUM_PREFIX}api-key": inputs.secret_checksums["qdrant"],
    }
    pod = {
        "terminationGracePeriodSeconds": 60,
        "securityContext": kept_security_context(QDRANT_USER),
        "containers": [_container(cache, managed, settings)],
        "volumes": [
            config_volume("config", name),
            claim_volume("storage", name),
            {"name": "scratch", "emptyDir": {}},
        ],
    }
    return build_store_stateful_set(cache, name, "qdrant", managed, annotations, pod)


def _container(cache: InferenceCache, managed: ManagedQdrant, settings: RenderSettings) -> Manifest:
    pull_policy = managed.image_pull_policy or settings.image_pull_policy
    key = {"secretKeyRef": {"name": qdrant_name(cache.metadata.name), "key": "api-key"}}
    return {
        "name": "qdrant",
        "image": managed.image or settings.qdrant_image,
        **({"imagePullPolicy": pull_policy} if pull_policy else {}),
        "workingDir": "/qdrant",
        "command": ["./qdrant", "--config-path", CONFIG_PATH],
        "env": [
            {"name": "QDRANT__SERVICE__API_KEY", "valueFrom": key},
            # It marks a finished start by a file in its working directory, which is read-only here.
            {"name": "QDRANT_INIT_FILE_PATH", "value": "/qdrant/snapshots/.qdrant-initialized"},
        ],
        "ports": [{"name": "http", "containerPort": QDRANT_PORT, "protocol": "TCP"}],
        "startupProbe": {**_probe("/readyz"), "periodSeconds": 2, "failureThreshold": STARTUP_SECONDS // 2},
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 5, "failureThreshold": 2},
        "livenessProbe": {**_probe("/livez"), "periodSeconds": 10, "failureThreshold": 6},
        "resources": kept_resources(managed),
        "securityContext": container_security_context(),
        "volumeMounts": [
            mount("config", "/etc/cachewright/config"),
            mount("storage", "/qdrant/storage", read_only=False),
            mount("scratch", "/qdrant/snapshots", read_only=False),
        ],
    }


def _probe(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 3}


def _configuration(cache: InferenceCache) -> str:
    return render_text(
        "qdrant.yaml.j2", cache=f"{cache.metadata.namespace}/{cache.metadata.name}", port=QDRANT_PORT
    )
