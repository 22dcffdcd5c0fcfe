"""Which stores beside Redis an object keeps something in, and how each is reached. Pure; for observe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.reconcile.state import SecretState
from cachewright.stores.checking import PostgresAccess, QdrantAccess

GATEWAY_CONNECTIONS: Final = 8
"""What one gateway opens at most for one layer; `stores.postgres_link` holds it to that."""


def must_ask(spec: InferenceCacheSpec) -> bool:
    """Tell whether a spec has what may fail unseen: an embedder, or a store that others run."""
    stores = spec.stores
    vectors = [store.external for store in (stores.qdrant, stores.postgres) if store is not None]
    return stores.redis.external is not None or any(vectors) or spec.embedder is not None


@dataclass(frozen=True, slots=True)
class StoreTargets:
    """Where to ask; None where the object has no such store, or its Secrets cannot be used."""

    qdrant: QdrantAccess | None = None
    postgres: PostgresAccess | None = None
    postgres_connections: int = 0
    """What all gateways of the object may have open together."""


def store_targets(spec: InferenceCacheSpec, states: tuple[SecretState, ...]) -> StoreTargets:
    """Find the stores of a spec; `states` are its Secrets as they were seen."""
    values = {state.use.mount: _text(state) for state in states}
    semantic, embedding = spec.layers.semantic, spec.layers.embedding
    holds_vectors = semantic is not None and semantic.store == "Postgres"
    is_cold = embedding is not None and embedding.cold is not None
    return StoreTargets(
        qdrant=_qdrant(spec, values),
        postgres=_postgres(spec, values, holds_vectors=holds_vectors),
        postgres_connections=GATEWAY_CONNECTIONS * (holds_vectors + is_cold) * spec.gateway.replicas,
    )


def _qdrant(spec: InferenceCacheSpec, values: dict[str, str]) -> QdrantAccess | None:
    external = spec.stores.qdrant.external if spec.stores.qdrant else None
    if external is None:
        return None
    key = values.get("qdrant", "").strip() if external.api_key_secret_ref else None
    ca = values.get("qdrant-ca") if external.ca_secret_ref else None
    if key == "" or ca == "":
        return None
    return QdrantAccess(external.url, key, ca)


def _postgres(
    spec: InferenceCacheSpec, values: dict[str, str], *, holds_vectors: bool
) -> PostgresAccess | None:
    external = spec.stores.postgres.external if spec.stores.postgres else None
    if external is None:
        return None
    dsn = values.get("postgres", "").strip()
    ca = values.get("postgres-ca") if external.ca_secret_ref else None
    if not dsn or ca == "":
        return None
    return PostgresAccess(dsn, ca, holds_vectors)


def _text(state: SecretState) -> str:
    return "" if state.problem else state.value.decode(errors="replace")
