"""Assembling: from the chunks of a streamed completion to the whole one, no field of a delta left out.

Called by `answers` to judge a stream, and to answer a client that did not ask for one.
"""

from __future__ import annotations

import copy
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
    """A `chat.completion` or a `text_completion`."""
    is_done: bool
    """True: it ended with `data: [DONE]`, and every choice says why it ended."""
    models: set[str] = field(default_factory=set)
    """All models that its chunks name."""


def assemble_chat(payloads: Iterable[bytes]) -> Assembled | None:
    """Join the chunks of a chat completion, given by their `data`; None where one is none or is an error."""
    return _assemble(payloads, "chat.completion", {"message": {}, **_NO_END})


def assemble_completion(payloads: Iterable[bytes]) -> Assembled | None:
    """Join the chunks of a text completion in the same way."""
    return _assemble(payloads, "text_completion", {"text": "", **_NO_END})


def _assemble(payloads: Iterable[bytes], kind: str, empty_choice: Json) -> Assembled | None:
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
        if not all(_take_choice(choices, choice, empty_choice) for choice in chunk["choices"]):
            return None
    whole = [choices[index] for index in sorted(choices)]
    is_done = saw_done and bool(whole) and all(choice.get("finish_reason") for choice in whole)
    usage = document.pop("usage", None)
    document |= {"object": kind, "choices": whole}
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


def _take_choice(choices: dict[int, Json], choice: object, empty_choice: Json) -> bool:
    if not isinstance(choice, dict) or not isinstance(index := choice.get("index", 0), int):
        return False
    if index not in choices:
        choices[index] = {"index": index, **copy.deepcopy(empty_choice)}
    whole = choices[index]
    return all(_take_field(whole, name, value) for name, value in choice.items() if name != "index")


def _take_field(whole: Json, name: str, value: object) -> bool:
    """Add one field of a chunk's choice to what is held of the choice; False where it cannot be."""
    held = whole.get(name)
    if name == "delta":
        return isinstance(value, dict) and _merge(whole.setdefault("message", {}), value, MOST_DEPTH)
    if name == "text" and isinstance(held, str):
        whole[name] = held + value if isinstance(value, str) else held
        return isinstance(value, str)
    if name == "logprobs" and isinstance(value, dict):
        whole[name] = held or {}
        return _merge(whole[name], value, MOST_DEPTH)
    if isinstance(held, list) and isinstance(value, list):
        held.extend(value)
    elif value is not None or name not in whole:
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
