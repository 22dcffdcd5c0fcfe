"""Write permission: from a record to the keyspaces that gateways may write to, and under which condition.

It is carried out by the store itself, in the script that writes an entry, by what the record's copy there
says. Called by the stores when they publish a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, Record


@dataclass(frozen=True, slots=True)
class WritePermission:
    """The keyspaces of one record that may be written to."""

    free: tuple[Keyspace, ...]
    """At any time."""
    fenced: tuple[Keyspace, ...]
    """While the operator's heartbeat says that it watches the pods they depend on."""

    @classmethod
    def of(cls, record: Record) -> Self:
        """Read a record: active keyspaces only, and those that depend on the model under its fence."""
        active = [layer for layer in record.layers.values() if layer.state is KeyspaceState.ACTIVE]
        fenced = [layer for layer in active if record.fenced and (layer.workload or layer.model_version)]
        return cls(
            tuple(layer.keyspace for layer in active if layer not in fenced),
            tuple(layer.keyspace for layer in fenced),
        )

    def allows(self, keyspace: Keyspace, *, is_beating: bool) -> bool:
        """Tell whether a keyspace may be written to now."""
        return keyspace in self.free or (is_beating and keyspace in self.fenced)


def spaced(*keyspaces: Keyspace) -> str:
    """Write names so that each stands between two spaces, which no name holds."""
    return f" {' '.join(map(str, keyspaces))} "
