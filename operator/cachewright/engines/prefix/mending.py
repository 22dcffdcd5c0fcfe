"""From requests to the same requests with their breakers mended, to tell what the advice is worth.

What varies by its form (times, ids, e-mail addresses) and by its place (a name after the same words) moves
from the system text into the last user message; tools are sorted; JSON gets sorted keys. Nothing is left out,
so the prompt is as long as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from cachewright.engines.prefix.breakers import VOLATILE, Breaker, BreakerKind, json_at
from cachewright.engines.prefix.chat_log import LoggedRequest
from cachewright.engines.prefix.prompts import SYSTEM_ROLES, Prompt, content_text

SLOT: Final = "…"
"""What stands where something was moved away."""

CONTEXT_CHARACTERS: Final = 24
"""Words before a name by which its place is known."""

_BY_PLACE: Final = frozenset({BreakerKind.NAME, BreakerKind.NUMBER})


@dataclass(frozen=True, slots=True)
class Mending:
    """What was learned from the breakers of a log."""

    kinds: frozenset[BreakerKind]
    places: tuple[str, ...] = ()
    """The words that stand before names and numbers which vary."""

    @classmethod
    def learn(cls, found: Iterable[tuple[Prompt, Breaker]]) -> Mending:
        """Gather what breakers there were, and where."""
        kinds: set[BreakerKind] = set()
        places: dict[str, None] = {}
        for prompt, breaker in found:
            kinds.add(breaker.kind)
            if breaker.kind in _BY_PLACE:
                places[_words_before(prompt.text, breaker.offset)] = None
        return cls(frozenset(kinds), tuple(place for place in places if place.strip()))

    def mend(self, request: LoggedRequest) -> LoggedRequest:
        """Return the request as it could have been sent."""
        moved: list[str] = []
        messages = [self._mend_message(message, moved) for message in request.messages]
        if moved:
            messages = _with_moved(messages, " ".join(moved))
        return replace(request, messages=tuple(messages), tools=self._mend_tools(request.tools))

    def _mend_tools(self, tools: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        if not self.kinds & {BreakerKind.TOOL_ORDER, BreakerKind.JSON_ORDER}:
            return tools
        canonical: list[bytes] = [orjson.dumps(tool, option=orjson.OPT_SORT_KEYS) for tool in tools]
        if BreakerKind.TOOL_ORDER in self.kinds:
            canonical.sort()
        return tuple(orjson.loads(text) for text in canonical)

    def _mend_message(self, message: dict[str, Any], moved: list[str]) -> dict[str, Any]:
        if message.get("role") not in SYSTEM_ROLES:
            return message
        text = content_text(message.get("content"))
        if BreakerKind.JSON_ORDER in self.kinds:
            text = _with_sorted_json(text)
        for kind, pattern in VOLATILE:
            if kind in self.kinds:
                text = pattern.sub(lambda match: _move(match.group(), moved), text)
        for place in self.places:
            after = re.compile(rf"({re.escape(place)})([^\n.,;:!?]+)")
            text = after.sub(lambda match: match.group(1) + _move(match.group(2), moved), text)
        return {**message, "content": text}


def _move(value: str, moved: list[str]) -> str:
    moved.append(value)
    return SLOT


def _words_before(text: str, offset: int) -> str:
    """Return the end of what stands before the word in which two prompts differ."""
    start = offset
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    line = text.rfind("\n", 0, start) + 1
    return text[max(line, start - CONTEXT_CHARACTERS) : start]


def _with_moved(messages: list[dict[str, Any]], moved: str) -> list[dict[str, Any]]:
    last_user = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=None)
    if last_user is None:
        return [*messages, {"role": "user", "content": moved}]
    message = messages[last_user]
    changed = {**message, "content": f"{content_text(message.get('content'))}\n{moved}"}
    return [*messages[:last_user], changed, *messages[last_user + 1 :]]


def _with_sorted_json(text: str) -> str:
    parts, index = [], 0
    while index < len(text):
        found = json_at(text, index) if text[index] in "{[" else None
        if found is None:
            parts.append(text[index])
            index += 1
        else:
            parts.append(orjson.dumps(found[0], option=orjson.OPT_SORT_KEYS).decode())
            index += len(found[1])
    return "".join(parts)
