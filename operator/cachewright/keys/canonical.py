"""Canonical JSON: from a request body to one form that all spellings of the same request share.

Object keys are sorted by code point, array order is kept, 1 and 1.0 and 1e0 are one number, white space is
dropped, Unicode stays as sent (no normalisation). What two readers could understand differently is refused.

Called by the gateway for every cacheable request; docs/architecture.md has the whole of it.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

import orjson

from cachewright.errors import AmbiguousJson, InvalidJson

_SMALLEST_INTEGER: Final = -(2**63)
_LARGEST_INTEGER: Final = 2**64 - 1
_LONGEST_INTEGER: Final = 20
"""Characters of the longest integer in bounds, so that a megabyte of digits is never converted."""


def parse_json(body: bytes) -> object:
    """Read a body so that numbers of equal value are equal.

    Raises InvalidJson for what is not JSON, and AmbiguousJson for what readers disagree about: duplicate
    object keys at any depth, integers beyond 64 bits, NaN and infinities, numbers too large for a double,
    text that is not UTF-8, nesting beyond what we can follow.
    """
    try:
        return _DECODER.decode(body.decode())
    except UnicodeDecodeError as e:
        raise AmbiguousJson("the body is not UTF-8") from e
    except RecursionError as e:
        raise AmbiguousJson("the body is nested too deeply") from e
    except ValueError as e:
        raise InvalidJson("the body is not JSON") from e


def canonical_json(value: object) -> bytes:
    """Render what `parse_json` gave; raises AmbiguousJson for lone surrogates and for deep nesting."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as e:
        raise AmbiguousJson("the body holds a lone surrogate or is nested too deeply") from e


def plain_json(value: object) -> bytes:
    """Render what `parse_json` gave with object keys in their order; raises as `canonical_json`."""
    try:
        return orjson.dumps(value)
    except TypeError as e:
        raise AmbiguousJson("the body holds a lone surrogate or is nested too deeply") from e


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise AmbiguousJson("an object holds a key twice")
    return members


def _integer(digits: str) -> int:
    if len(digits) <= _LONGEST_INTEGER:
        value = int(digits)
        if _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
            return value
    raise AmbiguousJson("an integer is beyond 64 bits")


def _number(digits: str) -> int | float:
    value = float(digits)
    if math.isinf(value):
        raise AmbiguousJson("a number is too large for a double")
    if value.is_integer() and _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
        return int(value)  # -0.0 becomes 0 too
    return value


def _constant(name: str) -> NoReturn:
    raise AmbiguousJson(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)
