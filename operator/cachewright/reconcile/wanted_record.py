"""From a spec and the record as it stands to the record as it must be. Pure.

Called by plan, by local mode and by `cachewright explain`, so that a change means the same in all of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime

from cachewright.api.durations import parse_duration_seconds
from cachewright.api.inference_cache import InferenceCache, InferenceCacheSpec
from cachewright.api.prompt_template import ObjectPromptTemplate
from cachewright.keys.record import Record
from cachewright.reconcile.checks import immutable_choices
from cachewright.reconcile.layer_rows import LayerRow, layer_rows
from cachewright.reconcile.rotation import RotationRules, at_next_revision, next_record
from cachewright.reconcile.serving import Wish, parse_serves, serving
from cachewright.reconcile.workload import WorkloadSeen


def wanted_record(
    cache: InferenceCache,
    record: Record,
    key_id: str,
    now: datetime,
    workload: WorkloadSeen | None = None,
    serves: str = "",
    *,
    is_short_of_memory: bool = False,
) -> Record:
    """Move layers to the keyspaces that the spec and the workload's pods call for; leave all others alone.

    `workload` None means that there are no pods to look at, as in local mode: nothing is fenced then.
    `serves` is the object's annotation `ANNOTATION_WORKLOAD_SERVES`, empty where it has none.
    """
    fenced = workload is not None and is_fenced(cache.spec)
    wish = Wish(version=cache.spec.model.version, fenced=fenced, serves=parse_serves(serves))
    seen = workload or WorkloadSeen()
    served = serving(record, wish, seen)
    rows = rows_at(cache.spec, key_id, served.version)
    rules = replace(rules_of(cache.spec), is_short_of_memory=is_short_of_memory)
    wanted = next_record(record, rows, served, wish, seen, rules, now)
    return at_next_revision(record, replace(wanted, immutable=immutable_choices(cache)))


def with_template(cache: InferenceCache, digest: str) -> InferenceCache:
    """Give the prompt template that a ConfigMap holds for its version, by its SHA-256 in hex."""
    if cache.spec.prompt_template is None or cache.spec.prompt_template.from_config_map is None:
        return cache
    template = ObjectPromptTemplate(version=f"sha256:{digest}")
    return cache.model_copy(update={"spec": cache.spec.model_copy(update={"prompt_template": template})})


def template_digest(text: str) -> str:
    """Return the digest of a prompt template's text, as a ConfigMap holds it."""
    return hashlib.sha256(text.encode()).hexdigest()


def rows_at(spec: InferenceCacheSpec, key_id: str, version: str) -> tuple[LayerRow, ...]:
    """Return the rows of `spec` as if its model's version were this one.

    While nobody knows which version is served, it is empty: what depends on it has no keyspace until then.
    """
    model = spec.model.model_copy(update={"version": version})
    rows = layer_rows(spec.model_copy(update={"model": model}), key_id)
    return tuple(row for row in rows if version or not row.depends_on_model)


def is_fenced(spec: InferenceCacheSpec) -> bool:
    """Tell whether the workload's pods decide what is stored, and when a new version is switched to."""
    return spec.model.workload_ref is not None and spec.rotation.fence != "None"


def rules_of(spec: InferenceCacheSpec) -> RotationRules:
    """Return what the spec says about keyspaces that go out of use."""
    return RotationRules(
        retain_seconds=parse_duration_seconds(spec.rotation.retain),
        max_retained=spec.rotation.max_retained,
        heartbeat_seconds=round(parse_duration_seconds(spec.rotation.heartbeat_timeout)),
        epoch=spec.epoch,
    )
