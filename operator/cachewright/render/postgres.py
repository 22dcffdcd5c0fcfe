"""The managed PostgreSQL with pgvector: settings, credentials, schema, volume, one pod, who may reach it."""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import ANNOTATION_CHECKSUM_PREFIX, postgres_name
from cachewright.api.quantities import parse_bytes
from cachewright.api.stores import ManagedPostgres
from cachewright.render.inputs import RenderInputs
from cachewright.render.managed_store import (
    build_store_network_policy,
    build_store_pod_disruption_budget,
    build_store_service,
    build_store_stateful_set,
    kept_resources,
    kept_security_context,
)
from cachewright.render.metadata import Manifest, child_metadata, secret_metadata
from cachewright.render.pods import (
    checksum,
    config_volume,
    container_security_context,
    encode_secret_data,
    mount,
    secret_volume,
)
from cachewright.render.settings import RenderSettings
from cachewright.render.text import render_text
from cachewright.render.volumes import build_volume_claim, claim_volume

POSTGRES_PORT: Final = 5432

POSTGRES_USER: Final = 999
"""The uid that PostgreSQL's official images use."""

DATABASE: Final = "cachewright"
LOGIN: Final = "cachewright"
"""Owner of the database, and no superuser."""

DATA_DIR: Final = "/data"
STARTUP_SECONDS: Final = 600
"""Longest for making the database, or replaying its log, before the pod is started anew."""

MIGRATIONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("vector", "install the extension vector", "CREATE EXTENSION IF NOT EXISTS vector;"),
)
"""Name, what it does, and SQL, in order; forward only. None ever changes: what is to be otherwise comes as a
further one. Tables of vectors are no part of it: each keyspace has its own, made and dropped by gateways."""


def build_postgres_secret(cache: InferenceCache, password: str) -> Manifest:
    """Render the password, and the connection string that carries it."""
    name = postgres_name(cache.metadata.name)
    host = f"{name}.{cache.metadata.namespace}.svc:{POSTGRES_PORT}"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": secret_metadata(cache, name, "postgres"),
        "data": encode_secret_data(
            {"password": password, "dsn": f"postgresql://{LOGIN}:{password}@{host}/{DATABASE}"}
        ),
    }


def build_postgres_config_map(cache: InferenceCache, managed: ManagedPostgres) -> Manifest:
    """Render settings, access rules, migrations, and the script that carries them out at each start."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(cache, postgres_name(cache.metadata.name), "postgres"),
        "data": postgres_files(cache, managed),
    }


def build_postgres_volume_claim(cache: InferenceCache, managed: ManagedPostgres) -> Manifest:
    """Render the volume that the database is kept on."""
    return build_volume_claim(cache, postgres_name(cache.metadata.name), "postgres", managed.storage)


def build_postgres_service(cache: InferenceCache) -> Manifest:
    """Render the address of the store."""
    name = postgres_name(cache.metadata.name)
    return build_store_service(cache, name, "postgres", "postgres", POSTGRES_PORT)


def build_postgres_network_policy(cache: InferenceCache, settings: RenderSettings) -> Manifest:
    """Let only this cache's gateways, its janitor and the operator reach the store."""
    name = postgres_name(cache.metadata.name)
    return build_store_network_policy(cache, name, "postgres", POSTGRES_PORT, settings)


def build_postgres_pod_disruption_budget(cache: InferenceCache) -> Manifest:
    """Render what a drain may do."""
    return build_store_pod_disruption_budget(cache, postgres_name(cache.metadata.name), "postgres")


