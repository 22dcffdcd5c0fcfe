"""`/v1/chat/completions`: which requests are cached and which answers may be stored. Pure.

Called through `policy.endpoints`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cachewright.policy.body import (
    Body,
    BodyCheck,
    choices_are_many,
    delivery_is_unclear,
    has_format,
    wanted_format,
)
from cachewright.policy.reasons import RefusalReason

CHAT_CHECKS: Final[tuple[BodyCheck, ...]] = (delivery_is_unclear, choices_are_many)
"""What speaks against a request, beyond what is asked of every endpoint's."""


def why_not_chat(answer: Body, request: Body) -> RefusalReason | None:
    """Say why an answer must not be stored, or None if it may be."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices:
        return RefusalReason.UNPARSABLE
    wanted = wanted_format(request.get("response_format"))
    for choice in choices:
        if reason := _why_not_choice(choice, wanted):
            return reason
    return None


def _why_not_choice(choice: object, wanted: str) -> RefusalReason | None:
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
    return None if has_format(text, wanted) else RefusalReason.INVALID_FORMAT
