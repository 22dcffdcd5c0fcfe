"""What every managed store has: an address, those who may reach it, and what a drain may do.

Called by each store's builder module.
"""

from __future__ import annotations

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import LABEL_COMPONENT, LABEL_NAME
from cachewright.render.metadata import PRODUCT, Component, Manifest, child_metadata, selector_labels
from cachewright.render.pods import pod_security_context
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
