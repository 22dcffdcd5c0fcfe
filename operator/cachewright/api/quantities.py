"""Kubernetes quantities (`1Gi`, `250m`) as users write them and as code uses them (bytes)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from cachewright.api.base import Rule
from cachewright.errors import InvalidSpec

QUANTITY_PATTERN: Final = r"^[0-9]+(\.[0-9]{1,3})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"
QUANTITY_MAX_LENGTH: Final = 20

_SUFFIX: Final = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("k", "M", "G", "T", "P"), start=1)},
    **{
        suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), start=1)
    },
}
_PARTS: Final = re.compile(r"([0-9]+(?:\.[0-9]{1,3})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")

IS_QUANTITY: Final = Rule(
    cel="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",
    message="must be a quantity greater than zero, such as 512Mi or 1Gi",
)

Quantity = Annotated[
    str,
    Field(pattern=QUANTITY_PATTERN, min_length=1, max_length=QUANTITY_MAX_LENGTH),
    IS_QUANTITY,
]
"""An amount greater than zero, such as `512Mi` or `1Gi`."""

IntOrQuantity = (
    Annotated[int, Field(ge=0)]
    | Annotated[str, Field(pattern=QUANTITY_PATTERN, min_length=1, max_length=QUANTITY_MAX_LENGTH)]
)
"""An amount in `resources`, where Kubernetes takes `cpu: 1` as well as `cpu: "1"`."""


def parse_quantity(text: str | int) -> Decimal:
    """Turn a quantity such as `1.5Gi` into a plain number (of bytes, cores, …).

    Raises InvalidSpec when the text is not a quantity.
    """
    match = _PARTS.fullmatch(str(text))
    if match is None:
        raise InvalidSpec(f"{text!r} is not a quantity; write for example 512Mi or 1Gi")
    number, suffix = match.groups()
    return Decimal(number) * _SUFFIX[suffix or ""]


def parse_bytes(text: str | int) -> int:
    """Turn a quantity such as `64Mi` into a whole number of bytes."""
    return int(parse_quantity(text))
