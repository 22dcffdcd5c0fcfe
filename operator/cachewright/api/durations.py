"""Durations as users write them (`30m`, `1h30m`, `5ms`) and as code uses them (seconds)."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import Field

from cachewright.api.base import Rule
from cachewright.errors import InvalidSpec

DURATION_PATTERN: Final = r"^([0-9]{1,6}(ms|s|m|h))+$"
"""Go's units up to hours; days are left out because CEL's `duration()` does not know them."""

DURATION_MAX_LENGTH: Final = 16
"""Keeps every accepted text within what the API server's CEL can hold (292 years)."""

_PART: Final = re.compile(r"([0-9]{1,6})(ms|s|m|h)")
_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

POSITIVE_DURATION: Final = Rule(
    cel="duration(self) > duration('0s')",
    message="must be longer than zero; write for example 30m, 24h or 500ms",
)

Duration = Annotated[
    str,
    Field(pattern=DURATION_PATTERN, min_length=2, max_length=DURATION_MAX_LENGTH),
    POSITIVE_DURATION,
]
"""A length of time greater than zero, such as `30m`, `1h30m` or `5ms`."""


def parse_duration_seconds(text: str) -> float:
    """Turn a duration such as `1h30m` into seconds.

    Raises InvalidSpec when the text does not match `DURATION_PATTERN`.
    """
    if not re.fullmatch(DURATION_PATTERN, text):
        raise InvalidSpec(f"{text!r} is not a duration; write for example 30m, 24h or 500ms")
    return sum(int(count) * _UNIT_SECONDS[unit] for count, unit in _PART.findall(text))
