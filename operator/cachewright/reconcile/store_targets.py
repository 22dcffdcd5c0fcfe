"""Which stores beside Redis an object keeps something in, and how each is reached. Pure; for observe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.names import postgres_name, qdrant_name, qdrant_url
from cachewright.reconcile.generated import secret_text
from cachewright.reconcile.managed_stores import waits_for
from cachewright.reconcile.state import ChildId, Manifest, SecretState
from cachewright.stores.checking import PostgresAccess, QdrantAccess

GATEWAY_CONNECTIONS: Final = 8
"""What one gateway opens at most for one layer; `stores.postgres_link` holds it to that."""


def must_ask(spec: InferenceCacheSpec) -> bool:
    """Tell whether a spec has what may fail unseen: an embedder, or a store but our own Redis."""
    stores = spec.stores
    has_vectors = stores.qdrant is not None or stores.postgres is not None
    return stores.redis.external is not None or has_vectors or spec.embedder is not None


@dataclass(frozen=True, slots=True)
class StoreTargets:
    """Where to ask; None where the object has no such store, or its Secrets or its pod are not ready."""

    qdrant: QdrantAccess | None = None
    postgres: PostgresAccess | None = None
    postgres_connections: int = 0
    """What all gateways of the object may have open together."""
    postgres_is_managed: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """The object, and what was made for it."""

    namespace: str
    name: str
    children: Mapping[ChildId, Manifest]


def store_targets(spec: InferenceCacheSpec, states: tuple[SecretState, ...], owner: Owner) -> StoreTargets:
    """Find the stores of a spec; `states` are the Secrets it refers to, as they were seen."""
    values = {state.use.mount: _text(state) for state in states}
    semantic, embedding = spec.layers.semantic, spec.layers.embedding
    holds_vectors = semantic is not None and semantic.store == "Postgres"
    is_cold = embedding is not None and embedding.cold is not None
    return StoreTargets(
        qdrant=_qdrant(spec, values, owner),
        postgres=_postgres(spec, values, owner, holds_vectors=holds_vectors),
        postgres_connections=GATEWAY_CONNECTIONS * (holds_vectors + is_cold) * spec.gateway.replicas,
        postgres_is_managed=spec.stores.postgres is not None and spec.stores.postgres.managed is not None,
    )


def _qdrant(spec: InferenceCacheSpec, values: dict[str, str], owner: Owner) -> QdrantAccess | None:
    store = spec.stores.qdrant
    if store is None:
        return None
    if store.external is None:
        key = secret_text(owner.children, qdrant_name(owner.name), "api-key")
        if not key or waits_for(owner.children, "qdrant", owner.name) is not None:
            return None
        return QdrantAccess(qdrant_url(owner.name, owner.namespace), key)
    external = store.external
    given = values.get("qdrant", "").strip() if external.api_key_secret_ref else None
    ca = values.get("qdrant-ca") if external.ca_secret_ref else None
    return None if given == "" or ca == "" else QdrantAccess(external.url, given, ca)


def _postgres(
    spec: InferenceCacheSpec, values: dict[str, str], owner: Owner, *, holds_vectors: bool
) -> PostgresAccess | None:
    store = spec.stores.postgres
    if store is None:
        return None
    if store.external is None:
        dsn = secret_text(owner.children, postgres_name(owner.name), "dsn")
        if not dsn or waits_for(owner.children, "postgres", owner.name) is not None:
            return None
        return PostgresAccess(dsn, None, holds_vectors)
    dsn = values.get("postgres", "").strip()
    ca = values.get("postgres-ca") if store.external.ca_secret_ref else None
    return PostgresAccess(dsn, ca, holds_vectors) if dsn and ca != "" else None


def _text(state: SecretState) -> str:
    return "" if state.problem else state.value.decode(errors="replace")
