"""Reasons not to write anything: small pure checks, named as facts, the first failure wins.

Called by plan. While one of them holds, the last good state keeps running untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cachewright.api.conditions import Reason
from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import LABEL_USE, postgres_name, qdrant_name
from cachewright.api.quantities import parse_quantity
from cachewright.api.stores import is_clustered
from cachewright.keys.record import Record
from cachewright.reconcile.sizes_told import requested_storage
from cachewright.reconcile.state import Finding, Observed, SecretProblem, SecretState

DEFAULT_CLASS: Final = "the default"
"""Stands for the cluster's own StorageClass, whose name we do not know."""

Check = Callable[[InferenceCache, Record | None, Observed], Finding | None]


def is_suspended(cache: InferenceCache, _record: Record | None, _observed: Observed) -> Finding | None:
    """The user asked for hands off."""
    if not cache.spec.suspend:
        return None
    return Finding(
        Reason.SUSPENDED, "spec.suspend is true: nothing is changed until it is false again.", stalled=False
    )


def immutable_field_changed(
    cache: InferenceCache, record: Record | None, _observed: Observed
) -> Finding | None:
    """A choice changed that CEL should have refused; an older CRD may have let it through."""
    if record is None:
        return None
    for path, now in immutable_choices(cache).items():
        before = record.immutable.get(path, now)
        if before != now:
            return Finding(
                Reason.IMMUTABLE_FIELD,
                f"spec.{path} cannot change from {before} to {now}; set it back, or create another object.",
                stalled=True,
            )
    return None


def volume_would_shrink(cache: InferenceCache, _record: Record | None, observed: Observed) -> Finding | None:
    """A volume was asked to shrink, past CEL, or was grown behind our back; no volume shrinks."""
    for path, (name, size) in storage_sizes(cache).items():
        live, what = _live_size(observed, name)
        if parse_quantity(live or size) > parse_quantity(size):
            message = (
                f"spec.{path} is {size}, but {what} {name} asks for {live}, and volumes cannot shrink;"
                f" set it to {live} or more."
            )
            return Finding(Reason.IMMUTABLE_FIELD, message, stalled=True)
    return None


def cache_id_changed(cache: InferenceCache, record: Record | None, _observed: Observed) -> Finding | None:
    """The keys of a cache cannot be renamed."""
    wanted = cache.spec.cache_id
    if record is None or wanted is None or wanted == record.cache_id:
        return None
    message = f"spec.cacheID cannot change from {record.cache_id} to {wanted}; set it back, or leave it out."
    return Finding(Reason.IMMUTABLE_FIELD, message, stalled=True)


def cache_id_is_in_use(cache: InferenceCache, _record: Record | None, observed: Observed) -> Finding | None:
    """Two objects under one cache id would undo each other's records."""
    if not observed.rivals:
        return None
    message = (
        f"spec.cacheID {cache.spec.cache_id} is held by {observed.rivals[0]}; delete that, or leave it out."
    )
    return Finding(Reason.CACHE_ID_IN_USE, message, stalled=True)


def template_is_missing(cache: InferenceCache, _record: Record | None, observed: Observed) -> Finding | None:
    """Without its content nobody knows which answers it stands for."""
    template = cache.spec.prompt_template
    if template is None or template.from_config_map is None or observed.template:
        return None
    source = template.from_config_map
    message = (
        f"spec.promptTemplate.fromConfigMap: ConfigMap {source.name} has no key {source.key} with content."
    )
    return Finding(Reason.TEMPLATE_NOT_FOUND, message, stalled=True)


def name_is_taken(_cache: InferenceCache, _record: Record | None, observed: Observed) -> Finding | None:
    """An object under a name we need is somebody else's."""
    for (kind, name), foreign in sorted(observed.foreign.items()):
        if foreign.leaving:
            return Finding(
                Reason.PROGRESSING, f"{kind} {name} {foreign.whose}; waiting until it is gone.", stalled=False
            )
        return Finding(
            Reason.NAME_CONFLICT,
            f"{kind} {name} exists and {foreign.whose}; it is left alone. "
            "Delete or rename it, or rename this object.",
            stalled=True,
        )
    return None


