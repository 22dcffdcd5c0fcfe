"""Usage: from a kept answer to the tokens that a hit saves. Pure; called by the gateway's metrics.

Read without parsing the whole answer, since it happens on every hit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cachewright.policy.answers import KeptAnswer

_MARK: Final = b'"usage"'
"""Within a text of the answer its quotation marks would be escaped."""

_MOST_BYTES: Final = 4096
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an upstream counted for one answer; 0 where it did not say."""

    prompt: int = 0
    completion: int = 0


def tokens_of(answer: KeptAnswer) -> Tokens:
    """Read what the upstream counted; the answers of all endpoints are understood."""
    usage = _usage(answer.usage or answer.body)
    return Tokens(
        _number(usage, "prompt_tokens", "input_tokens"), _number(usage, "completion_tokens", "output_tokens")
    )


def _usage(body: bytes) -> Mapping[str, Any]:
    at = body.rfind(_MARK)
    if at < 0:
        return {}
    text = body[at + len(_MARK) : at + _MOST_BYTES].decode("utf-8", "replace")
    try:
        value, _ = _DECODER.raw_decode(text.lstrip(": \t\r\n"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _number(usage: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return 0
