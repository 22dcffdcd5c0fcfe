"""The record: the truth about a cache's keyspaces, as a value and as JSON.

The operator keeps it in the ConfigMap `<name>-record` by compare-and-swap; Redis holds a broadcast copy,
gateways a mounted one. Every change raises `revision`; nothing ever lowers it. What leads from one record to
the next is in `reconcile.wanted_record`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import orjson

from cachewright.errors import InvalidDocument
from cachewright.keys.keyspaces import Keyspace

RECORD_FORMAT: Final = 2
"""Format number in the JSON; readers refuse what they do not know.

Raised with the states: who does not know `readonly` must not write by such a record.
"""

READABLE_FORMATS: Final = frozenset({1, RECORD_FORMAT})
"""Format 1 had no states: all it lists is active, and nothing is fenced."""

RECORD_DATA_KEY: Final = "record.json"
"""Key in the ConfigMap and file name where it is mounted."""

OBJECT_EPOCH: Final = ""
"""Key in `Record.epochs` of the object's own epoch; the others are names of layers."""


class KeyspaceState(StrEnum):
    """What may be done with a keyspace; the order is the only way through, but for a rollback."""

    ACTIVE = "active"
    """Read and written."""
    READONLY = "readonly"
    """Read; written again once all pods of the workload carry the identity it is bound to."""
    RETAINED = "retained"
    """Neither, but its entries stay: a rollback makes it active again."""
    DELETING = "deleting"
    """Neither, and never again: its space is being reclaimed."""


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """The keyspace in use by one layer: gateways read it, and write it while it is active."""

    keyspace: Keyspace
    binding: str
    """What a gateway must enact to use the keyspace; see `keys.fingerprints`."""
    since: str
    """When it came into use, RFC 3339 in UTC."""
    state: KeyspaceState = KeyspaceState.ACTIVE
    """ACTIVE or READONLY."""
    model_version: str = ""
    """Version of the model whose answers it holds; empty where the layer does not depend on the model."""
    workload: str = ""
    """Identity of the engine's pods whose answers it holds; empty while none is known, or none asked for.

    An active keyspace with a workload may be written only under a heartbeat where the record is fenced.
    """
    rolled_back: bool = False
    """True where it was retained before it came into use."""


@dataclass(frozen=True, slots=True)
class PastKeyspace:
    """A keyspace that is no longer in use."""

    layer: str
    keyspace: Keyspace
    binding: str
    state: KeyspaceState
    """RETAINED or DELETING."""
    since: str
    """When it went out of use."""
    until: str
    """When its retention ends; where it is being deleted: when its deletion was decided."""
    model_version: str = ""
    workload: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A new version of the model that waits for the workload."""

    version: str
    since: str
    """When the wait began, RFC 3339 in UTC."""
    disputed: tuple[str, ...] = ()
    """Identities that pods carried while an earlier version was waited for: they may be that one's."""


@dataclass(frozen=True, slots=True)
class Record:
    """All keyspaces of one cache at one revision."""

    cache_id: str
    """16 hex digits; part of every key, so that caches never meet in a shared store."""
    revision: int
    """Rises with every change; gateways refuse less than they have seen."""
    incarnation: int
    """Highest incarnation given so far."""
    layers: dict[str, LayerRecord] = field(default_factory=dict)
    """The keyspaces in use, by layer name, such as `Exact`."""
    immutable: dict[str, str] = field(default_factory=dict)
    """Choices that must not change, by field path, as they were when the record was made."""
    past: tuple[PastKeyspace, ...] = ()
    """Keyspaces no longer in use, in the order in which they went out of it."""
    epochs: dict[str, int] = field(default_factory=dict)
    """Highest epoch seen, by layer name, or under `OBJECT_EPOCH`; lowering one in the spec does nothing."""
    waiting: Waiting | None = None
    fenced: bool = False
    """True where gateways may write only under a heartbeat, since the workload's pods have to be watched."""
    heartbeat_seconds: int = 0
    """How long a heartbeat counts; 0 where nothing is fenced."""

    def with_layer(
        self, name: str, keyspace_id: str, binding: str, now: str, model_version: str = "", workload: str = ""
    ) -> Record:
        """Return the record with a new incarnation of `keyspace_id` active for layer `name`."""
        incarnation = self.incarnation + 1
        active = LayerRecord(
            Keyspace(keyspace_id, incarnation), binding, now, model_version=model_version, workload=workload
        )
        return replace(
            self,
            revision=self.revision + 1,
            incarnation=incarnation,
            layers={**self.layers, name: active},
        )

    def without_layer(self, name: str) -> Record:
        """Return the record without layer `name`."""
        layers = {key: value for key, value in self.layers.items() if key != name}
        return replace(self, revision=self.revision + 1, layers=layers)

    def with_immutable(self, choices: dict[str, str]) -> Record:
        """Return the record with `choices` kept, at a new revision only where they are new."""
        if self.immutable == choices:
            return self
        return replace(self, revision=self.revision + 1, immutable=choices)

    def in_state(self, state: KeyspaceState) -> tuple[PastKeyspace, ...]:
        """Return the past keyspaces in one state, the longest out of use first."""
        return tuple(past for past in self.past if past.state is state)

    def keyspaces(self) -> tuple[Keyspace, ...]:
        """Return every keyspace that the record names, in use or past."""
        in_use = (layer.keyspace for layer in self.layers.values())
        return (*in_use, *(past.keyspace for past in self.past))

    def to_json(self) -> str:
        """Render as JSON; the same record gives the same text."""
        document = {
            "format": RECORD_FORMAT,
            "cacheID": self.cache_id,
            "revision": self.revision,
            "incarnation": self.incarnation,
            "layers": {name: _layer_json(layer) for name, layer in self.layers.items()},
            "immutable": self.immutable,
            "past": [_past_json(past) for past in self.past],
            "epochs": self.epochs,
            "fenced": self.fenced,
            "heartbeatSeconds": self.heartbeat_seconds,
        }
        if self.waiting is not None:
            document["waiting"] = {
                "version": self.waiting.version,
                "since": self.waiting.since,
                "disputed": list(self.waiting.disputed),
            }
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """Read what `to_json` wrote, also in format 1; raises InvalidDocument for anything else."""
        try:
            document: Any = orjson.loads(text)
            if document["format"] not in READABLE_FORMATS:
                raise InvalidDocument(f"record format {document['format']!r} is not {RECORD_FORMAT}")
            return _from_document(document)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise InvalidDocument(f"not a record: {e}") from e