def provider_is_missing(_cache: InferenceCache, _record: Record | None, observed: Observed) -> Finding | None:
    """What is to run a store is not installed, or may not be looked at."""
    return observed.cluster.problem if observed.cluster is not None else None


def secret_is_unusable(_cache: InferenceCache, _record: Record | None, observed: Observed) -> Finding | None:
    """A referenced Secret is missing, unlabelled or empty."""
    for state in observed.secrets:
        if state.problem is not None:
            return _secret_finding(state, str(observed.document["metadata"]["namespace"]))
    return None


BLOCKING_CHECKS: Final[tuple[Check, ...]] = (
    is_suspended,  # hands off means hands off, whatever else is wrong
    immutable_field_changed,  # nothing may be rendered from a forbidden change
    volume_would_shrink,  # the API server would refuse it, in words of its own
    cache_id_changed,  # the keys of what is stored cannot be renamed
    cache_id_is_in_use,  # nor may two objects write one record
    name_is_taken,  # half a rendering beside somebody's object helps nobody
    provider_is_missing,  # half a cache before its store helps nobody either
    secret_is_unusable,  # keep the last good rendering
    template_is_missing,  # keep the last good keyspace
)


def first_finding(cache: InferenceCache, record: Record | None, observed: Observed) -> Finding | None:
    """Run the blocking checks in order."""
    for check in BLOCKING_CHECKS:
        finding = check(cache, record, observed)
        if finding is not None:
            return finding
    return None


def immutable_choices(cache: InferenceCache) -> dict[str, str]:
    """Choices that must not change, by field path; kept in the record."""
    stores = cache.spec.stores
    managed = stores.redis.managed
    choices = {"stores.redis": f"managed {managed.flavor}" if managed else "external"}
    for field, store in (("stores.qdrant", stores.qdrant), ("stores.postgres", stores.postgres)):
        if store is not None:
            choices[field] = "managed" if store.managed else "external"
        if store is not None and store.managed is not None:
            chosen = store.managed.storage.storage_class_name
            choices[f"{field}.managed.storage.storageClassName"] = chosen or DEFAULT_CLASS
    if is_clustered(stores):
        choices["stores.postgres"] = "managed by CloudNativePG"
    return choices


def storage_sizes(cache: InferenceCache) -> dict[str, tuple[str, str]]:
    """Name of the volume claim and size of each managed store's volume, by field path."""
    name, stores = cache.metadata.name, cache.spec.stores
    kept = (
        ("stores.qdrant", qdrant_name(name), stores.qdrant),
        ("stores.postgres", postgres_name(name), stores.postgres),
    )
    return {
        f"{field}.managed.storage.size": (claim, store.managed.storage.size)
        for field, claim, store in kept
        if store is not None and store.managed is not None
    }


def _live_size(observed: Observed, name: str) -> tuple[str, str]:
    """Return the size of a store's volume as it is asked for now, empty where it is not, and who asks."""
    claim = observed.children.get(("PersistentVolumeClaim", name))
    if claim is not None:
        return requested_storage(claim), "volume claim"
    cluster = observed.children.get(("Cluster", name))
    return (str(cluster["spec"]["storage"]["size"]) if cluster else ""), "Cluster"


def _secret_finding(state: SecretState, namespace: str) -> Finding:
    use = state.use
    if state.problem is SecretProblem.UNLABELLED:
        command = f"kubectl -n {namespace} label secret {use.name} {LABEL_USE}=true"
        return Finding(
            Reason.SECRET_UNLABELLED,
            f"{use.field_path}: Secret {use.name} may not be used without a label; to allow it: {command}",
            stalled=True,
        )
    what = {
        SecretProblem.MISSING: f"Secret {use.name} does not exist; create it, labelled {LABEL_USE}=true.",
        SecretProblem.KEY_MISSING: f"Secret {use.name} has no key {use.key}; add it.",
        SecretProblem.EMPTY: f"Secret {use.name} has an empty key {use.key}; fill it.",
    }[state.problem or SecretProblem.MISSING]
    return Finding(Reason.SECRET_NOT_FOUND, f"{use.field_path}: {what}", stalled=True)
