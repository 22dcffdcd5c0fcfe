"""The record's ConfigMap: what `keys.record` holds, where gateways mount it."""

from __future__ import annotations

from cachewright.api.inference_cache import InferenceCache
from cachewright.keys.record import RECORD_DATA_KEY, Record
from cachewright.render.metadata import Manifest, child_metadata, record_name


def replaced_record(live: Manifest, record: Record) -> Manifest:
    """Put another record into a ConfigMap as it stands, where there is no object to render it from."""
    metadata = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    return {**live, "metadata": metadata, "data": {RECORD_DATA_KEY: record.to_json()}}


def build_record_config_map(
    cache: InferenceCache, record: Record, resource_version: str | None = None
) -> Manifest:
    """Render the record; with `resource_version` it replaces exactly that version."""
    metadata = child_metadata(cache, record_name(cache.metadata.name), "record")
    if resource_version is not None:
        metadata["resourceVersion"] = resource_version
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {RECORD_DATA_KEY: record.to_json()},
    }
