"""The question of a request: the part of it that a semantic match may be fuzzy in, cut out of the rest. Pure.

It is the last user text, or what stands between the marks of the route in that text. All else is the rest,
in which two requests must agree to the byte. Where it is not clear what the question is, the request is left
to the exact layer, with the reason. Called by the gateway once the exact layer has missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cachewright.policy.body import Body
from cachewright.policy.document import RoutePolicy
from cachewright.policy.reasons import SemanticReason

MOST_CHARACTERS: Final = 65_536
"""Of a question; more is beyond the window of every embedder, and is not worth its tokens."""

_INSTRUCTORS: Final = ("system", "developer")
_SPEAKERS: Final = ("user", "assistant", *_INSTRUCTORS)
_TOOL_FIELDS: Final = ("tool_calls", "function_call", "tool_call_id")
_CHAT_TEXT: Final = ("text",)
_RESPONSES_TEXT: Final = ("input_text", "output_text")


@dataclass(frozen=True, slots=True)
class Question:
    """A request in two parts."""

    text: str = field(repr=False)
    """What is asked."""
    rest: Mapping[str, Any] = field(repr=False)
    """The body with that text cut out."""
    where: str
    """Which text it was cut out of, and where in it: part of the rest."""


Steps = tuple[str | int, ...]


def find_question(body: Body, route: RoutePolicy, most_turns: int) -> Question | SemanticReason:
    """Cut the question out of a request of this route, or say why the request has none.

    `most_turns` bounds the user's messages, the question among them.
    """
    match route.path:
        case "/v1/chat/completions":
            found = _in_conversation(body, "messages", _CHAT_TEXT, most_turns)
        case "/v1/responses":
            found = _in_responses(body, most_turns)
        case "/v1/completions" if route.question_between is not None:
            found = ("prompt",) if isinstance(body.get("prompt"), str) else SemanticReason.NO_QUESTION
        case _:  # a prompt has no roles, so nothing but marks can tell the question from its frame
            found = SemanticReason.NO_QUESTION
    return found if isinstance(found, SemanticReason) else _cut(body, found, route.question_between)


def _in_responses(body: Body, most_turns: int) -> Steps | SemanticReason:
    given = body.get("input")
    if isinstance(given, str):
        return ("input",)
    if not isinstance(given, list):
        return SemanticReason.NO_QUESTION
    if any(isinstance(item, Mapping) and item.get("type", "message") != "message" for item in given):
        return SemanticReason.TOOLS
    return _in_conversation(body, "input", _RESPONSES_TEXT, most_turns)


def _in_conversation(
    body: Body, name: str, text_types: tuple[str, ...], most_turns: int
) -> Steps | SemanticReason:
    messages = body.get(name)
    if not isinstance(messages, list) or not messages:
        return SemanticReason.NO_QUESTION
    for message in messages:
        if reason := _why_not_plain(message, text_types):
            return reason
    if messages[-1]["role"] != "user":
        return SemanticReason.NO_QUESTION
    if sum(message["role"] == "user" for message in messages) > most_turns:
        return SemanticReason.TURNS
    last = len(messages) - 1
    content = messages[last]["content"]
    if isinstance(content, str):
        return (name, last, "content")
    return (name, last, "content", len(content) - 1, "text")


def _why_not_plain(message: object, text_types: tuple[str, ...]) -> SemanticReason | None:
    """Say what a message is beyond somebody's text."""
    if not isinstance(message, Mapping):
        return SemanticReason.NO_QUESTION
    if any(message.get(name) for name in _TOOL_FIELDS) or message.get("role") not in _SPEAKERS:
        return SemanticReason.TOOLS
    content = message.get("content")
    if isinstance(content, str):
        return None
    if not isinstance(content, list) or not content:
        return SemanticReason.PARTS
    plain = all(
        isinstance(part, Mapping) and part.get("type") in text_types and isinstance(part.get("text"), str)
        for part in content
    )
    return None if plain else SemanticReason.PARTS


def _cut(body: Body, steps: Steps, marks: tuple[str, str] | None) -> Question | SemanticReason:
    whole = _value_at(body, steps)
    start, end = (0, len(whole)) if marks is None else _span(whole, *marks)
    text = whole[start:end]
    if not text.strip():
        return SemanticReason.NO_QUESTION
    if len(text) > MOST_CHARACTERS:
        return SemanticReason.NOT_EMBEDDABLE
    rest = _replaced(body, steps, whole[:start] + whole[end:])
    return Question(text, rest, f"{'/'.join(map(str, steps))}@{start}")


def _span(text: str, start: str, end: str) -> tuple[int, int]:
    """Return where the text between the marks begins and ends; nothing where it is unclear.

    Whoever writes a mark into what is quoted, or into the question itself, must not move the border between
    question and rest: each mark has to be there exactly once.
    """
    opened = text.find(start)
    begin = opened + len(start)
    closed = text.find(end, begin)
    doubled = text.find(start, opened + 1) >= 0 or text.find(end, closed + 1) >= 0
    return (0, 0) if opened < 0 or closed < 0 or doubled else (begin, closed)


def _value_at(body: Any, steps: Steps) -> str:  # noqa: ANN401 - a JSON edge
    for step in steps:
        body = body[step]
    return str(body)


def _replaced(value: Any, steps: Steps, text: str) -> Any:  # noqa: ANN401 - a JSON edge
    """Return a copy with another text there; what lies beside the way is shared with the original."""
    if not steps:
        return text
    copy: Any = list(value) if isinstance(value, list) else dict(value)
    copy[steps[0]] = _replaced(value[steps[0]], steps[1:], text)
    return copy
