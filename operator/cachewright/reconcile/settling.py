"""When a switch is over: gateways serve copies from their memory for a moment after the store holds it.

`service` asks before status tells of a switch. What is remembered here may be lost: a switch then counts from
when it was seen next, so status tells of it later, never earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cachewright.keys.record import Record
from cachewright.reconcile.state import Manifest


@dataclass(slots=True)
class Settling:
    """The switches that were seen in the store and not told yet, by the object's uid."""

    monotonic: Callable[[], float]
    switch_seconds: float
    _seen: dict[str, tuple[Mapping[str, str], float]] = field(default_factory=dict)

    def seconds_left(self, uid: str, status: Manifest, record: Record | None, held: bool) -> float | None:
        """Return how long the switch from what `status` tells to `record` takes yet.

        0 where there is none, or where it is over; None where the store does not hold it yet, so that nobody
        can tell. `held` says whether it does.
        """
        told = {str(each.get("name")): str(each.get("keyspace")) for each in status.get("layers") or []}
        wanted = {name: str(layer.keyspace) for name, layer in record.layers.items()} if record else {}
        if not told or all(wanted.get(name) == keyspace for name, keyspace in told.items()):
            self._seen.pop(uid, None)
            return 0.0
        if not held:
            self._seen.pop(uid, None)
            return None
        seen, since = self._seen.get(uid, ({}, 0.0))
        if seen != wanted:
            since = self.monotonic()
            self._seen[uid] = (wanted, since)
        return max(0.0, since + self.switch_seconds - self.monotonic())
