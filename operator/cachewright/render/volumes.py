"""The volume claim of a managed store, as a child of its own. Called by the store's builder module.

It is no template of the StatefulSet: those never change, so that growing one would mean to replace the
StatefulSet around a running pod. A claim of our own grows in place, and goes with the object.
"""

from __future__ import annotations

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.stores import VolumeSpec
from cachewright.render.metadata import Component, Manifest, child_metadata


def build_volume_claim(
    cache: InferenceCache, name: str, component: Component, storage: VolumeSpec
) -> Manifest:
    """Render the claim; only its size ever changes."""
    chosen = storage.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": child_metadata(cache, name, component),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage.size}},
            **({"storageClassName": chosen} if chosen else {}),
        },
    }


def claim_volume(name: str, claim: str) -> Manifest:
    """Mount a volume claim."""
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}
