"""What every managed store has: one pod, an address, those who may reach it, and what a drain may do.

Called by each store's builder module.
"""

from __future__ import annotations

from collections.abc import Mapping

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import LABEL_COMPONENT, LABEL_NAME
from cachewright.api.quantities import parse_bytes
from cachewright.api.stores import ManagedPostgres, ManagedQdrant, ManagedRedis
from cachewright.render.metadata import PRODUCT, Component, Manifest, child_metadata, selector_labels
from cachewright.render.pods import placement_fields, pod_security_context, resources
from cachewright.render.settings import RenderSettings


def build_store_service(
    cache: InferenceCache, name: str, component: Component, port_name: str, port: int
) -> Manifest:
    """Render the address of a store."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": child_metadata(cache, name, component),
        "spec": {
            "type": "ClusterIP",
            "selector": selector_labels(cache, component),
            "ports": [{"name": port_name, "port": port, "targetPort": port_name, "protocol": "TCP"}],
        },
    }


def build_store_stateful_set(
    cache: InferenceCache,
    name: str,
    component: Component,
    managed: ManagedRedis | ManagedQdrant | ManagedPostgres,
    annotations: Mapping[str, str],
    pod: Manifest,
) -> Manifest:
    """Render the one pod of a store; `pod` is its spec but for what all have alike."""
    labels = selector_labels(cache, component)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": child_metadata(cache, name, component),
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": dict(annotations)},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    **pod,
                    **placement_fields(managed, labels),
                },
            },
        },
    }


def build_store_network_policy(
    cache: InferenceCache, name: str, component: Component, port: int, settings: RenderSettings
) -> Manifest:
    """Let only this cache's gateways, its janitor and the operator reach a store, and the store nobody."""
    operator_namespace = {"kubernetes.io/metadata.name": settings.operator_namespace}
    operator_labels = {LABEL_NAME: PRODUCT, LABEL_COMPONENT: "operator"}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": child_metadata(cache, name, component),
        "spec": {
            "podSelector": {"matchLabels": selector_labels(cache, component)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "ports": [{"port": port, "protocol": "TCP"}],
                    "from": [
                        {"podSelector": {"matchLabels": selector_labels(cache, "gateway")}},
                        {"podSelector": {"matchLabels": selector_labels(cache, "janitor")}},
                        {
                            "namespaceSelector": {"matchLabels": operator_namespace},
                            "podSelector": {"matchLabels": operator_labels},
                        },
                    ],
                }
            ],
        },
    }


def build_store_pod_disruption_budget(cache: InferenceCache, name: str, component: Component) -> Manifest:
    """Render the promise that a drain may take the one pod: what it holds is on its volume."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": child_metadata(cache, name, component),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector_labels(cache, component)}},
    }


def kept_security_context(user: int) -> Manifest:
    """Security of a pod with a volume, whose files are not gone through at each start, many as they are."""
    return {**pod_security_context(user), "fsGroupChangePolicy": "OnRootMismatch"}


def kept_resources(managed: ManagedQdrant | ManagedPostgres) -> Manifest:
    """Resources of a pod with a volume: its `memory`, in whole MiB, unless told otherwise."""
    memory = f"{-(-parse_bytes(managed.memory) // (1024 * 1024))}Mi"
    return resources(managed, {"requests": {"cpu": "250m", "memory": memory}, "limits": {"memory": memory}})
