"""From lines of a chat log to requests: OpenAI bodies bare, in a batch's `body`, or in a log's `request`.

Called by `cachewright prefix analyze`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from cachewright.errors import InvalidInput

ENVELOPES: Final = ("body", "request", "kwargs")
"""Where logs keep the request: OpenAI's batch files, most gateways, client libraries."""

NO_TENANT: Final = ""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One chat request as it was logged."""

    line: int
    """Number of its line, from 1."""
    model: str
    tenant: str
    """Empty where the log names none."""
    template: str
    """Empty where the log names none."""
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class LogFields:
    """Dotted paths to what the log says of a request; looked for in the line, then in the request."""

    tenant: str = "tenant"
    template: str = "template"


@dataclass(slots=True)
class Passed:
    """What was passed over while reading."""

    not_chat: int = 0
    """Lines that hold another kind of request, such as embeddings."""
    bad_lines: list[int] = field(default_factory=list)
    """Numbers of lines that are not JSON objects; no more than the first 100."""


MOST_BAD_LINES: Final = 100


def read_log(lines: Iterable[bytes], fields: LogFields, passed: Passed) -> Iterator[LoggedRequest]:
    """Read requests line by line; what cannot be read is counted in `passed` and left out."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            document = orjson.loads(text)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            if len(passed.bad_lines) < MOST_BAD_LINES:
                passed.bad_lines.append(number)
            continue
        request = _request_of(document, number, fields)
        if request is None:
            passed.not_chat += 1
        else:
            yield request


def check_any(requests: list[LoggedRequest], passed: Passed) -> None:
    """Raise InvalidInput, saying what was expected, where a log held no chat request at all."""
    if requests:
        return
    if passed.bad_lines:
        shown = ", ".join(map(str, passed.bad_lines[:5]))
        raise InvalidInput(
            f"no line is a JSON object (looked at lines {shown} …); give one OpenAI chat request per line,"
            ' such as {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}'
        )
    raise InvalidInput(
        'no chat request found; each line needs "messages", bare or within "body" or "request"'
    )


def _request_of(document: dict[str, Any], number: int, fields: LogFields) -> LoggedRequest | None:
    body = next((document[name] for name in ENVELOPES if isinstance(document.get(name), dict)), document)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        return None
    tools = body.get("tools")
    return LoggedRequest(
        line=number,
        model=str(body.get("model", "")),
        tenant=_text_at(document, body, fields.tenant),
        template=_text_at(document, body, fields.template),
        messages=tuple(messages),
        tools=tuple(tool for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else (),
    )


def _text_at(document: dict[str, Any], body: dict[str, Any], path: str) -> str:
    for where in (document, body):
        value: Any = where
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str | int):
            return str(value)
    return NO_TENANT
