"""Answers as they are kept, and as a client wants them: one kept answer serves streams and whole answers.

The gateway's flow delivers hits and shared answers through it, and `validate` makes what is kept. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from cachewright.policy.body import Body
from cachewright.policy.endpoints import ENDPOINTS
from cachewright.policy.sse import read_events

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A whole answer of status 200 that others may get."""

    content_type: str
    body: bytes
    """JSON as it came, or the events of a stream, but for an end that all have and a usage that is apart."""
    usage: bytes = b""
    """The event with a stream's usage where it is apart, sent to those who ask for it."""

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
    """Give a kept answer the form that a client wants; None where it cannot be given that form."""
    if answer.is_stream:
        if delivery.stream:
            usage = answer.usage if delivery.usage else b""
            end = ENDPOINTS[path].stream.end
            return Delivered(answer.content_type, b"".join((answer.body, usage, end)))
        return _assembled(answer, path)
    if not delivery.stream:
        return Delivered(answer.content_type, answer.body)
    return _replayed(answer, delivery, path)


def _replayed(answer: KeptAnswer, delivery: Delivery, path: str) -> Delivered | None:
    form = ENDPOINTS[path].stream
    document: Any = orjson.loads(answer.body)
    try:
        replayed = form.replay(document)
    except TypeError:  # nested more deeply than is ever written
        return None
    if replayed is None:
        return None
    events, usage = replayed
    return Delivered(EVENT_STREAM, b"".join((events, usage if delivery.usage else b"", form.end)))


def _assembled(answer: KeptAnswer, path: str) -> Delivered | None:
    events = read_events(answer.body + answer.usage)
    assembled = ENDPOINTS[path].stream.assemble(event.data for event in events if event.data is not None)
    if assembled is None:
        return None
    try:
        return Delivered(JSON, orjson.dumps(assembled.document))
    except TypeError:
        return None
