"""Which Secrets of the user a spec refers to. Pure; called by observe and by the Secret watch."""

from __future__ import annotations

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.references import SecretKeyRef
from cachewright.reconcile.state import SecretUse


def secret_uses(spec: InferenceCacheSpec) -> tuple[SecretUse, ...]:
    """List every reference to a user's Secret, with the gateway's mount that carries it."""
    external = spec.stores.redis.external
    source = spec.tenancy.source
    references: list[tuple[str, str, SecretKeyRef | None]] = [
        ("spec.stores.redis.external.urlSecretRef", "redis", external.url_secret_ref if external else None),
        ("spec.stores.redis.external.caSecretRef", "redis-ca", external.ca_secret_ref if external else None),
        ("spec.upstream.apiKeySecretRef", "upstream", spec.upstream.api_key_secret_ref),
        ("spec.upstream.caSecretRef", "upstream-ca", spec.upstream.ca_secret_ref),
        (
            "spec.tenancy.source.apiKeys.secretRef",
            "api-keys",
            source.api_keys.secret_ref if source and source.api_keys else None,
        ),
    ]
    references += _vector_references(spec)
    return tuple(
        SecretUse(field_path=path, mount=mount, name=ref.name, key=ref.key)
        for path, mount, ref in references
        if ref is not None
    )


def _vector_references(spec: InferenceCacheSpec) -> list[tuple[str, str, SecretKeyRef | None]]:
    embedder = spec.embedder
    qdrant = spec.stores.qdrant.external if spec.stores.qdrant else None
    postgres = spec.stores.postgres.external if spec.stores.postgres else None
    return [
        (
            "spec.stores.qdrant.external.apiKeySecretRef",
            "qdrant",
            qdrant.api_key_secret_ref if qdrant else None,
        ),
        (
            "spec.stores.qdrant.external.caSecretRef",
            "qdrant-ca",
            qdrant.ca_secret_ref if qdrant else None,
        ),
        (
            "spec.stores.postgres.external.dsnSecretRef",
            "postgres",
            postgres.dsn_secret_ref if postgres else None,
        ),
        (
            "spec.stores.postgres.external.caSecretRef",
            "postgres-ca",
            postgres.ca_secret_ref if postgres else None,
        ),
        ("spec.embedder.apiKeySecretRef", "embedder", embedder.api_key_secret_ref if embedder else None),
        ("spec.embedder.caSecretRef", "embedder-ca", embedder.ca_secret_ref if embedder else None),
    ]
