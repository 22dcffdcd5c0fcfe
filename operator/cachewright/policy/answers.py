"""Answers as they are kept, and as a client wants them: one kept answer serves streams and whole answers.

The gateway's flow delivers hits and shared answers through it, and `validate` makes what is kept. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from cachewright.policy.body import Body
from cachewright.policy.endpoints import ENDPOINTS
from cachewright.policy.sse import DONE, read_events, write_event

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
_END: Final = write_event(DONE)


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A whole answer of status 200 that others may get."""

    content_type: str
    body: bytes
    """JSON as it came, or the events of a stream without its usage and its end."""
    usage: bytes = b""
    """The event with a stream's usage, sent to those who ask for it."""

    @property
    def is_stream(self) -> bool:
        """True where the body is events."""
        return is_event_stream(self.content_type)


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a client wants its answer; no part of any key."""

    stream: bool
    usage: bool
    """True: a stream ends with the usage (`stream_options.include_usage`)."""

    @classmethod
    def of(cls, request: Body) -> Delivery:
        """Read it from a parsed request."""
        options = request.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True
        return cls(request.get("stream") is True, usage)


@dataclass(frozen=True, slots=True)
class Delivered:
    """A body in the form that was asked for."""

    content_type: str
    body: bytes


def is_event_stream(content_type: str) -> bool:
    """Tell whether a Content-Type means server-sent events."""
    return content_type.partition(";")[0].strip().lower() == EVENT_STREAM


def deliver(answer: KeptAnswer, delivery: Delivery, path: str) -> Delivered | None:
    """Give a kept answer the form that a client wants; None where the endpoint knows no such form."""
    if answer.is_stream:
        if delivery.stream:
            usage = answer.usage if delivery.usage else b""
            return Delivered(answer.content_type, b"".join((answer.body, usage, _END)))
        return _assembled(answer, path)
    if not delivery.stream:
        return Delivered(answer.content_type, answer.body)
    return _replayed(answer, delivery, path)


def _replayed(answer: KeptAnswer, delivery: Delivery, path: str) -> Delivered | None:
    form = ENDPOINTS[path].stream
    if form is None:
        return None
    document: Any = orjson.loads(answer.body)
    try:
        events, usage = form.replay(document)
    except TypeError:  # nested more deeply than is ever written
        return None
    return Delivered(EVENT_STREAM, b"".join((events, usage if delivery.usage else b"", _END)))


def _assembled(answer: KeptAnswer, path: str) -> Delivered | None:
    form = ENDPOINTS[path].stream
    if form is None:
        return None
    events = read_events(answer.body + answer.usage)
    assembled = form.assemble(event.data for event in events if event.data is not None)
    if assembled is None:
        return None
    try:
        return Delivered(JSON, orjson.dumps(assembled.document))
    except TypeError:
        return None
