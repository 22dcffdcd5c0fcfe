"""The PostgreSQL that CloudNativePG runs for us: its Cluster, its Database, and the Secret that it reads.

Field names and meanings are those of CloudNativePG 1.26, the first whose Database installs extensions.
What it makes of them (pods, volume claims, Services `NAME-rw` and so on) is its own business.
Called by `children`.
"""

from __future__ import annotations

from typing import Any, Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import LABEL_CLOUDNATIVE_PG_CLUSTER, postgres_name
from cachewright.api.stores import ManagedPostgres
from cachewright.api.workload import PodPlacement
from cachewright.render.managed_store import kept_resources
from cachewright.render.metadata import Manifest, child_metadata, secret_metadata
from cachewright.render.pods import encode_secret_data
from cachewright.render.postgres import DATABASE, LOGIN, POSTGRES_PORT, memory_settings
from cachewright.render.settings import RenderSettings

CLOUDNATIVE_PG: Final = "postgresql.cnpg.io/v1"

SECRET_TYPE: Final = "kubernetes.io/basic-auth"  # noqa: S105 - a type, not a password
"""What CloudNativePG asks of a Secret with credentials; no other Secret of ours has it."""

LABEL_RELOAD: Final = "cnpg.io/reload"
"""On a Secret: a change of it counts at once."""

PARAMETERS: Final = {
    "autovacuum_vacuum_scale_factor": "0.05",
    "jit": "off",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_statement": "none",
    "max_parallel_maintenance_workers": "0",
    "max_parallel_workers_per_gather": "0",
    "max_wal_size": "512MB",
    "synchronous_commit": "off",
    "wal_compression": "on",
}
"""As in the configuration of the pod that we run ourselves, where the reasons stand; what CloudNativePG keeps
for itself is left out."""

_AFFINITIES: Final = {
    "nodeAffinity": "nodeAffinity",
    "podAffinity": "additionalPodAffinity",
    "podAntiAffinity": "additionalPodAntiAffinity",
}
"""From the parts of a pod's affinity to what a Cluster calls them."""


def build_cluster_secret(cache: InferenceCache, password: str) -> Manifest:
    """Render the credentials that the owner of the database is made with, and the connection string."""
    name = postgres_name(cache.metadata.name)
    metadata = secret_metadata(cache, name, "postgres")
    host = f"{name}-rw.{cache.metadata.namespace}.svc:{POSTGRES_PORT}"
    dsn = f"postgresql://{LOGIN}:{password}@{host}/{DATABASE}?sslmode=require"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": {**metadata, "labels": {**metadata["labels"], LABEL_RELOAD: "true"}},
        "data": encode_secret_data({"username": LOGIN, "password": password, "dsn": dsn}),
    }


def build_cluster(cache: InferenceCache, managed: ManagedPostgres, settings: RenderSettings) -> Manifest:
    """Render the servers: one that takes writes, and replicas that stand in for it."""
    name = postgres_name(cache.metadata.name)
    pull_policy = managed.image_pull_policy or settings.image_pull_policy
    storage_class = managed.storage.storage_class_name
    owner = {"database": DATABASE, "owner": LOGIN, "secret": {"name": name}}
    return {
        "apiVersion": CLOUDNATIVE_PG,
        "kind": "Cluster",
        "metadata": child_metadata(cache, name, "postgres"),
        "spec": {
            "instances": managed.instances,
            "imageName": managed.image or settings.cloudnative_pg_image,
            **({"imagePullPolicy": pull_policy} if pull_policy else {}),
            "bootstrap": {"initdb": {**owner, "encoding": "UTF8"}},
            "storage": {
                "size": managed.storage.size,
                **({"storageClass": storage_class} if storage_class else {}),
            },
            "resources": kept_resources(managed),
            "postgresql": {"parameters": {**PARAMETERS, **memory_settings(managed)}},
            # Of a single one the budget would hold up every drain.
            "enablePDB": managed.instances > 1,
            **_placement(managed, name),
        },
    }


def build_database(cache: InferenceCache) -> Manifest:
    """Render the database, for the extension in it: its owner may not install that."""
    name = postgres_name(cache.metadata.name)
    return {
        "apiVersion": CLOUDNATIVE_PG,
        "kind": "Database",
        "metadata": child_metadata(cache, name, "postgres"),
        "spec": {
            "cluster": {"name": name},
            "name": DATABASE,
            "owner": LOGIN,
            "ensure": "present",
            # It goes with the cluster's volumes; dropping it first would hold up the object's end.
            "databaseReclaimPolicy": "retain",
            "extensions": [{"name": "vector", "ensure": "present"}],
        },
    }


def _placement(managed: PodPlacement, name: str) -> Manifest:
    """Render where the pods go; spreading over nodes, as far as possible, is CloudNativePG's own default."""
    given = managed.model_dump(by_alias=True, exclude_none=True)
    affinity: dict[str, Any] = {
        _AFFINITIES.get(part, part): value for part, value in (managed.affinity or {}).items()
    }
    affinity |= {part: given[part] for part in ("nodeSelector", "tolerations") if part in given}
    selector = {"labelSelector": {"matchLabels": {LABEL_CLOUDNATIVE_PG_CLUSTER: name}}}
    fields: Manifest = {
        "affinity": affinity,
        "topologySpreadConstraints": [
            {**each, **selector} for each in given.get("topologySpreadConstraints", [])
        ],
        "priorityClassName": managed.priority_class_name,
        "imagePullSecrets": given.get("imagePullSecrets"),
    }
    return {field: value for field, value in fields.items() if value}
