"""What one pass writes, from what it has seen. Pure: the same input gives the same plan.

`service` calls it between observe and apply.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from datetime import datetime

from cachewright.api.conditions import Reason
from cachewright.api.durations import parse_duration_seconds
from cachewright.api.inference_cache import InferenceCache
from cachewright.crd.validation import load
from cachewright.errors import InvalidSpec
from cachewright.keys.digest import key_id_of
from cachewright.keys.record import Record
from cachewright.reconcile.checks import first_finding
from cachewright.reconcile.drift import is_as_wanted, with_rendered_digest
from cachewright.reconcile.finalizer import wanted_finalizer
from cachewright.reconcile.generated import (
    admin_token_of,
    digest_key_of,
    has_digest_key,
    postgres_password_of,
    qdrant_api_key_of,
    redis_credentials_of,
)
from cachewright.reconcile.janitor_job import wanted_job
from cachewright.reconcile.known_record import best_record, parse_record, restored_record
from cachewright.reconcile.memory_told import is_short_of_memory
from cachewright.reconcile.planned import planned_changes
from cachewright.reconcile.prefix.children import prefix_children
from cachewright.reconcile.prefix.wish import prefix_wish
from cachewright.reconcile.rotation import at_next_revision, next_due, with_permission, without_reclaimed
from cachewright.reconcile.state import ChildId, Finding, Manifest, Observed, Plan, PlannedChange, RecordWrite
from cachewright.reconcile.wanted_record import wanted_record, with_template
from cachewright.reconcile.workload import WorkloadSeen
from cachewright.render.children import build_children
from cachewright.render.inputs import RenderInputs
from cachewright.render.metadata import keys_name, record_name
from cachewright.render.record import build_record_config_map, replaced_record
from cachewright.render.settings import RenderSettings
from cachewright.stores.reclaim import ReclaimState
from cachewright.stores.redis_acl import acl_lines


def plan(observed: Observed, settings: RenderSettings, now: datetime) -> Plan:
    """Decide what to write; a plan with `blocked` set writes nothing but status and write permission."""
    return replace(_plan(observed, settings, now), probe_request=_probe_request(observed))


def _plan(observed: Observed, settings: RenderSettings, now: datetime) -> Plan:
    record, record_version = best_record(observed, now)
    try:
        cache = load(observed.document)
    except InvalidSpec as e:
        finding = Finding(Reason.INVALID_SPEC, str(e), stalled=True)
        return _blocked(finding, None, record, observed)
    blocked = first_finding(cache, record, observed)
    if blocked is not None:
        changes = _foreseen(observed, settings, now) if blocked.reason is Reason.SUSPENDED else ()
        return replace(_blocked(blocked, cache, record, observed), changes=changes)
    key_id = key_id_of(digest_key_of(observed))
    before = record or restored_record(observed, now)
    done = {keyspace for keyspace, each in observed.store.reclaims.items() if each.state is ReclaimState.DONE}
    wanted = wanted_record(
        with_template(cache, observed.template),
        without_reclaimed(before, done),
        key_id,
        now,
        observed.workload,
        observed.serves,
        is_short_of_memory=is_short_of_memory(observed),
    )
    wanted = at_next_revision(before, wanted)
    children = build_children(cache, _inputs(observed, wanted, cache), settings)
    prefix = prefix_children(cache, prefix_wish(cache.spec), observed, now)
    marked = [with_rendered_digest(child) for child in (*children, *prefix.applies)]
    stale = record is None or wanted != record or not _record_is_as_wanted(cache, observed, wanted)
    manifest = build_record_config_map(cache, wanted, record_version)
    applies = tuple(child for child in marked if not _stands(observed, child))
    deletes = tuple(_superfluous(observed, marked, prefix.keeps))
    return Plan(
        cache=cache,
        record=wanted,
        finalizer=wanted_finalizer(observed.document, cache),
        keys=None if has_digest_key(observed) else _keys(observed, marked),
        record_write=RecordWrite(wanted, manifest) if stale else None,
        applies=applies,
        stamp=prefix.stamp,
        release=prefix.release,
        deletes=deletes,
        changes=planned_changes(observed, applies, prefix.stamp, deletes),
        janitor=wanted_job(cache, wanted, observed, settings),
        publish=wanted if _store_is_behind(observed, wanted) else None,
        beat=wanted if wanted.fenced else None,
        due=next_due(wanted, parse_duration_seconds(cache.spec.rotation.deadline), now),
    )


def _probe_request(observed: Observed) -> str | None:
    """Ask gateways to try their layers after each change of the stores' pods, once Redis answers."""
    store = observed.store
    is_known = not observed.store_pods or store.probe_request == observed.store_pods
    return None if is_known or store.record is None else observed.store_pods


