"""From a spec and the record as it stands to the record as it must be. Pure.

Called by plan, and by local mode, so that a change moves a layer to a new keyspace in both alike.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.keys.fingerprints import exact_binding, exact_fingerprint, keyspace_id
from cachewright.keys.record import Record
from cachewright.reconcile.checks import immutable_choices
from cachewright.reconcile.timestamps import to_timestamp

EXACT: Final = "Exact"


def wanted_record(cache: InferenceCache, record: Record, key_id: str, now: datetime) -> Record:
    """Move layers whose fingerprint changed to a new keyspace; leave all others as they are."""
    wanted = record
    binding = exact_binding(cache.spec, key_id)
    identity = keyspace_id(exact_fingerprint(cache.spec, key_id))
    active = record.layers.get(EXACT)
    if cache.spec.layers.exact is None:
        if active is not None:
            wanted = wanted.without_layer(EXACT)
    elif active is None or active.keyspace.id != identity or active.binding != binding:
        wanted = wanted.with_layer(EXACT, identity, binding, to_timestamp(now))
    return wanted.with_immutable(immutable_choices(cache))
