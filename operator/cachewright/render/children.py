"""All children of one InferenceCache, whole or not at all. Called by reconcile's plan."""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import postgres_name, qdrant_name
from cachewright.api.stores import StoresSpec, is_clustered
from cachewright.render.cloudnative_pg import build_cluster, build_cluster_secret, build_database
from cachewright.render.gateway import (
    build_admin_secret,
    build_gateway_config_map,
    build_gateway_deployment,
    build_gateway_pod_disruption_budget,
    build_gateway_service,
    build_keys_secret,
)
from cachewright.render.inputs import RenderInputs
from cachewright.render.metadata import Manifest, admin_name, gateway_name, keys_name, redis_name
from cachewright.render.postgres import (
    build_postgres_config_map,
    build_postgres_network_policy,
    build_postgres_pod_disruption_budget,
    build_postgres_secret,
    build_postgres_service,
    build_postgres_stateful_set,
    build_postgres_volume_claim,
)
from cachewright.render.qdrant import (
    build_qdrant_config_map,
    build_qdrant_network_policy,
    build_qdrant_pod_disruption_budget,
    build_qdrant_secret,
    build_qdrant_service,
    build_qdrant_stateful_set,
    build_qdrant_volume_claim,
)
from cachewright.render.redis import (
    build_redis_config_map,
    build_redis_network_policy,
    build_redis_secret,
    build_redis_service,
    build_redis_stateful_set,
)
from cachewright.render.settings import RenderSettings

CLUSTER_KINDS: Final = ("Secret", "Cluster", "Database")
"""What is made where CloudNativePG runs PostgreSQL."""


def build_children(cache: InferenceCache, inputs: RenderInputs, settings: RenderSettings) -> list[Manifest]:
    """Render every child but the record, in the order in which they are applied."""
    return [
        build_keys_secret(cache, inputs.digest_key),
        build_admin_secret(cache, inputs.admin_token),
        *_redis(cache, inputs, settings),
        *_qdrant(cache, inputs, settings),
        *_postgres(cache, inputs, settings),
        *_gateway(cache, inputs, settings),
    ]


def expected_names(cache_name: str, stores: StoresSpec) -> frozenset[tuple[str, str]]:
    """Every (kind, name) that `build_children` may render for an object of that name with those stores."""
    redis, gateway = redis_name(cache_name), gateway_name(cache_name)
    redis_kinds = ("Secret", "ConfigMap", "Service", "StatefulSet", "NetworkPolicy")
    kept_kinds = (*redis_kinds, "PersistentVolumeClaim", "PodDisruptionBudget")
    postgres_kinds = CLUSTER_KINDS if is_clustered(stores) else kept_kinds
    managed = {
        redis: redis_kinds if stores.redis.managed else (),
        qdrant_name(cache_name): kept_kinds if stores.qdrant and stores.qdrant.managed else (),
        postgres_name(cache_name): postgres_kinds if stores.postgres and stores.postgres.managed else (),
    }
    gateway_kinds = ("ConfigMap", "Service", "Deployment", "PodDisruptionBudget")
    return frozenset(
        {
            ("Secret", keys_name(cache_name)),
            ("Secret", admin_name(cache_name)),
            *((kind, name) for name, kinds in managed.items() for kind in kinds),
            *((kind, gateway) for kind in gateway_kinds),
        }
    )


def _redis(cache: InferenceCache, inputs: RenderInputs, settings: RenderSettings) -> list[Manifest]:
    managed = cache.spec.stores.redis.managed
    if managed is None or inputs.redis is None:
        return []
    policies = [build_redis_network_policy(cache, settings)] if settings.network_policies else []
    return [
        build_redis_secret(cache, inputs.redis, inputs.users_acl),
        build_redis_config_map(cache, managed),
        *policies,
        build_redis_service(cache),
        build_redis_stateful_set(cache, managed, inputs, settings),
    ]


def _qdrant(cache: InferenceCache, inputs: RenderInputs, settings: RenderSettings) -> list[Manifest]:
    managed = cache.spec.stores.qdrant.managed if cache.spec.stores.qdrant else None
    if managed is None:
        return []
    policies = [build_qdrant_network_policy(cache, settings)] if settings.network_policies else []
    return [
        build_qdrant_secret(cache, inputs.qdrant_api_key),
        build_qdrant_config_map(cache),
        *policies,
        build_qdrant_service(cache),
        build_qdrant_volume_claim(cache, managed),
        build_qdrant_stateful_set(cache, managed, inputs, settings),
        build_qdrant_pod_disruption_budget(cache),
    ]


def _postgres(cache: InferenceCache, inputs: RenderInputs, settings: RenderSettings) -> list[Manifest]:
    managed = cache.spec.stores.postgres.managed if cache.spec.stores.postgres else None
    if managed is None:
        return []
    if is_clustered(cache.spec.stores):
        return [
            build_cluster_secret(cache, inputs.postgres_password),
            build_cluster(cache, managed, settings),
            build_database(cache),
        ]
    policies = [build_postgres_network_policy(cache, settings)] if settings.network_policies else []
    return [
        build_postgres_secret(cache, inputs.postgres_password),
        build_postgres_config_map(cache, managed),
        *policies,
        build_postgres_service(cache),
        build_postgres_volume_claim(cache, managed),
        build_postgres_stateful_set(cache, managed, inputs, settings),
        build_postgres_pod_disruption_budget(cache),
    ]


def _gateway(cache: InferenceCache, inputs: RenderInputs, settings: RenderSettings) -> list[Manifest]:
    budgets = [build_gateway_pod_disruption_budget(cache)] if cache.spec.gateway.replicas > 1 else []
    return [
        build_gateway_config_map(cache, inputs),
        build_gateway_service(cache),
        build_gateway_deployment(cache, inputs, settings),
        *budgets,
    ]
