"""From two editions of a spec to what the change does to each layer, and which field does it. Pure.

The record machine itself is asked: once for the whole change, and once for each changed field alone. So what
is told here is what the operator will do, for every layer there is. Called by `cachewright explain`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.crd.defaulting import with_defaults
from cachewright.crd.schema import object_schema
from cachewright.crd.validation import load
from cachewright.errors import InvalidSpec
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, Record
from cachewright.reconcile.serving import AUTO, in_use
from cachewright.reconcile.wanted_record import is_fenced, template_digest, wanted_record
from cachewright.reconcile.workload import WorkloadSeen

ABSENT: Final = object()
"""In place of a value where a field is not set."""

VERSION: Final = ("spec", "model", "version")

UNKNOWN_KEY: Final = "unknown"
"""Stands for the digest key where none is known: keyspaces have other names then, but fare alike."""

_SOME_PODS: Final = "pods"
"""Identity of the workload's pods where none is known."""

_START: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Fate(StrEnum):
    """What happens to a layer's keyspace."""

    SURVIVES = "Survives"
    """It stays in use."""
    ROTATES = "Rotates"
    """It is retained, and a new, empty one comes into use."""
    RETURNS = "Returns"
    """It is retained, and a retained one comes into use again, with its entries."""
    REVOKED = "Revoked"
    """It is deleted at once, and a new, empty one comes into use."""
    STARTS = "Starts"
    """The layer is new."""
    ENDS = "Ends"
    """The layer is removed."""

    @property
    def costs(self) -> bool:
        """Tell whether entries in use go out of use."""
        return self in {Fate.ROTATES, Fate.RETURNS, Fate.REVOKED, Fate.ENDS}


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs."""

    steps: tuple[str, ...]
    """From the object's root."""
    before: Any
    """JSON, or ABSENT."""
    after: Any

    @property
    def path(self) -> str:
        """Where it stands, such as `spec.model.version`."""
        return ".".join(self.steps)

    def __str__(self) -> str:
        return f"{self.path}: {_shown(self.before)} → {_shown(self.after)}"


@dataclass(frozen=True, slots=True)
class LayerFate:
    """What happens to one layer, and why."""

    layer: str
    fate: Fate
    before: Keyspace | None
    after: Keyspace | None
    causes: tuple[Change, ...] = ()
    """The changes that would do it alone; where none would, those without which it does not happen."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a change of one object does."""

    changes: tuple[Change, ...]
    layers: tuple[LayerFate, ...]
    waits_for: str = ""
    """The workload whose pods must run the new version first, such as `Deployment/vllm`; empty: nothing."""

    @property
    def costs(self) -> bool:
        """Tell whether entries in use go out of use."""
        return any(layer.fate.costs for layer in self.layers)


def explain(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    record: Record | None = None,
    key_id: str = UNKNOWN_KEY,
    now: datetime = _START,
) -> Explanation:
    """Tell what becomes of each layer when `new` replaces `old`, both valid objects as JSON.

    `record` and `key_id` are those in use; without them it is as if `old` had just been made.
    """
    before = _stored(old)
    replay = _Replay(before, record, key_id, now)
    changes = tuple(_changes(before.get("spec"), _stored(new).get("spec"), ("spec",)))
    whole = replay.after(changes)
    names = sorted({*replay.record.layers, *whole.layers})
    layers = tuple(_layer(name, replay, changes, whole) for name in names)
    return Explanation(changes, layers, _waits_for(load(new), layers))


def _waits_for(new: InferenceCache, layers: tuple[LayerFate, ...]) -> str:
    causes = {change.steps for layer in layers for change in layer.causes}
    reference = new.spec.model.workload_ref
    waits = is_fenced(new.spec) and new.spec.model.version != AUTO and VERSION in causes
    return f"{reference.kind}/{reference.name}" if waits and reference is not None else ""


