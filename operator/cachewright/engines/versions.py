"""Versions of engines as people write them, `0.32`, `v0.5.3.post1`, `1.3.0rc2`, and their order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

from cachewright.errors import InvalidInput

_VERSION: Final = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?(?P<rest>[-.+]?[A-Za-z].{0,64})?")


@total_ordering
@dataclass(frozen=True, slots=True)
class EngineVersion:
    """A version; what follows its first three numbers (`rc1`, `.post2`, `+cu124`) says nothing on flags."""

    major: int
    minor: int = 0
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> EngineVersion:
        """Read a version; raises InvalidInput with an example where it is none."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            raise InvalidInput(f"{text!r} is not a version of an engine; write for example 0.32.0")
        numbers = [int(match.group(index) or 0) for index in (1, 2, 3)]
        return cls(*numbers)

    def __lt__(self, other: EngineVersion) -> bool:
        return (self.major, self.minor, self.patch) < (other.major, other.minor, other.patch)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"
