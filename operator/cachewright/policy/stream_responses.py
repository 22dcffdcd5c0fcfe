"""Streams of `/v1/responses`: from their events to the whole response, and back.

These events have names, count themselves, and end with the whole response; usage and text are in it. Named by
`stream_form`, used through it by `answers`, which judge and deliver streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from cachewright.policy.responses import content_parts
from cachewright.policy.sse import DONE, write_event
from cachewright.policy.stream_assemble import Assembled

Json = dict[str, Any]

_ENDS: Final = ("response.completed", "response.incomplete")
_FAILURES: Final = ("error", "response.failed")
_COMPLETED: Final = b'"response.completed"'
"""Within a text of the answer its quotation marks would be escaped."""

_SAID_AT_THE_END: Final[Json] = {"usage": None, "completed_at": None, "output_text": ""}
"""Fields of a response that say nothing before it is whole, and what they hold until then."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """How one list of an item's parts is streamed."""

    name: str
    """The item's field that holds them."""
    kind: str
    """The type of each part."""
    index: str
    """What its events call its number."""
    part_event: str
    text_event: str


_PARTS: Final[Mapping[str, tuple[_Parts, ...]]] = {
    "message": (
        _Parts("content", "output_text", "content_index", "response.content_part", "response.output_text"),
    ),
    "reasoning": (
        _Parts(
            "summary",
            "summary_text",
            "summary_index",
            "response.reasoning_summary_part",
            "response.reasoning_summary_text",
        ),
        _Parts(
            "content", "reasoning_text", "content_index", "response.content_part", "response.reasoning_text"
        ),
    ),
}
"""By the type of the item; a response with any other is not replayed."""


def is_completed_event(payload: bytes) -> bool:
    """Tell whether an event holds the completed response, after which a client needs nothing more."""
    if _COMPLETED not in payload:
        return False
    event = _event(payload)
    return event is not None and event["type"] == "response.completed"


def assemble_response(payloads: Iterable[bytes]) -> Assembled | None:
    """Take the response out of its events, given by their `data`.

    None where one of them is none or tells of a failure. It is done if its text is what the deltas said.
    """
    document: Json | None = None
    models: set[str] = set()
    deltas: list[str] = []
    is_over = False
    for payload in payloads:
        if payload.strip() == DONE:  # some servers end these streams with it too
            is_over = True
            continue
        event = _event(payload)
        if event is None or is_over or document is not None:
            return None
        kind, response = event["type"], event.get("response")
        if isinstance(response, dict) and isinstance(model := response.get("model"), str):
            models.add(model)
        if kind == "response.output_text.delta" and isinstance(delta := event.get("delta"), str):
            deltas.append(delta)
        elif kind in _FAILURES:
            return None
        elif kind in _ENDS:
            if not isinstance(response, dict):
                return None
            document = response
    if document is None:
        return Assembled({}, is_done=False, models=models)
    return Assembled(document, _letters("".join(deltas)) == _letters(_text(document)), models)


def replay_response(document: Json) -> tuple[bytes, bytes] | None:
    """Return the events of a whole response; None where it holds what we do not know how to stream.

    The usage is in them, so there is none apart.
    """
    if not _is_understood(document):
        return None
    begun = {**document, "status": "in_progress", "output": []}
    begun |= {name: value for name, value in _SAID_AT_THE_END.items() if name in document}
    events: list[tuple[str, Json]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for index, item in enumerate(document["output"]):
        events += _item_events(index, item)
    events.append(("response.completed", {"response": document}))
    written = (
        write_event(orjson.dumps({"type": kind, "sequence_number": number, **fields}), kind.encode())
        for number, (kind, fields) in enumerate(events)
    )
    return b"".join(written), b""


def _event(payload: bytes) -> Json | None:
    try:
        event: Any = orjson.loads(payload)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("type"), str) else None


def _text(document: Json) -> str:
    output = document.get("output")
    items = [item for item in output if isinstance(item, Mapping)] if isinstance(output, list) else []
    return "".join(str(part["text"]) for part in content_parts(items) if "text" in part)


def _letters(text: str) -> str:
    """Return a text without spaces: a server may trim it only once it is whole."""
    return "".join(text.split())


def _is_understood(document: Json) -> bool:
    output = document.get("output")
    return (
        document.get("status") == "completed"
        and isinstance(document.get("id"), str)
        and isinstance(output, list)
        and all(_item_is_understood(item) for item in output)
        and len({item["id"] for item in output}) == len(output)
    )


def _item_is_understood(item: object) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not item["id"]:
        return False
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _PARTS:
        return False
    return all(
        item.get(parts.name) is None
        or (
            isinstance(item[parts.name], list)
            and all(_part_is_understood(part, parts.kind) for part in item[parts.name])
        )
        for parts in _PARTS[kind]
    )


def _part_is_understood(part: object, kind: str) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") == kind
        and isinstance(part.get("text"), str)
        and isinstance(part.get("annotations") or [], list)
        and isinstance(logprobs := part.get("logprobs") or [], list)
        and all(isinstance(one, dict) and isinstance(one.get("token"), str) for one in logprobs)
    )


def _item_events(output_index: int, item: Json) -> Iterator[tuple[str, Json]]:
    lists = _PARTS[item["type"]]
    begun = {**item, **{parts.name: [] for parts in lists if item.get(parts.name)}}
    if item.get("status"):
        begun["status"] = "in_progress"
    yield "response.output_item.added", {"output_index": output_index, "item": begun}
    at = {"item_id": item["id"], "output_index": output_index}
    for parts in lists:
        for index, part in enumerate(item.get(parts.name) or []):
            yield from _part_events(parts, {**at, parts.index: index}, part)
    yield "response.output_item.done", {"output_index": output_index, "item": item}


def _part_events(parts: _Parts, at: Json, part: Json) -> Iterator[tuple[str, Json]]:
    """Give the events of one part, which `at` says the place of."""
    text, logprobs = part["text"], part.get("logprobs") or []
    lists: Json = {name: [] for name in ("annotations", "logprobs") if part.get(name)}
    yield f"{parts.part_event}.added", {**at, "part": {**part, **lists, "text": ""}}
    has_logprobs = parts.kind == "output_text"
    for delta, its_logprobs in _cut(text, logprobs):
        rest = {"logprobs": its_logprobs} if has_logprobs else {}
        yield f"{parts.text_event}.delta", {**at, "delta": delta, **rest}
    for number, annotation in enumerate(part.get("annotations") or []):
        yield (
            f"{parts.text_event}.annotation.added",
            {**at, "annotation_index": number, "annotation": annotation},
        )
    rest = {"logprobs": logprobs} if has_logprobs else {}
    yield f"{parts.text_event}.done", {**at, "text": text, **rest}
    yield f"{parts.part_event}.done", {**at, "part": part}


def _cut(text: str, logprobs: list[Json]) -> list[tuple[str, list[Json]]]:
    """Cut a text in two, as clients of streams expect it, and between tokens where they are known."""
    half = len(logprobs) // 2
    head = "".join(one["token"] for one in logprobs[:half]) if logprobs else text[: len(text) // 2]
    if not text.startswith(head) or head in ("", text):
        return [(text, logprobs)] if text else []
    return [(head, logprobs[:half]), (text[len(head) :], logprobs[half:])]
