"""Evaluates the rules' CEL outside the API server, with the functions that Kubernetes adds to CEL.

Called by `validation`. A method such as `quantity(a).compareTo(b)` is a function whose first argument is the
receiver. Quantities stay text between functions, because CEL's own numbers could not hold them exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from ipaddress import IPv6Address
from typing import Any, Final

import cel

from cachewright.api.quantities import parse_quantity
from cachewright.errors import InvalidSpec, RuleNotEvaluable


def holds(expression: str, value: Any, former: Any = None) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether a rule holds for `self` = value and `oldSelf` = former.

    Raises RuleNotEvaluable when a part that the rule reads is missing or of another type.
    """
    try:
        context = cel.Context(variables={"self": value, "oldSelf": former}, functions=_FUNCTIONS)
        result = _compiled(expression).execute(context)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise RuleNotEvaluable(f"the rule {expression} cannot be evaluated: {error}") from error
    if not isinstance(result, bool):
        raise RuleNotEvaluable(f"the rule {expression} gives {result!r}, not true or false")
    return result


@cache
def _compiled(expression: str) -> cel.Program:
    return cel.compile(expression)


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except InvalidSpec:
        return False
    return True


def _compare(first: str, second: str) -> int | None:
    """None, which no rule can use, where one is no quantity; the evaluator would log an exception."""
    if not (_is_quantity(first) and _is_quantity(second)):
        return None
    one, other = parse_quantity(first), parse_quantity(second)
    return (one > other) - (one < other)


def _is_greater(first: str, second: str) -> bool | None:
    order = _compare(first, second)
    return None if order is None else order > 0


def _is_less(first: str, second: str) -> bool | None:
    return _is_greater(second, first)


_URL: Final = re.compile(r"https?://(\[(?P<ipv6>[^\]]*)\]|[^][:/]*)(:[0-9]*)?(?P<path>/.*)?", re.DOTALL)
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _is_url(text: str) -> bool:
    """Go's `url.ParseRequestURI`, as far as it is stricter than our pattern for http(s) URLs."""
    match = _URL.fullmatch(text)
    if match is None or _BROKEN_ESCAPE.search(match["path"] or ""):
        return False
    try:
        IPv6Address(match["ipv6"] or "::")
    except ValueError:
        return False
    return True


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "isQuantity": _is_quantity,
    "quantity": str,
    "compareTo": _compare,
    "isGreaterThan": _is_greater,
    "isLessThan": _is_less,
    "isURL": _is_url,
}
