"""`spec.stores`: where layers keep their entries; each store is managed by us or external, never both."""

from __future__ import annotations

from typing import Literal

from cachewright.api.base import ApiModel, Rule
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


class StoresSpec(ApiModel):
    """The stores of this cache."""

    redis: RedisStore
    """Redis or Valkey; every layer but prefix needs it."""