def template_source(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return ConfigMap and key of a valid object's prompt template; None where no ConfigMap holds it."""
    source = (document["spec"].get("promptTemplate") or {}).get("fromConfigMap")
    return (str(source["name"]), str(source["key"])) if source else None


def with_template_text(document: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Return the object with the text of its prompt template in the place of where it is held.

    An unknown text, None, is taken to differ from that of any other ConfigMap.
    """
    source = template_source(document)
    if source is None:
        return dict(document)
    digest = template_digest(f"unknown {'/'.join(source)}" if text is None else text)
    spec = {**document["spec"], "promptTemplate": {"version": f"sha256:{digest}"}}
    return {**document, "spec": spec}


class _Replay:
    """The record machine, from one starting point through any set of changes."""

    def __init__(self, before: dict[str, Any], record: Record | None, key_id: str, now: datetime) -> None:
        self._before = before
        self._key_id = key_id
        self._now = now
        fresh = record or Record("0" * 16, revision=0, incarnation=0)
        self.record = self._wanted(load(before), fresh)

    def after(self, changes: tuple[Change, ...]) -> Record:
        """Return the record after these changes alone; raises InvalidSpec where they make no valid object."""
        document = deepcopy(self._before)
        for change in changes:
            _put(document, change.steps, change.after)
        return self._wanted(load(document), self.record)

    def moves(self, layer: str, changes: tuple[Change, ...]) -> bool:
        """Tell whether these changes alone take a layer out of its keyspace."""
        try:
            record = self.after(changes)
        except InvalidSpec:
            return False  # half of a change that belongs together
        return _keyspace(record, layer) != _keyspace(self.record, layer)

    def _wanted(self, cache: InferenceCache, record: Record) -> Record:
        """Ask what the record becomes in the end: no switch waits for pods, and Auto keeps to the same."""
        seen = None
        if cache.spec.model.version == AUTO:
            current = in_use(record)
            seen = WorkloadSeen({(current.workload if current else "") or _SOME_PODS: 1})
        return wanted_record(cache, record, self._key_id, self._now, seen)


def _layer(name: str, replay: _Replay, changes: tuple[Change, ...], whole: Record) -> LayerFate:
    before, after = _keyspace(replay.record, name), _keyspace(whole, name)
    fate = _fate(before, after, replay.record, whole)
    causes: tuple[Change, ...] = ()
    if fate is not Fate.SURVIVES:
        causes = tuple(change for change in changes if replay.moves(name, (change,)))
        causes = causes or _needed(name, replay, changes) or changes
    return LayerFate(name, fate, before, after, causes)


def _needed(name: str, replay: _Replay, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return the changes without which the layer would stay, where no change alone moves it."""
    rests = ((change, tuple(other for other in changes if other is not change)) for change in changes)
    return tuple(change for change, rest in rests if not replay.moves(name, rest))


def _fate(before: Keyspace | None, after: Keyspace | None, record: Record, whole: Record) -> Fate:
    if before is None:
        return Fate.STARTS
    if after is None:
        return Fate.ENDS
    if before == after:
        return Fate.SURVIVES
    if after in {past.keyspace for past in record.past}:
        return Fate.RETURNS
    dead = {past.keyspace for past in whole.in_state(KeyspaceState.DELETING)}
    return Fate.REVOKED if before in dead else Fate.ROTATES


def _keyspace(record: Record, layer: str) -> Keyspace | None:
    found = record.layers.get(layer)
    return found.keyspace if found else None


def _stored(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object as the API server keeps it, so that spelling out a default is no change."""
    stored: dict[str, Any] = with_defaults(dict(document), object_schema())
    return {key: stored[key] for key in ("apiVersion", "kind", "metadata", "spec") if key in stored}


def _changes(
    before: Any,  # noqa: ANN401 - any JSON value
    after: Any,  # noqa: ANN401
    steps: tuple[str, ...],
) -> Iterator[Change]:
    """Yield what differs: fields one by one, lists as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from _changes(before.get(name, ABSENT), after.get(name, ABSENT), (*steps, name))
    elif before is ABSENT or after is ABSENT or before != after:
        yield Change(steps, before, after)


def _put(document: dict[str, Any], steps: tuple[str, ...], value: Any) -> None:  # noqa: ANN401 - any JSON value
    for step in steps[:-1]:
        document = document.setdefault(step, {})
    if value is ABSENT:
        document.pop(steps[-1], None)
    else:
        document[steps[-1]] = deepcopy(value)


def _shown(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return "unset" if value is ABSENT else json.dumps(value, ensure_ascii=False)