def _foreseen(observed: Observed, settings: RenderSettings, now: datetime) -> tuple[PlannedChange, ...]:
    """Say what would be done to a suspended object if it were not."""
    spec = {**observed.document["spec"], "suspend": False}
    return plan(replace(observed, document={**observed.document, "spec": spec}), settings, now).changes


def _keys(observed: Observed, children: list[Manifest]) -> Manifest:
    return next(child for child in children if child_id(child) == ("Secret", keys_name(observed.name)))


def _blocked(
    finding: Finding, cache: InferenceCache | None, record: Record | None, observed: Observed
) -> Plan:
    """Write nothing but whether gateways may write: pods come and go, whatever is wrong with the object."""
    live = observed.children.get(("ConfigMap", record_name(observed.name)))
    if record is None or live is None or not record.fenced:
        return Plan(blocked=finding, cache=cache, record=record)
    seen = observed.workload or WorkloadSeen()
    wanted = at_next_revision(record, with_permission(record, fenced=True, seen=seen))
    write = RecordWrite(wanted, replaced_record(live, wanted)) if wanted != parse_record(live) else None
    return Plan(
        blocked=finding,
        cache=cache,
        record=wanted,
        record_write=write,
        publish=wanted if _store_is_behind(observed, wanted) else None,
        beat=wanted if observed.workload is not None else None,
    )


def _inputs(observed: Observed, record: Record, cache: InferenceCache) -> RenderInputs:
    digest_key = digest_key_of(observed)
    credentials = redis_credentials_of(observed) if cache.spec.stores.redis.managed else None
    return RenderInputs(
        cache_id=record.cache_id,
        digest_key=digest_key,
        admin_token=admin_token_of(observed),
        key_id=key_id_of(digest_key),
        redis=credentials,
        users_acl=_users_acl(record.cache_id, credentials.gateway_password, credentials.operator_password)
        if credentials
        else "",
        qdrant_api_key=qdrant_api_key_of(observed) if _manages_qdrant(cache) else "",
        postgres_password=postgres_password_of(observed) if _manages_postgres(cache) else "",
        secret_checksums=_secret_checksums(observed, cache, digest_key),
    )


def _manages_qdrant(cache: InferenceCache) -> bool:
    return cache.spec.stores.qdrant is not None and cache.spec.stores.qdrant.managed is not None


def _manages_postgres(cache: InferenceCache) -> bool:
    return cache.spec.stores.postgres is not None and cache.spec.stores.postgres.managed is not None


def _users_acl(cache_id: str, gateway_password: str, operator_password: str) -> str:
    return acl_lines(
        cache_id,
        hashlib.sha256(gateway_password.encode()).hexdigest(),
        hashlib.sha256(operator_password.encode()).hexdigest(),
    )


def _secret_checksums(observed: Observed, cache: InferenceCache, digest_key: str) -> dict[str, str]:
    """Checksum what gateways and stores read only at start; keyed, so that annotations tell nothing about it.

    API keys are left out: gateways read them anew whenever the mounted file changes.
    """
    values = {state.use.mount: state.value for state in observed.secrets if state.use.mount != "api-keys"}
    values["keys"] = digest_key.encode()
    if ("redis" not in values) and (credentials := redis_credentials_of(observed)):
        values["redis"] = credentials.gateway_password.encode()
    if _manages_qdrant(cache):
        values["qdrant"] = qdrant_api_key_of(observed).encode()
    if _manages_postgres(cache):
        values["postgres"] = postgres_password_of(observed).encode()
    return {
        mount: hmac.new(digest_key.encode(), mount.encode() + b"\0" + value, hashlib.sha256).hexdigest()[:16]
        for mount, value in values.items()
    }


def _stands(observed: Observed, wanted: Manifest) -> bool:
    live = observed.children.get(child_id(wanted))
    return live is not None and is_as_wanted(live, wanted)


def _record_is_as_wanted(cache: InferenceCache, observed: Observed, record: Record) -> bool:
    """Tell whether the ConfigMap still carries our labels and owner, beside the right data."""
    return _stands(observed, build_record_config_map(cache, record))


def _superfluous(observed: Observed, wanted: list[Manifest], kept: frozenset[ChildId]) -> list[Manifest]:
    keep = {child_id(child) for child in wanted} | {("ConfigMap", record_name(observed.name))} | kept
    return [child for identity, child in sorted(observed.children.items()) if identity not in keep]


def _store_is_behind(observed: Observed, record: Record) -> bool:
    store = observed.store
    if not store.asked or store.error is not None:
        return False
    return store.record is None or store.record.revision < record.revision


def child_id(manifest: Manifest) -> ChildId:
    """Kind and name of a child."""
    return str(manifest["kind"]), str(manifest["metadata"]["name"])