def _layer_json(layer: LayerRecord) -> dict[str, str | bool]:
    return {
        "keyspace": str(layer.keyspace),
        "binding": layer.binding,
        "since": layer.since,
        "state": str(layer.state),
        "modelVersion": layer.model_version,
        "workload": layer.workload,
        "rolledBack": layer.rolled_back,
    }


def _past_json(past: PastKeyspace) -> dict[str, str]:
    return {
        "layer": past.layer,
        "keyspace": str(past.keyspace),
        "binding": past.binding,
        "state": str(past.state),
        "since": past.since,
        "until": past.until,
        "modelVersion": past.model_version,
        "workload": past.workload,
    }


def _from_document(document: Any) -> Record:  # noqa: ANN401 - JSON
    waiting = document.get("waiting")
    return Record(
        cache_id=str(document["cacheID"]),
        revision=int(document["revision"]),
        incarnation=int(document["incarnation"]),
        layers={str(name): _layer(layer) for name, layer in document["layers"].items()},
        immutable={str(path): str(value) for path, value in document["immutable"].items()},
        past=tuple(_past(past) for past in document.get("past", [])),
        epochs={str(name): int(epoch) for name, epoch in document.get("epochs", {}).items()},
        waiting=_waiting(waiting) if waiting is not None else None,
        fenced=bool(document.get("fenced", False)),
        heartbeat_seconds=int(document.get("heartbeatSeconds", 0)),
    )


def _layer(layer: Any) -> LayerRecord:  # noqa: ANN401 - JSON
    state = KeyspaceState(layer.get("state", KeyspaceState.ACTIVE))
    if state not in {KeyspaceState.ACTIVE, KeyspaceState.READONLY}:
        raise InvalidDocument(f"a keyspace in use is {state}")
    return LayerRecord(
        keyspace=Keyspace.parse(layer["keyspace"]),
        binding=str(layer["binding"]),
        since=str(layer["since"]),
        state=state,
        model_version=str(layer.get("modelVersion", "")),
        workload=str(layer.get("workload", "")),
        rolled_back=bool(layer.get("rolledBack", False)),
    )


def _past(past: Any) -> PastKeyspace:  # noqa: ANN401 - JSON
    state = KeyspaceState(past["state"])
    if state not in {KeyspaceState.RETAINED, KeyspaceState.DELETING}:
        raise InvalidDocument(f"a past keyspace is {state}")
    return PastKeyspace(
        layer=str(past["layer"]),
        keyspace=Keyspace.parse(past["keyspace"]),
        binding=str(past["binding"]),
        state=state,
        since=str(past["since"]),
        until=str(past["until"]),
        model_version=str(past["modelVersion"]),
        workload=str(past["workload"]),
    )


def _waiting(waiting: Any) -> Waiting:  # noqa: ANN401 - JSON
    return Waiting(
        version=str(waiting["version"]),
        since=str(waiting["since"]),
        disputed=tuple(str(identity) for identity in waiting["disputed"]),
    )
