"""Which record to go on from: the ConfigMap's, the store's copy, or what is left when both are lost. Pure.

Called by plan. Whatever was lost, no incarnation is given twice and no revision is lower than one that
gateways may have seen: else a dead keyspace could come back to life, or gateways would not follow.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime

from cachewright.errors import InvalidDocument
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import RECORD_DATA_KEY, KeyspaceState, PastKeyspace, Record
from cachewright.reconcile.keyspaces_told import is_as_told
from cachewright.reconcile.state import Manifest, Observed
from cachewright.reconcile.timestamps import to_timestamp
from cachewright.render.metadata import record_name


def cache_id_of(uid: str) -> str:
    """Name a cache in keys: 16 hex digits from the object's uid."""
    return hashlib.sha256(f"cachewright/cache/{uid}".encode()).hexdigest()[:16]


def own_cache_id(document: Manifest) -> str:
    """Return the cache id of an object that has no record yet: the one to adopt, else one of its own."""
    adopted = (document.get("spec") or {}).get("cacheID")
    return str(adopted) if adopted else cache_id_of(str(document["metadata"]["uid"]))


def parse_record(config_map: Manifest) -> Record | None:
    """Read the record from its ConfigMap; None where it is damaged."""
    try:
        return Record.from_json((config_map.get("data") or {})[RECORD_DATA_KEY])
    except (KeyError, InvalidDocument):
        return None


def best_record(observed: Observed, now: datetime) -> tuple[Record | None, str | None]:
    """Return the record, and the version of the ConfigMap that it replaces.

    A damaged ConfigMap counts as none but is replaced. One that is older than the store's copy was brought
    back by a backup: what was decided since stands in the copy alone. A copy that stands alone may be older
    than what was decided last, since its store may have failed over: it counts only where status agrees.
    """
    live = observed.children.get(("ConfigMap", record_name(observed.name)))
    version = str(live["metadata"]["resourceVersion"]) if live else None
    record = parse_record(live) if live else None
    copy = _copy(observed, record.cache_id if record else own_cache_id(observed.document))
    if copy is None:
        return record, version
    if record is None:
        is_latest = is_as_told(copy, observed.document.get("status") or {})
        return (_beyond_what_was_seen(copy, now) if is_latest else None), version
    return (copy if copy.revision > record.revision else record), version


def _copy(observed: Observed, cache_id: str) -> Record | None:
    copy = observed.store.record
    return copy if copy is not None and copy.cache_id == cache_id else None


def _beyond_what_was_seen(record: Record, now: datetime) -> Record:
    """Raise revision and incarnation to the time in seconds, which no counter has reached."""
    seconds = int(now.timestamp())
    revision, incarnation = max(record.revision, seconds), max(record.incarnation, seconds)
    return replace(record, revision=revision, incarnation=incarnation)


def restored_record(observed: Observed, now: datetime) -> Record:
    """Begin a record where neither ConfigMap nor store has one to go on from.

    A new object starts from nothing. For one that has a past, or adopts one, revision and incarnation go on
    from the time in seconds, which no counter has reached; what status and an outdated copy remember is to
    be deleted, since nobody knows any more what it was made under.
    """
    cache_id = own_cache_id(observed.document)
    is_new = "cacheID" not in (observed.document.get("spec") or {})
    if is_new and "observedGeneration" not in (observed.document.get("status") or {}):
        return Record(cache_id=cache_id, revision=0, incarnation=0)
    remembered = _remembered(observed, to_timestamp(now))
    copy = _copy(observed, cache_id) or Record(cache_id=cache_id, revision=0, incarnation=0)
    incarnation = max((copy.incarnation, *(past.keyspace.incarnation for past in remembered)))
    known = Record(cache_id=cache_id, revision=copy.revision, incarnation=incarnation, past=remembered)
    return _beyond_what_was_seen(known, now)


def _remembered(observed: Observed, now: str) -> tuple[PastKeyspace, ...]:
    """Read the keyspaces that status and copy name; what somebody edited into nonsense is passed over."""
    status = observed.document.get("status") or {}
    copy = _copy(observed, own_cache_id(observed.document))
    named = [(each.get("name"), each) for each in status.get("layers") or []]
    named += [(each.get("layer"), each) for each in status.get("retained") or []]
    if copy is not None:
        named += [(name, {"keyspace": str(layer.keyspace)}) for name, layer in copy.layers.items()]
        named += [(each.layer, {"keyspace": str(each.keyspace)}) for each in copy.past]
    found: dict[Keyspace, PastKeyspace] = {}
    for layer, each in named:
        try:
            keyspace = Keyspace.parse(str(each.get("keyspace", "")))
        except InvalidDocument:
            continue
        found[keyspace] = PastKeyspace(str(layer), keyspace, "", KeyspaceState.DELETING, now, now)
    return tuple(found[keyspace] for keyspace in sorted(found))
