"""All children of one InferenceCache, whole or not at all. Called by reconcile's plan."""

from __future__ import annotations

from cachewright.api.inference_cache import InferenceCache
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
from cachewright.render.redis import (
    build_redis_config_map,
    build_redis_network_policy,
    build_redis_secret,
    build_redis_service,
    build_redis_stateful_set,
)
from cachewright.render.settings import RenderSettings


def build_children(cache: InferenceCache, inputs: RenderInputs, settings: RenderSettings) -> list[Manifest]:
    """Render every child but the record, in the order in which they are applied."""
    return [
        build_keys_secret(cache, inputs.digest_key),
        build_admin_secret(cache, inputs.admin_token),
        *_redis(cache, inputs, settings),
        *_gateway(cache, inputs, settings),
    ]


def expected_names(cache_name: str, *, managed_redis: bool) -> frozenset[tuple[str, str]]:
    """Every (kind, name) that `build_children` may render for this object."""
    redis, gateway = redis_name(cache_name), gateway_name(cache_name)
    redis_kinds = ("Secret", "ConfigMap", "Service", "StatefulSet", "NetworkPolicy") if managed_redis else ()
    gateway_kinds = ("ConfigMap", "Service", "Deployment", "PodDisruptionBudget")
    return frozenset(
        {
            ("Secret", keys_name(cache_name)),
            ("Secret", admin_name(cache_name)),
            *((kind, redis) for kind in redis_kinds),
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


def _gateway(cache: InferenceCache, inputs: RenderInputs, settings: RenderSettings) -> list[Manifest]:
    budgets = [build_gateway_pod_disruption_budget(cache)] if cache.spec.gateway.replicas > 1 else []
    return [
        build_gateway_config_map(cache, inputs),
        build_gateway_service(cache),
        build_gateway_deployment(cache, inputs, settings),
        *budgets,
    ]
