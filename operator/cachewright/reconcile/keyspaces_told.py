"""A record's keyspaces as status lists them, and whether a record is the one that status tells of. Pure.

Called by status, and by known_record where only a store's copy of the record is left.
"""

from __future__ import annotations

from typing import Final

from cachewright.keys.record import KeyspaceState, Record
from cachewright.reconcile.state import Manifest

MAX_RETAINED_SHOWN: Final = 64


def layers_status(record: Record) -> list[Manifest]:
    """List the keyspaces in use by layer."""
    return [
        {"name": name, "keyspace": str(layer.keyspace), "since": layer.since}
        for name, layer in sorted(record.layers.items())
    ]


def retained_status(record: Record) -> list[Manifest]:
    """List keyspaces that are no longer in use, the latest first."""
    return [
        {
            "layer": past.layer,
            "keyspace": str(past.keyspace),
            "state": "Retained" if past.state is KeyspaceState.RETAINED else "Deleting",
            **({"modelVersion": past.model_version} if past.model_version else {}),
            "until": past.until,
        }
        for past in reversed(record.past)
    ][:MAX_RETAINED_SHOWN]


def is_as_told(record: Record, status: Manifest) -> bool:
    """Tell whether status, where it names any, names the record's keyspaces in the same states."""
    if "layers" not in status:
        return True
    in_use = {each["keyspace"] for each in layers_status(record)}
    told_in_use = {each.get("keyspace") for each in status["layers"]}
    past = {(each["keyspace"], each["state"]) for each in retained_status(record)}
    told_past = {(each.get("keyspace"), each.get("state")) for each in status.get("retained") or []}
    return in_use == told_in_use and past == told_past
