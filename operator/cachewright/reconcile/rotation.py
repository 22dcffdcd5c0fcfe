"""Keyspaces: from one record to the next, by what the spec wants, what pods run, and what time it is. Pure.

    active <-> readonly -> retained -> deleting -> gone
       ^                      |
       +------ rollback ------+

Called by `wanted_record` in each pass of the operator and on each edit in local mode. Level-triggered: the
same input gives the same record, and the revision rises only where something else changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import (
    OBJECT_EPOCH,
    KeyspaceState,
    LayerRecord,
    PastKeyspace,
    Record,
    Waiting,
)
from cachewright.reconcile.layer_rows import LayerRow
from cachewright.reconcile.serving import Serving, Wish
from cachewright.reconcile.timestamps import after, from_timestamp, to_timestamp
from cachewright.reconcile.workload import WorkloadSeen

MOST_DISPUTED: Final = 16
"""Identities remembered as disputed; the latest count."""


@dataclass(frozen=True, slots=True)
class RotationRules:
    """What the spec says about keyspaces that went out of use."""

    retain_seconds: float = 24 * 3600.0
    max_retained: int = 3
    """Retained keyspaces of one layer."""
    heartbeat_seconds: int = 600
    epoch: int = 0
    """The object's."""
    is_short_of_memory: bool = False
    """Whether the store has little room left, so that less is retained."""


def next_record(
    record: Record,
    rows: Iterable[LayerRow],
    served: Serving,
    wish: Wish,
    seen: WorkloadSeen,
    rules: RotationRules,
    now: datetime,
) -> Record:
    """Return the record as it must stand now, at the next revision where it differs."""
    rows = tuple(rows)
    wanted = _with_rows(record, rows, served, wish, rules, now)
    wanted = _with_epochs(wanted, record.incarnation, rows, rules, now)
    wanted = replace(wanted, waiting=_waiting(record, served, wish, seen, now))
    wanted = with_permission(wanted, wish.fenced, seen)
    fenced = wish.fenced and any(layer.model_version for layer in wanted.layers.values())
    wanted = replace(wanted, fenced=fenced, heartbeat_seconds=rules.heartbeat_seconds if fenced else 0)
    wanted = with_reclaiming(wanted, rules.max_retained, now)
    return at_next_revision(record, with_room(wanted, now) if rules.is_short_of_memory else wanted)


def at_next_revision(before: Record, after_it: Record) -> Record:
    """Raise the revision by one where anything else changed."""
    same = replace(after_it, revision=before.revision)
    return before if same == before else replace(after_it, revision=before.revision + 1)


def with_permission(record: Record, fenced: bool, seen: WorkloadSeen) -> Record:
    """Allow writes into what depends on the model only while all pods carry the identity it is bound to."""
    layers = {}
    for name, layer in record.layers.items():
        state = KeyspaceState.ACTIVE
        if fenced and layer.model_version and not (layer.workload and layer.workload == seen.uniform):
            state = KeyspaceState.READONLY
        layers[name] = replace(layer, state=state)
    return replace(record, layers=layers)


def with_reclaiming(record: Record, max_retained: int, now: datetime) -> Record:
    """Give up what was retained long enough, and the oldest of what is too many for a layer."""
    ended = {past.keyspace for past in record.in_state(KeyspaceState.RETAINED) if _is_over(past, now)}
    kept: dict[str, int] = {}
    for past in reversed(record.in_state(KeyspaceState.RETAINED)):
        if past.keyspace not in ended:
            kept[past.layer] = kept.get(past.layer, 0) + 1
            if kept[past.layer] > max_retained:
                ended.add(past.keyspace)
    return _given_up(record, ended, now)


def with_room(record: Record, now: datetime) -> Record:
    """Give up the longest retained keyspace, but not the latest of its layer: that is the way back.

    One at a time: nothing more while the space of another is being reclaimed, since that may be room enough.
    """
    spare = _spare(record)
    if not spare or record.in_state(KeyspaceState.DELETING):
        return record
    return _given_up(record, {spare[0].keyspace}, now)


def has_spare(record: Record) -> bool:
    """Tell whether anything could be given up for room."""
    return bool(_spare(record))


def _spare(record: Record) -> list[PastKeyspace]:
    retained = record.in_state(KeyspaceState.RETAINED)
    latest = {past.layer: past.keyspace for past in retained}
    return [past for past in retained if latest[past.layer] != past.keyspace]


def next_due(record: Record, deadline_seconds: float, now: datetime) -> datetime | None:
    """Return when a retention ends next, or patience with the workload; None where neither will."""
    ends = [from_timestamp(past.until) for past in record.in_state(KeyspaceState.RETAINED)]
    ends.append(deadline_of(record, deadline_seconds))
    return min((end for end in ends if end is not None and end > now), default=None)


def deadline_of(record: Record, deadline_seconds: float) -> datetime | None:
    """Return until when a new version may wait before somebody is told; None where none waits."""
    since = from_timestamp(record.waiting.since) if record.waiting else None
    return after(since, deadline_seconds) if since is not None else None


def without_reclaimed(record: Record, reclaimed: Collection[Keyspace]) -> Record:
    """Forget keyspaces whose deletion was reported done; those in any other state stay."""
    past = tuple(
        each
        for each in record.past
        if each.state is not KeyspaceState.DELETING or each.keyspace not in reclaimed
    )
    return at_next_revision(record, replace(record, past=past))


def all_deleting(record: Record, now: datetime) -> Record:
    """Give up every keyspace, in use or retained: the object is being deleted."""
    for name in sorted(record.layers):
        record = _retired(record, name, KeyspaceState.DELETING, 0, now)
    return _given_up(record, {past.keyspace for past in record.past}, now)


