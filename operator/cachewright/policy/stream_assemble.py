"""Assembling: from the chunks of a streamed chat completion to the whole one, no field of a delta left out.

Called by `answers` to judge a stream, and to answer a client that did not ask for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from cachewright.policy.sse import DONE

Json = dict[str, Any]

_SAID_ONCE: Final = frozenset({"id", "type", "role", "name", "index"})
"""Texts that name something: the first word counts, and a repetition adds nothing."""

_NO_END: Final[Json] = {"logprobs": None, "finish_reason": None}

MOST_DEPTH: Final = 16
"""Deeper deltas are refused, so that no stream can exhaust the stack."""

MOST_INDEXED: Final = 1024
"""More numbered items in one list, such as tool calls, are refused: each costs a search."""


@dataclass(slots=True)
class Assembled:
    """A stream that could be read to its end."""

    document: Json
    """A `chat.completion`."""
    is_done: bool
    """True: it ended with `data: [DONE]`, and every choice says why it ended."""
    models: set[str] = field(default_factory=set)
    """All models that its chunks name."""


def assemble_chat(payloads: Iterable[bytes]) -> Assembled | None:
    """Join chunks, given by their `data`; None where one is not a chunk, or reports an error."""
    document: Json = {}
    choices: dict[int, Json] = {}
    models: set[str] = set()
    saw_done = False
    for payload in payloads:
        if payload.strip() == DONE:
            saw_done = True
            continue
        chunk = _chunk(payload)
        if chunk is None or saw_done:
            return None
        if isinstance(model := chunk.get("model"), str) and model:
            models.add(model)
        _take_envelope(document, chunk)
        for choice in chunk["choices"]:
            if not _take_choice(choices, choice):
                return None
    whole = [choices[index] for index in sorted(choices)]
    is_done = saw_done and bool(whole) and all(choice.get("finish_reason") for choice in whole)
    usage = document.pop("usage", None)
    document |= {"object": "chat.completion", "choices": whole}
    if usage is not None:
        document["usage"] = usage
    return Assembled(document, is_done, models)


def _chunk(payload: bytes) -> Json | None:
    try:
        chunk: Any = orjson.loads(payload)
    except ValueError:
        return None
    if not isinstance(chunk, dict) or chunk.get("error") or not isinstance(chunk.get("choices"), list):
        return None
    return chunk


def _take_envelope(document: Json, chunk: Json) -> None:
    for name, value in chunk.items():
        if name == "choices":
            continue
        # What names the answer was said first; what sums it up, such as usage, is right when said last.
        if document.get(name) in (None, "") or (name not in ("id", "created", "model") and value is not None):
            document[name] = value


def _take_choice(choices: dict[int, Json], choice: object) -> bool:
    if not isinstance(choice, dict) or not isinstance(index := choice.get("index", 0), int):
        return False
    whole = choices.setdefault(
        index, {"index": index, "message": {}, "logprobs": None, "finish_reason": None}
    )
    for name, value in choice.items():
        if name == "delta":
            if not isinstance(value, dict) or not _merge(whole["message"], value, MOST_DEPTH):
                return False
        elif name == "logprobs" and isinstance(value, dict):
            whole["logprobs"] = whole["logprobs"] or {}
            if not _merge(whole["logprobs"], value, MOST_DEPTH):
                return False
        elif isinstance(value, list) and isinstance(held := whole.get(name), list):
            held.extend(value)
        elif name != "index" and (value is not None or name not in whole):
            whole[name] = value
    return True


def _merge(held: Json, delta: Json, depth: int) -> bool:
    """Add a delta to what is held of the same object; False where it is nested too deeply."""
    for name, value in delta.items():
        if isinstance(value, list | dict):
            if held.get(name) is None:
                held[name] = type(value)()
            if not _merge_nested(held[name], value, depth - 1):
                return False
            continue
        known = held.get(name)
        if isinstance(known, str) and isinstance(value, str):
            held[name] = (known or value) if name in _SAID_ONCE else known + value
        elif value is not None or name not in held:
            held[name] = value
    return True


def _merge_nested(held: object, delta: list[Any] | Json, depth: int) -> bool:
    if depth <= 0:
        return False
    if isinstance(held, list) and isinstance(delta, list):
        return _merge_list(held, delta, depth)
    if isinstance(held, dict) and isinstance(delta, dict):
        return _merge(held, delta, depth)
    return False


def _merge_list(held: list[Any], delta: list[Any], depth: int) -> bool:
    """Add items: those with an index to the item of that index, such as tool calls, others at the end."""
    for item in delta:
        index = item.get("index") if isinstance(item, dict) else None
        if not isinstance(index, int):
            held.append(item)
            continue
        place = next((known for known in held if isinstance(known, dict) and known.get("index") == index), {})
        if not place:
            if len(held) >= MOST_INDEXED:
                return False
            held.append(place)
        if not _merge(place, item, depth):
            return False
    return True
