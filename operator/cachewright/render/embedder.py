"""The built-in embedder beside the gateway, as a sidecar of its pods."""

from __future__ import annotations

from typing import Final

from cachewright.api.embedder import BuiltinEmbedder
from cachewright.api.inference_cache import InferenceCache
from cachewright.policy.from_spec import BUILTIN_EMBEDDER_PORT
from cachewright.render.metadata import Manifest
from cachewright.render.pods import container_resources, container_security_context, mount
from cachewright.render.settings import RenderSettings

HEALTH_PORT: Final = 8092

DERIVED_RESOURCES: Final[Manifest] = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"memory": "512Mi"},
}
"""Model and runtime take about 220 MiB; the longest text that fits its window adds some tens."""


def build_embedder_sidecar(
    cache: InferenceCache, embedder: BuiltinEmbedder, settings: RenderSettings
) -> Manifest:
    """Render the container: an init container that keeps running, so that it ends after the gateway does.

    It has no startup and no readiness probe: a gateway without it still answers every request, so a pod must
    neither wait for it nor leave its Service because of it.
    """
    gateway = cache.spec.gateway
    pull_policy = gateway.image_pull_policy or settings.image_pull_policy
    return {
        "name": "embedder",
        "image": gateway.image or settings.gateway_image,
        **({"imagePullPolicy": pull_policy} if pull_policy else {}),
        "restartPolicy": "Always",
        "args": [
            "embedder",
            "--host",
            "127.0.0.1",
            "--port",
            str(BUILTIN_EMBEDDER_PORT),
            "--health-port",
            str(HEALTH_PORT),
        ],
        "ports": [{"name": "embedder-health", "containerPort": HEALTH_PORT, "protocol": "TCP"}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "embedder-health", "scheme": "HTTP"},
            "initialDelaySeconds": 20,
            "periodSeconds": 10,
            "timeoutSeconds": 3,
            "failureThreshold": 6,
        },
        "resources": container_resources(embedder.resources, DERIVED_RESOURCES),
        "securityContext": container_security_context(),
        "volumeMounts": [mount("tmp", "/tmp", read_only=False)],  # noqa: S108 - the pod's own emptyDir
    }
