"""The caching gateway: policy, digest key, pods, address, disruption budget."""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCache, InferenceCacheSpec
from cachewright.api.names import ANNOTATION_CHECKSUM_PREFIX, postgres_name, qdrant_name
from cachewright.api.references import SecretKeyRef
from cachewright.policy.document import POLICY_DATA_KEY
from cachewright.policy.from_spec import build_policy
from cachewright.render.embedder import build_embedder_sidecar
from cachewright.render.inputs import RenderInputs
from cachewright.render.metadata import (
    Manifest,
    admin_name,
    child_metadata,
    gateway_name,
    keys_name,
    record_name,
    redis_name,
    secret_metadata,
    selector_labels,
)
from cachewright.render.pods import (
    checksum,
    config_volume,
    container_security_context,
    encode_secret_data,
    mount,
    placement_fields,
    pod_security_context,
    resources,
    secret_volume,
)
from cachewright.render.settings import RenderSettings

HTTP_PORT: Final = 8080
MANAGEMENT_PORT: Final = 9090
ADMIN_PORT: Final = 9091

GATEWAY_USER: Final = 65532
"""The uid that the project's image runs as."""

CONFIG_DIR: Final = "/etc/cachewright"
"""Where the gateway looks for everything it is told."""

DERIVED_RESOURCES: Final[Manifest] = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}
"""A worker needs about 100 MiB; the rest is for bodies in flight."""


def build_keys_secret(cache: InferenceCache, digest_key: str) -> Manifest:
    """Render the key that makes digests and tenant tags unguessable."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": secret_metadata(cache, keys_name(cache.metadata.name), "gateway"),
        "data": encode_secret_data({"digest-key": digest_key}),
    }


def build_admin_secret(cache: InferenceCache, token: str) -> Manifest:
    """Render the token of the admin port, apart from all else so that it can be handed out alone."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": secret_metadata(cache, admin_name(cache.metadata.name), "gateway"),
        "data": encode_secret_data({"token": token}),
    }


def build_gateway_config_map(cache: InferenceCache, inputs: RenderInputs) -> Manifest:
    """Render the policy that gateways enact."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(cache, gateway_name(cache.metadata.name), "gateway"),
        "data": {POLICY_DATA_KEY: build_policy(cache, inputs.cache_id, inputs.key_id).to_json()},
    }


def build_gateway_service(cache: InferenceCache) -> Manifest:
    """Render the address that clients use."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": child_metadata(cache, gateway_name(cache.metadata.name), "gateway"),
        "spec": {
            "type": "ClusterIP",
            "selector": selector_labels(cache, "gateway"),
            "ports": [
                {"name": "http", "port": HTTP_PORT, "targetPort": "http", "protocol": "TCP"},
                {"name": "metrics", "port": MANAGEMENT_PORT, "targetPort": "metrics", "protocol": "TCP"},
                {"name": "admin", "port": ADMIN_PORT, "targetPort": "admin", "protocol": "TCP"},
            ],
        },
    }


def build_gateway_pod_disruption_budget(cache: InferenceCache) -> Manifest:
    """Render the promise that a drain takes one gateway at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": child_metadata(cache, gateway_name(cache.metadata.name), "gateway"),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector_labels(cache, "gateway")}},
    }


def build_gateway_deployment(
    cache: InferenceCache, inputs: RenderInputs, settings: RenderSettings
) -> Manifest:
    """Render the gateway's pods; they roll when something changes that they read only at start."""
    labels = selector_labels(cache, "gateway")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": child_metadata(cache, gateway_name(cache.metadata.name), "gateway"),
        "spec": {
            "replicas": cache.spec.gateway.replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": labels, "annotations": _annotations(cache, inputs)},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": 60,
                    "securityContext": pod_security_context(GATEWAY_USER),
                    **_sidecars(cache, settings),
                    "containers": [_gateway_container(cache, settings)],
                    "volumes": _volumes(cache),
                    **placement_fields(cache.spec.gateway, labels),
                },
            },
        },
    }


def _sidecars(cache: InferenceCache, settings: RenderSettings) -> Manifest:
    if cache.spec.embedder is None or cache.spec.embedder.builtin is None:
        return {}
    return {"initContainers": [build_embedder_sidecar(cache, cache.spec.embedder.builtin, settings)]}


def _annotations(cache: InferenceCache, inputs: RenderInputs) -> dict[str, str]:
    sums = {
        "policy": checksum(build_policy(cache, inputs.cache_id, inputs.key_id).to_json()),
        **inputs.secret_checksums,
    }
    return {f"{ANNOTATION_CHECKSUM_PREFIX}{name}": value for name, value in sorted(sums.items())}


