"""Server-sent events: from bytes in pieces of any size to events, each with the very bytes it came in.

Follows the event stream format of the HTML standard: lines end with CR, LF or CRLF, a BOM may come first,
several `data` fields of one event are joined by line feeds, comments carry nothing. Called by the gateway for
streams from the upstream, and by `stream_assemble`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_BOM: Final = b"\xef\xbb\xbf"

DONE: Final = b"[DONE]"
"""The payload that ends a stream of OpenAI's API."""


@dataclass(frozen=True, slots=True)
class Event:
    """One block of a stream up to its blank line."""

    raw: bytes
    """As it came, line ends included: all events' bytes in a row are the stream."""
    data: bytes | None
    """What its `data` fields say; None for comments, and for what could not be read."""
    name: bytes = b""
    """What its `event` field says; empty where it has none."""


class SseReader:
    """Splits one stream into events and never holds more than `limit_bytes` and one piece."""

    def __init__(self, limit_bytes: int) -> None:
        """`limit_bytes` bounds one event: a longer one, and all that follows it, is passed on unread."""
        self._limit_bytes = limit_bytes
        self._held = bytearray()
        """The event that is not complete yet."""
        self._line_at = 0
        """Where its current line begins."""
        self._scan_at = 0
        """How far that line was searched for its end."""
        self._data: list[bytes] = []
        self._name = b""
        self._after_cr = False
        """The last byte ended a line as CR; an LF that comes next belongs to it."""
        self._at_start = True
        self.overflowed = False
        """True once an event was longer than allowed."""

    def feed(self, piece: bytes) -> list[Event]:
        """Take the next bytes and return the events that are complete with them."""
        if self.overflowed:
            return [Event(piece, None)] if piece else []
        self._held += piece
        if self._at_start and not self._skip_bom():
            return []
        events = self._complete_events()
        if len(self._held) > self._limit_bytes:
            self.overflowed = True
            events.append(Event(bytes(self._held), None))
            self._reset()
        return events

    def finish(self) -> list[Event]:
        """Return what the stream ended with, as one event though its blank line is missing."""
        if not self._held:
            return []
        self._take_line(bytes(self._held[self._line_at :]))
        last = self._event(len(self._held))
        self._reset()
        return [last]

    def _skip_bom(self) -> bool:
        """Step over a BOM; False while it cannot be told yet whether there is one."""
        head = bytes(self._held[: len(_BOM)])
        if head != _BOM and _BOM.startswith(head):
            return False
        self._at_start = False
        if head == _BOM:
            self._line_at = self._scan_at = len(_BOM)
        return True

    def _complete_events(self) -> list[Event]:
        events: list[Event] = []
        if self._after_cr and self._scan_at < len(self._held):
            self._after_cr = False
            if self._held[self._scan_at] == ord("\n"):
                self._scan_at += 1
                self._line_at = self._scan_at
        start = 0
        while (end := _LINE_END.search(self._held, self._scan_at)) is not None:
            is_blank = end.start() == self._line_at
            if not is_blank:
                self._take_line(bytes(self._held[self._line_at : end.start()]))
            self._line_at = self._scan_at = end.end()
            if is_blank:
                events.append(self._event(end.end(), start))
                start = end.end()
            self._after_cr = end.end() == len(self._held) and end.group() == b"\r"
        if start:
            del self._held[:start]
            self._line_at -= start
        self._scan_at = len(self._held)
        return events

    def _take_line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._name = value.removeprefix(b" ")

    def _event(self, end: int, start: int = 0) -> Event:
        data = b"\n".join(self._data) if self._data else None
        event = Event(bytes(self._held[start:end]), data, self._name)
        self._data, self._name = [], b""
        return event

    def _reset(self) -> None:
        self._held = bytearray()
        self._line_at = self._scan_at = 0
        self._data, self._name = [], b""


def read_events(stream: bytes) -> list[Event]:
    """Split a whole stream."""
    reader = SseReader(len(stream))
    return [*reader.feed(stream), *reader.finish()]


def write_event(data: bytes, name: bytes = b"") -> bytes:
    """Render one event with this payload, and with a name where it has one."""
    head = b"event: " + name + b"\n" if name else b""
    return head + b"data: " + data.replace(b"\n", b"\ndata: ") + b"\n\n"
