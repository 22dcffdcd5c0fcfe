"""Intake: from an upstream's answer, in pieces of any size, to what each client is sent of it. Pure.

Streams are cut into whole events, so that a client that did not ask for a stream's usage is not sent it.
Fed by `fetching`; the pieces are kept in `flights`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cachewright.policy.sse import Event, SseReader
from cachewright.policy.stream_form import StreamForm
from cachewright.policy.stream_replay import is_usage_chunk, without_null_usage


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer."""

    raw: bytes
    plain: bytes
    """The same for clients that did not ask for a stream's usage; may be empty."""
    event: Event | None = None
    """What it is in a stream."""
    says_all: bool = False
    """True for the last event that clients wait for."""


class Intake:
    """Cuts one answer into pieces."""

    def __init__(self, form: StreamForm | None, limit_bytes: int) -> None:
        """`form` is that of the stream, None for an answer that is none."""
        self._form = form
        self._reader = SseReader(limit_bytes)

    def feed(self, chunk: bytes) -> list[Piece]:
        """Take the next bytes."""
        if self._form is None:
            return [Piece(chunk, chunk)]
        return [_piece(event, self._form) for event in self._reader.feed(chunk)]

    def finish(self) -> list[Piece]:
        """Return what is left at the end."""
        return [] if self._form is None else [_piece(event, self._form) for event in self._reader.finish()]


def _piece(event: Event, form: StreamForm) -> Piece:
    raw, data = event.raw, event.data
    if data is None:
        return Piece(raw, raw, event)
    plain = raw
    if form.has_usage_apart:
        plain = b"" if is_usage_chunk(data) else without_null_usage(raw)
    return Piece(raw, plain, event, form.says_all(data))
