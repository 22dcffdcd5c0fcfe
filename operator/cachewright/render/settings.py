"""What the operator's installation decides about everything it renders."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """Defaults of one installation; the object's own fields win."""

    gateway_image: str
    """The operator's own image carries the gateway too."""
    valkey_image: str = "valkey/valkey:8.1-alpine"
    redis_image: str = "redis:7.4-alpine"
    qdrant_image: str = "qdrant/qdrant:v1.20.0-unprivileged"
    postgres_image: str = "pgvector/pgvector:0.8.5-pg18"
    cloudnative_pg_image: str = "ghcr.io/cloudnative-pg/postgresql:18-standard-trixie"
    """Its tag must begin with the version: CloudNativePG reads it there."""
    image_pull_policy: str | None = None
    """None leaves the choice to Kubernetes."""
    operator_namespace: str = "cachewright-system"
    """Namespace of the operator's pods, which NetworkPolicies let through."""
    network_policies: bool = True
    """False where the cluster forbids NetworkPolicies or manages them elsewhere."""
