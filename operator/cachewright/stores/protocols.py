"""What layers and the operator need of a store, as Protocols.

One contract suite runs on every implementation. All methods raise StoreError's subclasses.
"""

from __future__ import annotations

from typing import Protocol

from cachewright.keys.record import Record


class RecordStore(Protocol):
    """The broadcast copy of the record: one copy under each of the 64 hash tags of a cache."""

    async def read_record(self, cache_id: str) -> Record | None:
        """Read the copy with the highest revision; None where the store holds none."""

    async def publish_record(self, record: Record) -> int:
        """Write the record under every tag where its revision is greater.

        Returns the revision that the store holds afterwards: greater than ours when somebody was ahead.
        """

    async def aclose(self) -> None:
        """Close all connections."""
