"""What a cache is to hold, as a person or a measurement says it; what every model of a store begins from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

ENTRY_HEAD_BYTES: Final = 170
"""What the layers put before each answer: seal, times, content type and the counters it depends on."""

TICKET_BYTES: Final = 75
"""What Redis holds for each entry of the semantic layer: a nonce and the same counters."""

TENANT_TAG_BYTES: Final = 43
DIGEST_BYTES: Final = 64

KIBIBYTE: Final = 1024
MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Load:
    """What is alive at one time."""

    entries: int
    """Answers in one keyspace; the exact and the semantic layer each hold so many."""
    answer_bytes: int = 2000
    """Of one answer as it is stored; a stream is stored as its events."""
    question_bytes: int = 200
    """Of the text that is compared."""
    dimensions: int = 0
    """Of the embedder's vectors; 0 where there is none."""
    embeddings: int = 0
    """Texts whose vectors the embedding layer holds."""
    retained: int = 1
    """Keyspaces that are kept beside the one in use, as full as it."""

    @property
    def keyspaces(self) -> int:
        """Keyspaces at one time of a layer that depends on the model."""
        return 1 + self.retained


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of thing in one store."""

    what: str
    entries: int
    memory_bytes: int = 0
    disk_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Need:
    """What one store needs."""

    store: str
    """Its field of `spec.stores`."""
    parts: tuple[Part, ...] = field(default_factory=tuple)

    @property
    def memory_bytes(self) -> int:
        """What must be in memory, for the server and for what it is asked for all the time."""
        return sum(part.memory_bytes for part in self.parts)

    @property
    def disk_bytes(self) -> int:
        """What lies on the volume."""
        return sum(part.disk_bytes for part in self.parts)


def scaled(entries: int, bytes_each: float) -> int:
    """Multiply, in whole bytes."""
    return round(entries * bytes_each)
