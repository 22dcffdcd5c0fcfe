"""Validate before store: from an upstream's answer to the bytes that may be stored, or the reason why not.

Truncated, filtered, empty, failed and tool-calling answers are relayed and never stored. Called by the
gateway after every cacheable miss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from cachewright.policy.body import Body
from cachewright.policy.cacheable import is_json_type
from cachewright.policy.content_encoding import decode_content
from cachewright.policy.document import GatewayPolicy
from cachewright.policy.endpoints import ENDPOINTS
from cachewright.policy.reasons import RefusalReason


@dataclass(frozen=True, slots=True)
class Answer:
    """What the upstream sent, whole."""

    status: int
    content_type: str
    content_encoding: str
    """Lower case; empty where absent."""
    body: bytes


def storable_body(answer: Answer, request: Body, path: str, policy: GatewayPolicy) -> bytes | RefusalReason:
    """Return the plain body to store, or why the answer to `request` on `path` must not be stored."""
    if answer.status != 200:
        return RefusalReason.STATUS
    if not is_json_type(answer.content_type):
        return RefusalReason.CONTENT_TYPE
    if len(answer.body) > policy.max_cacheable_body_bytes:
        return RefusalReason.TOO_LARGE
    body = decode_content(answer.body, answer.content_encoding, policy.max_cacheable_body_bytes)
    if body is None:
        return RefusalReason.ENCODED
    return _why_not_stored(body, request, path, policy) or body


def _why_not_stored(body: bytes, request: Body, path: str, policy: GatewayPolicy) -> RefusalReason | None:
    try:
        document: Any = orjson.loads(body)
    except ValueError:
        return RefusalReason.UNPARSABLE
    if not isinstance(document, dict) or document.get("error"):
        return RefusalReason.UNPARSABLE
    reason = ENDPOINTS[path].why_not_stored(document, request)
    if reason is RefusalReason.UNPARSABLE:
        return reason
    if document.get("model") not in (policy.model, *policy.model_aliases):
        return RefusalReason.MODEL
    return reason
