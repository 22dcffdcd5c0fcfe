"""Request bodies: what the rules of several endpoints read from one. Pure; called by the endpoints' rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from cachewright.policy.reasons import BypassReason

Body = Mapping[str, Any]
"""A parsed request or answer."""

BodyCheck = Callable[[Body], BypassReason | None]
"""Why a request of one endpoint is not cached, or None."""


def is_number(value: object, wanted: int) -> bool:
    """Tell whether a value is this JSON number, however it is spelt."""
    # True == 1 in Python, and "1" is not what the client's SDK documents: only a JSON number counts.
    return isinstance(value, int | float) and not isinstance(value, bool) and value == wanted


def delivery_is_unclear(body: Body) -> BypassReason | None:
    """Refuse a request that one engine may answer with a stream and another may not."""
    # `stream` is not part of the key, so whatever an engine might take for true must not get past here.
    stream = body.get("stream")
    return None if stream is None or isinstance(stream, bool) else BypassReason.AMBIGUOUS_JSON


def choices_are_many(body: Body) -> BypassReason | None:
    """Refuse a request for more than one choice."""
    return None if is_number(body.get("n", 1), 1) else BypassReason.N


def wanted_format(declared: object) -> str:
    """Return the type that a `response_format` or `text.format` asks for; `text` where it asks for none."""
    return str(declared.get("type")) if isinstance(declared, Mapping) else "text"


def has_format(text: str, wanted: str) -> bool:
    """Tell whether an answer's text has the format that was asked for."""
    if wanted not in ("json_object", "json_schema"):
        return True
    try:
        value = orjson.loads(text)
    except ValueError:
        return False
    return wanted == "json_schema" or isinstance(value, dict)
