"""Our finalizer: set only under `deletionPolicy: Delete`, so that all other objects end without us. Pure."""

from __future__ import annotations

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import API_VERSION, FINALIZER, KIND
from cachewright.reconcile.state import Manifest


def wanted_finalizer(document: Manifest, cache: InferenceCache) -> Manifest | None:
    """Return what to apply so that the finalizer stands or is gone, as the spec wants; None where it does."""
    wanted = cache.spec.deletion_policy == "Delete"
    return None if wanted == has_finalizer(document) else finalizer_manifest(document, wanted=wanted)


def finalizer_manifest(document: Manifest, *, wanted: bool) -> Manifest:
    """Render our claim on the finalizers of this very object; not wanted, it takes ours away."""
    metadata = document["metadata"]
    this = {key: metadata[key] for key in ("name", "namespace", "uid")}
    claim = {"finalizers": [FINALIZER]} if wanted else {}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": this | claim}


def has_finalizer(document: Manifest) -> bool:
    """Tell whether the object waits for us at its end."""
    return FINALIZER in (document["metadata"].get("finalizers") or [])
