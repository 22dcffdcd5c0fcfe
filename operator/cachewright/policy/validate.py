"""Validate before store: from an upstream's answer to the bytes that may be stored, or the reason why not.

Truncated, filtered, empty, failed and tool-calling answers are relayed and never stored. Called by the
gateway after every cacheable miss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from cachewright.policy.cacheable import Body, is_json_type
from cachewright.policy.content_encoding import decode_content
from cachewright.policy.document import GatewayPolicy
from cachewright.policy.reasons import RefusalReason


@dataclass(frozen=True, slots=True)
class Answer:
    """What the upstream sent, whole."""

    status: int
    content_type: str
    content_encoding: str
    """Lower case; empty where absent."""
    body: bytes


def storable_body(answer: Answer, request: Body, policy: GatewayPolicy) -> bytes | RefusalReason:
    """Return the plain body to store, or why the answer to `request` must not be stored."""
    if answer.status != 200:
        return RefusalReason.STATUS
    if not is_json_type(answer.content_type):
        return RefusalReason.CONTENT_TYPE
    if len(answer.body) > policy.max_cacheable_body_bytes:
        return RefusalReason.TOO_LARGE
    body = decode_content(answer.body, answer.content_encoding, policy.max_cacheable_body_bytes)
    if body is None:
        return RefusalReason.ENCODED
    return _why_not_stored(body, request, policy) or body


def _why_not_stored(body: bytes, request: Body, policy: GatewayPolicy) -> RefusalReason | None:
    try:
        document: Any = orjson.loads(body)
    except ValueError:
        return RefusalReason.UNPARSABLE
    if not isinstance(document, dict) or document.get("error"):
        return RefusalReason.UNPARSABLE
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices:
        return RefusalReason.UNPARSABLE
    if document.get("model") not in (policy.model, *policy.model_aliases):
        return RefusalReason.MODEL
    wanted_format = _wanted_format(request)
    for choice in choices:
        if reason := _why_not_choice(choice, wanted_format):
            return reason
    return None


def _why_not_choice(choice: object, wanted_format: str) -> RefusalReason | None:
    if not isinstance(choice, Mapping) or not isinstance(message := choice.get("message"), Mapping):
        return RefusalReason.UNPARSABLE
    if message.get("tool_calls") or message.get("function_call"):
        return RefusalReason.TOOL_CALL
    if choice.get("finish_reason") != "stop":
        return RefusalReason.FINISH_REASON
    if message.get("refusal"):
        return RefusalReason.REFUSAL
    text = message.get("content")
    if not isinstance(text, str) or not text.strip():
        return RefusalReason.EMPTY
    return None if _has_format(text, wanted_format) else RefusalReason.INVALID_FORMAT


def _wanted_format(request: Body) -> str:
    response_format = request.get("response_format")
    return str(response_format.get("type")) if isinstance(response_format, Mapping) else "text"


def _has_format(text: str, wanted: str) -> bool:
    if wanted not in ("json_object", "json_schema"):
        return True
    try:
        value = orjson.loads(text)
    except ValueError:
        return False
    return wanted == "json_schema" or isinstance(value, dict)
