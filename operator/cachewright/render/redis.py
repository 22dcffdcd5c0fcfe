"""The managed Redis or Valkey: configuration, credentials, one pod, and who may reach it."""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import ANNOTATION_CHECKSUM_PREFIX
from cachewright.api.quantities import parse_bytes
from cachewright.api.stores import ManagedRedis
from cachewright.render.inputs import RedisCredentials, RenderInputs
from cachewright.render.managed_store import (
    build_store_network_policy,
    build_store_service,
    build_store_stateful_set,
)
from cachewright.render.metadata import (
    Manifest,
    child_metadata,
    redis_name,
    secret_metadata,
)
from cachewright.render.pods import (
    checksum,
    config_volume,
    container_security_context,
    encode_secret_data,
    mount,
    pod_security_context,
    resources,
    secret_volume,
)
from cachewright.render.settings import RenderSettings
from cachewright.render.text import render_text
from cachewright.sizing.redis import container_memory_mebibytes

REDIS_PORT: Final = 6379

REDIS_USER: Final = 999
"""The uid that the official Redis and Valkey images use."""


def build_redis_secret(cache: InferenceCache, credentials: RedisCredentials, users_acl: str) -> Manifest:
    """Render passwords, the URLs that carry them, and the server's ACL file."""
    name = redis_name(cache.metadata.name)
    host = f"{name}.{cache.metadata.namespace}.svc:{REDIS_PORT}"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": secret_metadata(cache, name, "redis"),
        "data": encode_secret_data(
            {
                "gateway-password": credentials.gateway_password,
                "gateway-url": f"redis://gateway:{credentials.gateway_password}@{host}/0",
                "operator-password": credentials.operator_password,
                "operator-url": f"redis://operator:{credentials.operator_password}@{host}/0",
                "users.acl": users_acl,
            }
        ),
    }


def build_redis_config_map(cache: InferenceCache, managed: ManagedRedis) -> Manifest:
    """Render the server's configuration."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(cache, redis_name(cache.metadata.name), "redis"),
        "data": {"redis.conf": _redis_conf(cache, managed)},
    }


def build_redis_service(cache: InferenceCache) -> Manifest:
    """Render the address of the store."""
    return build_store_service(cache, redis_name(cache.metadata.name), "redis", "redis", REDIS_PORT)


def build_redis_stateful_set(
    cache: InferenceCache, managed: ManagedRedis, inputs: RenderInputs, settings: RenderSettings
) -> Manifest:
    """Render the one pod that holds the entries."""
    name = redis_name(cache.metadata.name)
    annotations = {
        f"{ANNOTATION_CHECKSUM_PREFIX}config": checksum(_redis_conf(cache, managed)),
        f"{ANNOTATION_CHECKSUM_PREFIX}users": checksum(inputs.users_acl),
    }
    pod = {
        "terminationGracePeriodSeconds": 10,
        "securityContext": pod_security_context(REDIS_USER),
        "containers": [_redis_container(managed, settings)],
        "volumes": [
            config_volume("config", name),
            secret_volume("users", name, {"users.acl": "users.acl"}),
            {"name": "data", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    return build_store_stateful_set(cache, name, "redis", managed, annotations, pod)


def build_redis_network_policy(cache: InferenceCache, settings: RenderSettings) -> Manifest:
    """Let only this cache's gateways and the operator reach the store, and the store reach nobody."""
    return build_store_network_policy(cache, redis_name(cache.metadata.name), "redis", REDIS_PORT, settings)


def _redis_container(managed: ManagedRedis, settings: RenderSettings) -> Manifest:
    server = "valkey" if managed.flavor == "Valkey" else "redis"
    default_image = settings.valkey_image if managed.flavor == "Valkey" else settings.redis_image
    memory = f"{container_memory_mebibytes(parse_bytes(managed.max_memory))}Mi"
    # The health user may do nothing but PING, so the probe needs no password.
    ping = [f"{server}-cli", "--no-auth-warning", "--user", "health", "--pass", "-", "PING"]
    probe = {"exec": {"command": ["sh", "-c", f"{' '.join(ping)} | grep -q PONG"]}, "timeoutSeconds": 3}
    pull_policy = managed.image_pull_policy or settings.image_pull_policy
    return {
        "name": "redis",
        "image": managed.image or default_image,
        **({"imagePullPolicy": pull_policy} if pull_policy else {}),
        "command": [f"{server}-server", "/etc/cachewright/config/redis.conf"],
        "ports": [{"name": "redis", "containerPort": REDIS_PORT, "protocol": "TCP"}],
        "readinessProbe": {**probe, "periodSeconds": 5, "failureThreshold": 2},
        "livenessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 6, "initialDelaySeconds": 10},
        "resources": resources(
            managed, {"requests": {"cpu": "100m", "memory": memory}, "limits": {"memory": memory}}
        ),
        "securityContext": container_security_context(),
        "volumeMounts": [
            mount("config", "/etc/cachewright/config"),
            mount("users", "/etc/cachewright/users"),
            mount("data", "/data", read_only=False),
        ],
    }


def _redis_conf(cache: InferenceCache, managed: ManagedRedis) -> str:
    return render_text(
        "redis.conf.j2",
        cache=f"{cache.metadata.namespace}/{cache.metadata.name}",
        max_memory_bytes=parse_bytes(managed.max_memory),
    )
