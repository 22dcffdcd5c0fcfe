"""Intake: from an upstream's answer, in pieces of any size, to what each client is sent of it. Pure.

Streams are cut into whole events, so that a client that did not ask for a stream's usage is not sent it.
Fed by `fetching`; the pieces are kept in `flights`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cachewright.policy.sse import Event, SseReader
from cachewright.policy.stream_replay import is_usage_chunk, without_null_usage


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer."""

    raw: bytes
    plain: bytes
    """The same for clients that did not ask for a stream's usage; may be empty."""
    data: bytes | None
    """The payload of an event."""


class Intake:
    """Cuts one answer into pieces."""

    def __init__(self, is_stream: bool, limit_bytes: int) -> None:
        self._reader = SseReader(limit_bytes) if is_stream else None

    def feed(self, chunk: bytes) -> list[Piece]:
        """Take the next bytes."""
        if self._reader is None:
            return [Piece(chunk, chunk, None)]
        return [_piece(event) for event in self._reader.feed(chunk)]

    def finish(self) -> list[Piece]:
        """Return what is left at the end."""
        return [] if self._reader is None else [_piece(event) for event in self._reader.finish()]


def _piece(event: Event) -> Piece:
    raw, data = event.raw, event.data
    if data is None:
        return Piece(raw, raw, None)
    plain = b"" if is_usage_chunk(data) else without_null_usage(raw)
    return Piece(raw, plain, data)
