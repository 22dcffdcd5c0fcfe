"""`/v1/responses`: which requests are cached and which answers may be stored. Pure.

Only what stands on its own is cached: nothing that the provider keeps, continues or runs by itself, so
`store: false` must be said, since leaving it out means that the provider keeps the response. Called through
`policy.endpoints`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cachewright.policy.body import Body, BodyCheck, delivery_is_unclear, has_format, wanted_format
from cachewright.policy.reasons import BypassReason, RefusalReason

CLIENT_TOOLS: Final = ("function", "custom")
"""Tools that the client runs itself; any other is built in and may do or read something."""

STATE_FIELDS: Final = ("previous_response_id", "conversation", "prompt")
"""Fields that refer to something the provider keeps."""


def _request_has_state(body: Body) -> BypassReason | None:
    stateless = (
        body.get("store") is False
        and body.get("background") in (None, False)
        and all(body.get(name) is None for name in STATE_FIELDS)
        and not _refers_to_items(body.get("input"))
        and _tools_are_the_clients(body.get("tools"))
    )
    return None if stateless else BypassReason.STATEFUL


def _stream_is_special(body: Body) -> BypassReason | None:
    # What `stream_options` say here, such as how events are padded, is in the bytes that would be replayed.
    return BypassReason.STREAM if body.get("stream") is True and body.get("stream_options") else None


RESPONSES_CHECKS: Final[tuple[BodyCheck, ...]] = (delivery_is_unclear, _stream_is_special, _request_has_state)
"""What speaks against a request, beyond what is asked of every endpoint's."""


def why_not_response(answer: Body, request: Body) -> RefusalReason | None:
    """Say why an answer must not be stored, or None if it may be."""
    output = answer.get("output")
    if not isinstance(output, list):
        return RefusalReason.UNPARSABLE
    if any(not isinstance(item, Mapping) for item in output):
        return RefusalReason.UNPARSABLE
    if any(item.get("type") not in ("message", "reasoning") for item in output):
        return RefusalReason.TOOL_CALL
    if answer.get("status") != "completed" or answer.get("incomplete_details"):
        return RefusalReason.FINISH_REASON
    parts = list(content_parts(output))
    if any(part.get("type") == "refusal" for part in parts):
        return RefusalReason.REFUSAL
    if any(part.get("type") != "output_text" or not isinstance(part.get("text"), str) for part in parts):
        return RefusalReason.UNPARSABLE
    text = "".join(part["text"] for part in parts)
    if not text.strip():
        return RefusalReason.EMPTY
    options = request.get("text")
    wanted = wanted_format(options.get("format") if isinstance(options, Mapping) else None)
    return None if has_format(text, wanted) else RefusalReason.INVALID_FORMAT


def _refers_to_items(given: object) -> bool:
    """Tell whether the input names something that was said in another response."""
    if not isinstance(given, list):
        return False
    # An item without a type but with an id alone is a reference too.
    return any(
        isinstance(item, Mapping) and (item.get("type") == "item_reference" or set(item) == {"id"})
        for item in given
    )


def _tools_are_the_clients(tools: object) -> bool:
    if tools is None:
        return True
    return isinstance(tools, list) and all(
        isinstance(tool, Mapping) and tool.get("type") in CLIENT_TOOLS for tool in tools
    )


def content_parts(output: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Give the parts of a response's messages; what is no part as an empty one."""
    for item in output:
        content = item.get("content") if item.get("type") == "message" else None
        for part in content if isinstance(content, list) else ():
            yield part if isinstance(part, Mapping) else {}
