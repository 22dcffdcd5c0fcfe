"""What one pass writes, from what it has seen. Pure: the same input gives the same plan.

`service` calls it between observe and apply.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime

from cachewright.api.conditions import Reason
from cachewright.api.inference_cache import InferenceCache
from cachewright.crd.validation import load
from cachewright.errors import InvalidSpec
from cachewright.keys.digest import key_id_of
from cachewright.keys.record import Record
from cachewright.reconcile.checks import first_finding
from cachewright.reconcile.drift import is_as_wanted, with_rendered_digest
from cachewright.reconcile.generated import admin_token_of, digest_key_of, redis_credentials_of
from cachewright.reconcile.known_record import best_record, restored_record
from cachewright.reconcile.rotation import next_end
from cachewright.reconcile.state import ChildId, Finding, Manifest, Observed, Plan, RecordWrite
from cachewright.reconcile.wanted_record import wanted_record
from cachewright.render.children import build_children
from cachewright.render.inputs import RenderInputs
from cachewright.render.metadata import record_name
from cachewright.render.record import build_record_config_map
from cachewright.render.settings import RenderSettings
from cachewright.stores.redis_acl import acl_lines


def plan(observed: Observed, settings: RenderSettings, now: datetime) -> Plan:
    """Decide what to write; a plan with `blocked` set writes nothing but status."""
    record, record_version = best_record(observed)
    try:
        cache = load(observed.document)
    except InvalidSpec as e:
        return Plan(blocked=Finding(Reason.INVALID_SPEC, str(e), stalled=True), record=record)
    blocked = first_finding(cache, record, observed)
    if blocked is not None:
        return Plan(blocked=blocked, cache=cache, record=record)
    key_id = key_id_of(digest_key_of(observed))
    wanted = wanted_record(cache, record or restored_record(observed, now), key_id, now)
    children = build_children(cache, _inputs(observed, wanted, cache), settings)
    marked = [with_rendered_digest(child) for child in children]
    stale = record is None or wanted != record or not _record_is_as_wanted(cache, observed, wanted)
    return Plan(
        cache=cache,
        record=wanted,
        record_write=RecordWrite(wanted, record_version) if stale else None,
        applies=tuple(child for child in marked if not _stands(observed, child)),
        deletes=tuple(_superfluous(observed, marked)),
        publish=wanted if _store_is_behind(observed, wanted) else None,
        due=next_end(wanted),
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
        secret_checksums=_secret_checksums(observed, digest_key),
    )


def _users_acl(cache_id: str, gateway_password: str, operator_password: str) -> str:
    return acl_lines(
        cache_id,
        hashlib.sha256(gateway_password.encode()).hexdigest(),
        hashlib.sha256(operator_password.encode()).hexdigest(),
    )


def _secret_checksums(observed: Observed, digest_key: str) -> dict[str, str]:
    """Checksum what gateways read only at start; keyed, so that annotations tell nothing about it.

    API keys are left out: gateways read them anew whenever the mounted file changes.
    """
    values = {state.use.mount: state.value for state in observed.secrets if state.use.mount != "api-keys"}
    values["keys"] = digest_key.encode()
    if ("redis" not in values) and (credentials := redis_credentials_of(observed)):
        values["redis"] = credentials.gateway_password.encode()
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


def _superfluous(observed: Observed, wanted: list[Manifest]) -> list[Manifest]:
    keep = {child_id(child) for child in wanted} | {("ConfigMap", record_name(observed.name))}
    return [child for identity, child in sorted(observed.children.items()) if identity not in keep]


def _store_is_behind(observed: Observed, record: Record) -> bool:
    store = observed.store
    if not store.asked or store.error is not None:
        return False
    return store.record is None or store.record.revision < record.revision


def child_id(manifest: Manifest) -> ChildId:
    """Kind and name of a child."""
    return str(manifest["kind"]), str(manifest["metadata"]["name"])
