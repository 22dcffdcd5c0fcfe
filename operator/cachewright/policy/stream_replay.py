"""Replaying: from a whole completion to the chunks of a stream that say the same.

Called by `answers` for clients that ask for a stream of an answer that was not one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from cachewright.policy.sse import write_event

Json = dict[str, Any]

_NULL_USAGE: Final = re.compile(rb',\s*"usage"\s*:\s*null(?=\s*[,}])')
"""A quote after a comma is never inside a JSON text, where it would be escaped."""

_USAGE: Final = b'"usage"'


def is_usage_chunk(payload: bytes) -> bool:
    """Tell whether a chunk has no choice and is there for its usage, as `include_usage` asks for."""
    if _USAGE not in payload:
        return False
    try:
        chunk: Any = orjson.loads(payload)
    except ValueError:
        return False
    return isinstance(chunk, dict) and chunk.get("usage") is not None and not chunk.get("choices")


def without_null_usage(payload: bytes) -> bytes:
    """Drop the `"usage": null` that `include_usage` puts into every chunk; all other bytes stay."""
    if payload.count(_USAGE) != 1:
        return payload
    return _NULL_USAGE.sub(b"", payload, count=1)


def replay_chat(document: Json) -> tuple[bytes, bytes]:
    """Return the events of a whole chat completion, and apart from them that with its usage, or nothing."""
    return _replay(document, "chat.completion.chunk", "message", _chat_chunks)


def replay_completion(document: Json) -> tuple[bytes, bytes]:
    """Return those of a whole text completion in the same way."""
    return _replay(document, "text_completion", "text", _text_chunks)


def _replay(
    document: Json, kind: str, content: str, cut: Callable[[Json], Iterator[Json]]
) -> tuple[bytes, bytes]:
    envelope = {name: value for name, value in document.items() if name not in ("choices", "usage")}
    envelope["object"] = kind
    events = [
        write_event(orjson.dumps({**envelope, "choices": [chunk]}))
        for choice in document["choices"]
        if isinstance(choice, dict) and isinstance(choice.get(content), dict | str)
        for chunk in cut(choice)
    ]
    usage = document.get("usage")
    last = write_event(orjson.dumps({**envelope, "choices": [], "usage": usage})) if usage else b""
    return b"".join(events), last


def _text_chunks(choice: Json) -> Iterator[Json]:
    """Cut a choice into its text and its end."""
    index, finish_reason = choice.get("index", 0), choice.get("finish_reason")
    rest = {name: value for name, value in choice.items() if name not in ("text", "logprobs")}
    yield {"index": index, "text": choice["text"], "logprobs": choice.get("logprobs"), "finish_reason": None}
    yield {**rest, "index": index, "text": "", "logprobs": None, "finish_reason": finish_reason}


def _chat_chunks(choice: Json) -> Iterator[Json]:
    """Cut a choice into its role, its text, what else its message holds, and its end."""
    message: Json = choice["message"]
    index, logprobs = choice.get("index", 0), choice.get("logprobs")
    yield _chunk(index, {"role": message.get("role", "assistant"), "content": ""})
    for name, value in message.items():
        if name in ("role", "content") or value in (None, [], {}):
            continue
        numbered = isinstance(value, list) and name == "tool_calls"
        yield _chunk(index, {name: _numbered(value) if numbered else value})
    if isinstance(text := message.get("content"), str) and text:
        yield _chunk(index, {"content": text}, logprobs)
        logprobs = None
    rest = {name: value for name, value in choice.items() if name not in ("message", "index", "logprobs")}
    yield {**_chunk(index, {}, logprobs), **rest}


def _chunk(index: int, delta: Json, logprobs: object = None) -> Json:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": None}


def _numbered(calls: list[Any]) -> list[Any]:
    return [
        {"index": number, **call} if isinstance(call, dict) else call for number, call in enumerate(calls)
    ]
