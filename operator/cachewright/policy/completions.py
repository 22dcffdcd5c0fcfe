"""`/v1/completions`: which requests are cached and which answers may be stored. Pure.

A prompt is a text, a list of texts, a list of tokens, or a list of lists of tokens; a list of several prompts
has one choice for each. Called through `policy.endpoints`.
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

COMPLETIONS_CHECKS: Final[tuple[BodyCheck, ...]] = (delivery_is_unclear, choices_are_many)
"""What speaks against a request, beyond what is asked of every endpoint's."""


def why_not_completion(answer: Body, request: Body) -> RefusalReason | None:
    """Say why an answer must not be stored, or None if it may be."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or len(choices) != _prompts(request):
        return RefusalReason.UNPARSABLE
    wanted = wanted_format(request.get("response_format"))
    for choice in choices:
        if reason := _why_not_choice(choice, request, wanted):
            return reason
    return None


def _prompts(request: Body) -> int:
    prompt = request.get("prompt")
    # A list of numbers is one prompt in tokens.
    several = isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list)
    return len(prompt) if isinstance(prompt, list) and several else 1


def _why_not_choice(choice: object, request: Body, wanted: str) -> RefusalReason | None:
    if not isinstance(choice, Mapping) or not isinstance(text := choice.get("text"), str):
        return RefusalReason.UNPARSABLE
    if choice.get("finish_reason") != "stop":
        return RefusalReason.FINISH_REASON
    if request.get("echo"):
        # The prompt stands before what was generated, and is no answer by itself.
        prompt = request.get("prompt")
        text = text.removeprefix(prompt) if isinstance(prompt, str) else text
    if not text.strip():
        return RefusalReason.EMPTY
    return None if has_format(text, wanted) else RefusalReason.INVALID_FORMAT
