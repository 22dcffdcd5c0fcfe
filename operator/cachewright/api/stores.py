"""`spec.stores`: where layers keep their entries; each store is managed by us or external, never both."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.model import URL_PATTERN
from cachewright.api.quantities import Quantity
from cachewright.api.references import ObjectName, SecretKeyRef
from cachewright.api.workload import MEMORY_LIMIT_EXCEEDS_DATA, PodPlacement

MEMORY_LIMIT_COVERS_SETTINGS = Rule(
    cel=(
        "!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits)"
        " || quantity(string(self.resources.limits['memory'])).compareTo(quantity(self.memory)) >= 0"
    ),
    message="resources.limits.memory must not be less than memory; leave it out to have it derived",
    field=".resources",
)
"""A server whose settings count on more than its container may use is killed."""


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
    ca_secret_ref: SecretKeyRef | None = None
    """PEM bundle of certificate authorities that count beside the system's; the URL must be one of TLS."""


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


class VolumeSpec(ApiModel):
    """The volume that a managed store keeps its data on."""

    size: Quantity = "10Gi"
    """Size asked for; it may grow, where the storage class can, and never shrink."""
    storage_class_name: ObjectName | None = None
    """StorageClass of the volume; the cluster's default where not given. Immutable."""


class ManagedQdrant(PodPlacement):
    """A Qdrant server that the operator runs: one pod with a volume.

    For several nodes bring a cluster of your own as `external`.
    """

    rules = (MEMORY_LIMIT_COVERS_SETTINGS,)

    memory: Quantity = "1Gi"
    """Memory of the container, asked for and at most. Graphs and 8-bit copies of vectors are kept in it;
    vectors and answers are on the volume, and read through whatever is free."""
    storage: VolumeSpec = Field(default_factory=VolumeSpec)
    """The volume."""


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
    """The Qdrant server of this cache: exactly one of the fields."""

    rules = (
        Rule(
            cel="has(self.managed) != has(self.external)",
            message="stores.qdrant needs exactly one of managed and external",
        ),
    )

    managed: ManagedQdrant | None = None
    """Run by the operator."""
    external: ExternalQdrant | None = None
    """Run by somebody else."""


class ManagedPostgres(PodPlacement):
    """A PostgreSQL server with pgvector: one pod with a volume, or a Cluster of CloudNativePG.

    One pod is for people without a database; for backups bring one of your own as `external`.
    """

    rules = (
        MEMORY_LIMIT_COVERS_SETTINGS,
        Rule(
            cel="self.instances == 1 || self.provider == 'CloudNativePG'",
            message="instances above 1 need provider CloudNativePG",
            field=".instances",
        ),
    )

    provider: Literal["StatefulSet", "CloudNativePG"] = "StatefulSet"
    """Who runs it: the operator itself, as one pod, or CloudNativePG 1.26 or newer, which must be there,
    and is given a Cluster and a Database. Immutable."""
    instances: Annotated[int, Field(ge=1, le=9)] = 1
    """Servers; those beyond the first replicate it and stand in for it. Only CloudNativePG runs several."""
    memory: Quantity = "1Gi"
    """Memory of each container, asked for and at most; the server's settings are derived from it."""
    storage: VolumeSpec = Field(default_factory=VolumeSpec)
    """The volume, of each server."""


class ExternalPostgres(ApiModel):
    """A PostgreSQL database that exists already, with the extension `vector` where vectors are searched."""

    dsn_secret_ref: SecretKeyRef
    """A Secret's key that holds the connection string, such as
    `postgresql://user:password@host:5432/database?sslmode=verify-full`."""
    ca_secret_ref: SecretKeyRef | None = None
    """PEM bundle of the certificate authorities that its certificate is checked against; then a connection
    without TLS is refused."""


class PostgresStore(ApiModel):
    """The PostgreSQL database of this cache: exactly one of the fields."""

    rules = (
        Rule(
            cel="has(self.managed) != has(self.external)",
            message="stores.postgres needs exactly one of managed and external",
        ),
    )

    managed: ManagedPostgres | None = None
    """Run by the operator."""
    external: ExternalPostgres | None = None
    """Run by somebody else."""


class StoresSpec(ApiModel):
    """The stores of this cache."""

    redis: RedisStore
    """Redis or Valkey; every layer but prefix needs it."""
    qdrant: QdrantStore | None = None
    """Qdrant, for layers that name it as their store."""
    postgres: PostgresStore | None = None
    """PostgreSQL, for layers that name it as their store."""


def is_clustered(stores: StoresSpec) -> bool:
    """Tell whether CloudNativePG runs PostgreSQL."""
    managed = stores.postgres.managed if stores.postgres else None
    return managed is not None and managed.provider == "CloudNativePG"