def _gateway_container(cache: InferenceCache, settings: RenderSettings) -> Manifest:
    gateway = cache.spec.gateway
    pull_policy = gateway.image_pull_policy or settings.image_pull_policy
    return {
        "name": "gateway",
        "image": gateway.image or settings.gateway_image,
        **({"imagePullPolicy": pull_policy} if pull_policy else {}),
        "args": [
            "gateway",
            "--config-dir",
            CONFIG_DIR,
            "--port",
            str(HTTP_PORT),
            "--management-port",
            str(MANAGEMENT_PORT),
            "--admin-port",
            str(ADMIN_PORT),
        ],
        "ports": [
            {"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": MANAGEMENT_PORT, "protocol": "TCP"},
            {"name": "admin", "containerPort": ADMIN_PORT, "protocol": "TCP"},
        ],
        "startupProbe": {**_probe("/healthz"), "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 5, "failureThreshold": 2},
        "livenessProbe": {**_probe("/healthz"), "periodSeconds": 10, "failureThreshold": 6},
        "resources": resources(gateway, DERIVED_RESOURCES),
        "securityContext": container_security_context(),
        "volumeMounts": [
            *(mount(volume["name"], f"{CONFIG_DIR}/{volume['name']}") for volume in _config_volumes(cache)),
            mount("tmp", "/tmp", read_only=False),  # noqa: S108 - the container's own emptyDir
        ],
    }


def _probe(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "metrics", "scheme": "HTTP"}, "timeoutSeconds": 3}


def _volumes(cache: InferenceCache) -> list[Manifest]:
    return [*_config_volumes(cache), {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]


def _config_volumes(cache: InferenceCache) -> list[Manifest]:
    name = cache.metadata.name
    spec = cache.spec
    volumes = [
        config_volume("policy", gateway_name(name)),
        config_volume("record", record_name(name)),
        secret_volume("keys", keys_name(name), {"digest-key": "digest-key"}),
        secret_volume("admin", admin_name(name), {"token": "token"}),
    ]
    external = spec.stores.redis.external
    if external is None:
        volumes.append(secret_volume("redis", redis_name(name), {"gateway-url": "url"}))
    else:
        ref = external.url_secret_ref
        volumes.append(secret_volume("redis", ref.name, {ref.key: "url"}))
        if ca := external.ca_secret_ref:
            volumes.append(secret_volume("redis-ca", ca.name, {ca.key: "ca.crt"}))
    if key := spec.upstream.api_key_secret_ref:
        volumes.append(secret_volume("upstream", key.name, {key.key: "key"}))
    if ca := spec.upstream.ca_secret_ref:
        volumes.append(secret_volume("upstream-ca", ca.name, {ca.key: "ca.crt"}))
    if spec.tenancy.source and (api_keys := spec.tenancy.source.api_keys):
        volumes.append(secret_volume("api-keys", api_keys.secret_ref.name, {api_keys.secret_ref.key: "keys"}))
    return [*volumes, *managed_volumes(cache), *_vector_volumes(spec)]


def managed_volumes(cache: InferenceCache) -> list[Manifest]:
    """Mount what the operator generated for vector stores that it runs."""
    name, stores = cache.metadata.name, cache.spec.stores
    volumes = []
    if stores.qdrant is not None and stores.qdrant.managed is not None:
        volumes.append(secret_volume("qdrant", qdrant_name(name), {"api-key": "api-key"}))
    if stores.postgres is not None and stores.postgres.managed is not None:
        volumes.append(secret_volume("postgres", postgres_name(name), {"dsn": "dsn"}))
    return volumes


def _vector_volumes(spec: InferenceCacheSpec) -> list[Manifest]:
    qdrant = spec.stores.qdrant.external if spec.stores.qdrant else None
    postgres = spec.stores.postgres.external if spec.stores.postgres else None
    embedder = spec.embedder
    mounted: list[tuple[str, SecretKeyRef | None, str]] = [
        ("qdrant", qdrant.api_key_secret_ref if qdrant else None, "api-key"),
        ("qdrant-ca", qdrant.ca_secret_ref if qdrant else None, "ca.crt"),
        ("postgres", postgres.dsn_secret_ref if postgres else None, "dsn"),
        ("postgres-ca", postgres.ca_secret_ref if postgres else None, "ca.crt"),
        ("embedder", embedder.api_key_secret_ref if embedder else None, "key"),
        ("embedder-ca", embedder.ca_secret_ref if embedder else None, "ca.crt"),
    ]
    return [secret_volume(name, ref.name, {ref.key: path}) for name, ref, path in mounted if ref]
