"""From a logged request to the prompt that an engine sees, in parts that say where each came from.

Chat templates differ in their markers and agree in their order: tools, system text, then the conversation.
Only that order matters for what two prompts share, so one plain rendering stands for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from cachewright.engines.prefix.chat_log import LoggedRequest

SYSTEM_ROLES: Final = frozenset({"system", "developer"})


class PartKind(StrEnum):
    """Where a part of a prompt comes from."""

    TOOLS = "tools"
    SYSTEM = "system"
    HISTORY = "history"
    """Everything said before the last user message."""
    QUESTION = "question"
    """The last user message and whatever follows it."""


STATIC_KINDS: Final = frozenset({PartKind.TOOLS, PartKind.SYSTEM})
"""Parts that an application writes once, and that should therefore be the same each time."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a prompt."""

    kind: PartKind
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an engine sees of one request."""

    request: LoggedRequest
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "".join(part.text for part in self.parts)

    def kind_at(self, offset: int) -> PartKind:
        """Tell which part the character at `offset` belongs to."""
        for part in self.parts:
            if offset < len(part.text):
                return part.kind
            offset -= len(part.text)
        return PartKind.QUESTION

    @property
    def static_length(self) -> int:
        """How many characters the tools and the system text take, at the prompt's start."""
        length = 0
        for part in self.parts:
            if part.kind not in STATIC_KINDS:
                break
            length += len(part.text)
        return length


def render(request: LoggedRequest) -> Prompt:
    """Render one request."""
    parts = [Part(PartKind.TOOLS, _tool_line(tool)) for tool in request.tools]
    last_user = max((i for i, m in enumerate(request.messages) if m.get("role") == "user"), default=-1)
    for index, message in enumerate(request.messages):
        parts.append(Part(_kind(message, index, last_user), _message_text(message)))
    return Prompt(request, tuple(parts))


def content_text(content: object) -> str:
    """Return the text of a message's content; parts that are no text become JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part_text(part) for part in content)
    return "" if content is None else orjson.dumps(content).decode()


def _kind(message: dict[str, Any], index: int, last_user: int) -> PartKind:
    if message.get("role") in SYSTEM_ROLES:
        return PartKind.SYSTEM
    return PartKind.QUESTION if last_user <= index else PartKind.HISTORY


def _message_text(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls")
    called = orjson.dumps(calls).decode() if calls else ""
    return f"<|{message.get('role', '')}|>\n{content_text(message.get('content'))}{called}\n"


def _tool_line(tool: dict[str, Any]) -> str:
    return orjson.dumps(tool).decode() + "\n"


def _part_text(part: object) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return orjson.dumps(part).decode()
