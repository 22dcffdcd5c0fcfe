"""Everything a request is served with: one value, swapped as a whole when a mounted file changes."""

from __future__ import annotations

from dataclasses import dataclass

from cachewright.embedders.protocol import Embedder
from cachewright.gateway.api_keys import ApiKeys
from cachewright.gateway.credentials import Credentials
from cachewright.gateway.embedding_serving import EmbeddingServing
from cachewright.gateway.salting import Salting
from cachewright.gateway.semantics import Semantics
from cachewright.gateway.upstream import Upstream
from cachewright.layers.exact import ExactLayer
from cachewright.layers.janitor import Janitor
from cachewright.policy.document import GatewayPolicy
from cachewright.stores.protocols import CacheStore


@dataclass(frozen=True, slots=True)
class Serving:
    """One complete configuration in use."""

    policy: GatewayPolicy
    digest_key: bytes
    api_keys: ApiKeys | None
    """Set where the policy says so."""
    upstream_key: str | None
    """The upstream's own key, where the policy says so."""
    upstream: Upstream
    exact: ExactLayer | None
    """None where the policy has no exact layer."""
    store: CacheStore | None = None
    """What the layers keep their entries in, or what guards them; None where there is no layer."""
    credentials: Credentials | None = None
    """Set where a client's own credential has to be accepted by the upstream first."""
    embedder: Embedder | None = None
    """Set where the policy names one."""
    janitor: Janitor | None = None
    """None where there is no store to tidy."""
    embeddings: EmbeddingServing | None = None
    """Set where the policy has the embedding layer."""
    semantics: Semantics | None = None
    """Set where the policy has the semantic layer."""
    salting: Salting | None = None
    """Set where the engine is sent salts."""