def _with_rows(
    record: Record,
    rows: tuple[LayerRow, ...],
    served: Serving,
    wish: Wish,
    rules: RotationRules,
    now: datetime,
) -> Record:
    wanted = record
    for name in sorted(record.layers.keys() - {row.name for row in rows}):
        wanted = _retired(wanted, name, KeyspaceState.RETAINED, rules.retain_seconds, now)
    for row in rows:
        workload = served.workload if row.depends_on_model else ""
        active = wanted.layers.get(row.name)
        if active is not None and (active.keyspace.id, active.binding) == (row.keyspace_id, row.binding):
            same = replace(active, model_version=row.model_version or "", workload=workload)
            wanted = replace(wanted, layers={**wanted.layers, row.name: same})
            continue
        if active is not None:
            # What was fenced and never bound was never written.
            empty = wish.fenced and row.depends_on_model and not active.workload
            state = KeyspaceState.DELETING if empty else KeyspaceState.RETAINED
            wanted = _retired(wanted, row.name, state, rules.retain_seconds, now)
        wanted = _opened(wanted, row, workload, wish.fenced, now)
    return wanted


def _opened(record: Record, row: LayerRow, workload: str, fenced: bool, now: datetime) -> Record:
    """Bring a retained keyspace back, made by the same pods where that counts; else make a new one."""
    needs_same_pods = fenced and row.depends_on_model
    for past in reversed(record.in_state(KeyspaceState.RETAINED)):
        is_it = (past.layer, past.keyspace.id, past.binding) == (row.name, row.keyspace_id, row.binding)
        if is_it and (not needs_same_pods or past.workload == workload):
            rest = tuple(each for each in record.past if each.keyspace != past.keyspace)
            return _in_use(replace(record, past=rest), row, past.keyspace, workload, now, rolled_back=True)
    incarnation = record.incarnation + 1
    record = replace(record, incarnation=incarnation)
    return _in_use(record, row, Keyspace(row.keyspace_id, incarnation), workload, now)


def _in_use(
    record: Record,
    row: LayerRow,
    keyspace: Keyspace,
    workload: str,
    now: datetime,
    rolled_back: bool = False,
) -> Record:
    layer = LayerRecord(
        keyspace=keyspace,
        binding=row.binding,
        since=to_timestamp(now),
        model_version=row.model_version or "",
        workload=workload,
        rolled_back=rolled_back,
    )
    return replace(record, layers={**record.layers, row.name: layer})


def _retired(record: Record, name: str, state: KeyspaceState, retain_seconds: float, now: datetime) -> Record:
    layer = record.layers[name]
    until = after(now, retain_seconds) if state is KeyspaceState.RETAINED else now
    past = PastKeyspace(
        layer=name,
        keyspace=layer.keyspace,
        binding=layer.binding,
        state=state,
        since=to_timestamp(now),
        until=to_timestamp(until),
        model_version=layer.model_version,
        workload=layer.workload,
    )
    layers = {key: value for key, value in record.layers.items() if key != name}
    return replace(record, layers=layers, past=(*record.past, past))


def _with_epochs(
    record: Record, given_before: int, rows: tuple[LayerRow, ...], rules: RotationRules, now: datetime
) -> Record:
    """Revoke all entries of layers whose epoch, or the object's, is higher than any seen."""
    for_all = rules.epoch > record.epochs.get(OBJECT_EPOCH, 0)
    raised = {row.name: row.epoch for row in rows if row.epoch > record.epochs.get(row.name, 0)}
    epochs = {**record.epochs, **raised}
    revoked = set(raised)
    if for_all:
        epochs[OBJECT_EPOCH] = rules.epoch
        revoked |= {row.name for row in rows} | {past.layer for past in record.past}
    if not revoked:
        return record
    record = replace(record, epochs=epochs)
    by_name = {row.name: row for row in rows}
    for name in sorted(revoked & record.layers.keys()):
        layer = record.layers[name]
        if layer.keyspace.incarnation <= given_before:
            record = _retired(record, name, KeyspaceState.DELETING, 0, now)
            incarnation = record.incarnation + 1
            record = replace(record, incarnation=incarnation)
            fresh = Keyspace(layer.keyspace.id, incarnation)
            record = _in_use(record, by_name[name], fresh, layer.workload, now)
    return _given_up(record, {past.keyspace for past in record.past if past.layer in revoked}, now)


def _given_up(record: Record, keyspaces: Collection[Keyspace], now: datetime) -> Record:
    """Begin to delete those of `keyspaces` that are retained."""
    past = tuple(
        replace(each, state=KeyspaceState.DELETING, until=to_timestamp(now))
        if each.state is KeyspaceState.RETAINED and each.keyspace in keyspaces
        else each
        for each in record.past
    )
    return replace(record, past=past)


def _is_over(past: PastKeyspace, now: datetime) -> bool:
    until = from_timestamp(past.until)
    return until is None or until <= now


def _waiting(
    record: Record, served: Serving, wish: Wish, seen: WorkloadSeen, now: datetime
) -> Waiting | None:
    """Note since when a version is waited for; what pods run when it changes may be the former one's."""
    if not served.waits:
        return None
    former = record.waiting
    if former is not None and former.version == wish.version:
        return former
    if former is None:
        return Waiting(wish.version, to_timestamp(now))
    seen_meanwhile = sorted(seen.pods.keys() - {served.workload, *former.disputed})
    disputed = (*former.disputed, *seen_meanwhile)[-MOST_DISPUTED:]
    return Waiting(wish.version, to_timestamp(now), disputed)
