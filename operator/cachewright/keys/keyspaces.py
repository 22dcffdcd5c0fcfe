"""Keyspaces: all entries of one layer under one fingerprint, named `<id>-<incarnation>`.

Used by the record, the key scheme and status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from cachewright.errors import InvalidDocument

KEYSPACE_ID_LENGTH: Final = 16
"""Hex digits of the fingerprint's SHA-256 that form the id."""

_NAME: Final = re.compile(r"([0-9a-f]{16})-([1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True, order=True)
class Keyspace:
    """A keyspace's physical name: id from the fingerprint, incarnation from the record's counter."""

    id: str
    incarnation: int
    """Never given twice under one record, so that a dead keyspace never revives."""

    @classmethod
    def parse(cls, name: str) -> Self:
        """Read `<id>-<incarnation>`; raises InvalidDocument for anything else."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise InvalidDocument(f"{name!r} is not a keyspace name such as 0123456789abcdef-1")
        return cls(match.group(1), int(match.group(2)))

    def __str__(self) -> str:
        return f"{self.id}-{self.incarnation}"