def build_postgres_stateful_set(
    cache: InferenceCache, managed: ManagedPostgres, inputs: RenderInputs, settings: RenderSettings
) -> Manifest:
    """Render the one pod that runs the database."""
    name = postgres_name(cache.metadata.name)
    files = "\0".join(f"{file}\0{text}" for file, text in sorted(postgres_files(cache, managed).items()))
    annotations = {
        f"{ANNOTATION_CHECKSUM_PREFIX}config": checksum(files),
        f"{ANNOTATION_CHECKSUM_PREFIX}password": inputs.secret_checksums["postgres"],
    }
    pod = {
        "terminationGracePeriodSeconds": 60,
        "securityContext": kept_security_context(POSTGRES_USER),
        "containers": [_container(managed, settings)],
        "volumes": [
            config_volume("config", name),
            secret_volume("secrets", name, {"password": "password"}),
            claim_volume("data", name),
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    return build_store_stateful_set(cache, name, "postgres", managed, annotations, pod)


def postgres_files(cache: InferenceCache, managed: ManagedPostgres) -> dict[str, str]:
    """Return the files that the pod is started with, by name."""
    names: dict[str, str | int] = {"database": DATABASE, "user": LOGIN}
    label = f"{cache.metadata.namespace}/{cache.metadata.name}"
    migrations = {
        f"migration-{number:04}-{name}.sql": f"-- {what}\n{sql}\n"
        for number, (name, what, sql) in enumerate(MIGRATIONS, start=1)
    }
    return {
        "postgresql.conf": render_text(
            "postgresql.conf.j2",
            cache=label,
            port=POSTGRES_PORT,
            memory_mib=_mebibytes(managed),
            **memory_settings(managed),
        ),
        "pg_hba.conf": render_text("pg_hba.conf.j2", **names),
        "start.sh": render_text("postgres-start.sh.j2", **names),
        **migrations,
    }


def memory_settings(managed: ManagedPostgres) -> dict[str, str]:
    """Derive a server's settings from the memory of its container."""
    memory = _mebibytes(managed)
    return {
        "shared_buffers": f"{memory // 4}MB",
        "effective_cache_size": f"{memory * 3 // 4}MB",
        "maintenance_work_mem": f"{min(max(memory // 8, 16), 2047)}MB",
        "work_mem": f"{min(max(memory // 128, 4), 64)}MB",
        "max_connections": str(min(max(memory // 10, 50), 400)),
    }


def _mebibytes(managed: ManagedPostgres) -> int:
    return parse_bytes(managed.memory) // (1024 * 1024)


def _container(managed: ManagedPostgres, settings: RenderSettings) -> Manifest:
    pull_policy = managed.image_pull_policy or settings.image_pull_policy
    ready = f"pg_isready -q -h 127.0.0.1 -p {POSTGRES_PORT} -U {LOGIN} -d {DATABASE}"
    probe = {"exec": {"command": ["sh", "-c", ready]}, "timeoutSeconds": 3}
    stop = 'pg_ctl --pgdata="$PGDATA" --mode=fast --wait --silent stop'
    return {
        "name": "postgres",
        "image": managed.image or settings.postgres_image,
        **({"imagePullPolicy": pull_policy} if pull_policy else {}),
        "command": ["sh", "/etc/cachewright/config/start.sh"],
        "env": [{"name": "PGDATA", "value": f"{DATA_DIR}/pgdata"}],
        "ports": [{"name": "postgres", "containerPort": POSTGRES_PORT, "protocol": "TCP"}],
        "startupProbe": {**probe, "periodSeconds": 2, "failureThreshold": STARTUP_SECONDS // 2},
        "readinessProbe": {**probe, "periodSeconds": 5, "failureThreshold": 2},
        "livenessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 6},
        # SIGTERM would let it wait until every gateway has hung up.
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", stop]}}},
        "resources": kept_resources(managed),
        "securityContext": container_security_context(),
        "volumeMounts": [
            mount("config", "/etc/cachewright/config"),
            mount("secrets", "/etc/cachewright/secrets"),
            mount("data", DATA_DIR, read_only=False),
            mount("tmp", "/tmp", read_only=False),  # noqa: S108 - the pod's own emptyDir
        ],
    }
