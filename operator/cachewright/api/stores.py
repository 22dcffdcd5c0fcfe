"""`spec.stores`: where layers keep their entries; each store is managed by us or external, never both."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.model import URL_PATTERN
from cachewright.api.quantities import Quantity
from cachewright.api.references import SecretKeyRef
from cachewright.api.workload import MEMORY_LIMIT_EXCEEDS_DATA, PodPlacement


class ManagedRedis(PodPlacement):
    """A Redis or Valkey server that the operator runs: one pod, no persistence (a lost cache is a miss)."""

    rules = (MEMORY_LIMIT_EXCEEDS_DATA,)

    flavor: Literal["Valkey", "Redis"] = "Valkey"
    """Which server is run; immutable."""
    max_memory: Quantity = "256Mi"
    """Memory for entries; beyond it the least used entries are evicted. The container's limit is derived
    from it."""


class ExternalRedis(ApiModel):
    """A Redis or Valkey server that exists already."""

    url_secret_ref: SecretKeyRef
    """A Secret's key that holds the URL, such as `rediss://user:password@host:6379/0`."""


class RedisStore(ApiModel):
    """The Redis or Valkey server of this cache: exactly one of the fields."""

    rules = (
        Rule(
            cel="has(self.managed) != has(self.external)",
            message="stores.redis needs exactly one of managed and external",
        ),
    )

    managed: ManagedRedis | None = None
    """Run by the operator."""
    external: ExternalRedis | None = None
    """Run by somebody else."""


class ExternalQdrant(ApiModel):
    """A Qdrant server that exists already."""

    rules = (
        Rule(
            cel="!has(self.caSecretRef) || self.url.startsWith('https://')",
            message="caSecretRef needs an https:// url",
            field=".caSecretRef",
        ),
    )

    url: Annotated[
        str,
        Field(min_length=8, max_length=2048, pattern=URL_PATTERN),
        Rule(cel="isURL(self)", message="must be a URL such as http://qdrant.ml:6333"),
    ]
    """URL of its REST API, such as `http://qdrant.ml:6333`."""
    api_key_secret_ref: SecretKeyRef | None = None
    """A Secret's key that holds the API key; it must be allowed to make and drop collections."""
    ca_secret_ref: SecretKeyRef | None = None
    """PEM bundle of the certificate authorities that its certificate is checked against."""


class QdrantStore(ApiModel):
    """The Qdrant server of this cache."""

    external: ExternalQdrant
    """Run by somebody else."""


class ExternalPostgres(ApiModel):
    """A PostgreSQL database that exists already, with the extension `vector` where vectors are searched."""

    dsn_secret_ref: SecretKeyRef
    """A Secret's key that holds the connection string, such as
    `postgresql://user:password@host:5432/database?sslmode=verify-full`."""
    ca_secret_ref: SecretKeyRef | None = None
    """PEM bundle of the certificate authorities that its certificate is checked against; then a connection
    without TLS is refused."""


class PostgresStore(ApiModel):
    """The PostgreSQL database of this cache."""

    external: ExternalPostgres
    """Run by somebody else."""


class StoresSpec(ApiModel):
    """The stores of this cache."""

    redis: RedisStore
    """Redis or Valkey; every layer but prefix needs it."""
    qdrant: QdrantStore | None = None
    """Qdrant, for layers that name it as their store."""
    postgres: PostgresStore | None = None
    """PostgreSQL, for layers that name it as their store."""
