"""The record: the truth about a cache's keyspaces, as a value and as JSON.

The operator keeps it in the ConfigMap `<name>-record` by compare-and-swap; Redis holds a broadcast copy,
gateways a mounted one. Every change raises `revision`; nothing ever lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from cachewright.errors import InvalidDocument
from cachewright.keys.keyspaces import Keyspace

RECORD_FORMAT: Final = 1
"""Format number in the JSON; readers refuse what they do not know."""

RECORD_DATA_KEY: Final = "record.json"
"""Key in the ConfigMap and file name where it is mounted."""


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """One layer's active keyspace."""

    keyspace: Keyspace
    binding: str
    """What a gateway must enact to use the keyspace; see `keys.fingerprints`."""
    since: str
    """When it became active, RFC 3339 in UTC."""


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
    """By layer name, such as `Exact`."""
    immutable: dict[str, str] = field(default_factory=dict)
    """Choices that must not change, by field path, as they were when the record was made."""

    def with_layer(self, name: str, keyspace_id: str, binding: str, now: str) -> Record:
        """Return the record with a new incarnation of `keyspace_id` active for layer `name`."""
        incarnation = self.incarnation + 1
        active = LayerRecord(Keyspace(keyspace_id, incarnation), binding, now)
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

    def to_json(self) -> str:
        """Render as JSON; the same record gives the same text."""
        document = {
            "format": RECORD_FORMAT,
            "cacheID": self.cache_id,
            "revision": self.revision,
            "incarnation": self.incarnation,
            "layers": {
                name: {"keyspace": str(layer.keyspace), "binding": layer.binding, "since": layer.since}
                for name, layer in self.layers.items()
            },
            "immutable": self.immutable,
        }
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """Read what `to_json` wrote; raises InvalidDocument for anything else."""
        try:
            document: Any = orjson.loads(text)
            if document["format"] != RECORD_FORMAT:
                raise InvalidDocument(f"record format {document['format']!r} is not {RECORD_FORMAT}")
            return cls(
                cache_id=str(document["cacheID"]),
                revision=int(document["revision"]),
                incarnation=int(document["incarnation"]),
                layers={
                    str(name): LayerRecord(
                        Keyspace.parse(layer["keyspace"]), str(layer["binding"]), str(layer["since"])
                    )
                    for name, layer in document["layers"].items()
                },
                immutable={str(path): str(value) for path, value in document["immutable"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise InvalidDocument(f"not a record: {e}") from e
