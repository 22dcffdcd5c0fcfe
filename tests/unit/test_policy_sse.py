"""Server-sent events: whatever the pieces, the same events, every byte kept and nothing unbounded."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.sse import Event, SseReader, read_events, write_event

LIMIT = 1000


def fed(stream: bytes, cuts: list[int], limit_bytes: int = LIMIT) -> list[Event]:
    """Read a stream in the pieces that some cuts make of it."""
    reader = SseReader(limit_bytes)
    places = sorted({cut % (len(stream) + 1) for cut in cuts} | {0, len(stream)})
    events = []
    for start, end in pairwise(places):
        events += reader.feed(stream[start:end])
    return events + reader.finish()


def payloads(stream: bytes) -> list[bytes]:
    """Return the payloads of a stream's events."""
    return [event.data for event in read_events(stream) if event.data is not None]


def expected(stream: bytes) -> list[tuple[bytes, bytes]]:
    """Return names and payloads: read a whole stream in the slow and plain way of the standard."""
    text = stream.removeprefix(b"\xef\xbb\xbf")
    found: list[tuple[bytes, bytes]] = []
    data: list[bytes] = []
    kind = b""
    for line in [*re.split(rb"\r\n|\r|\n", text), b""]:
        if not line:
            found += [(kind, b"\n".join(data))] if data else []
            data, kind = [], b""
        name, _, value = line.partition(b":")
        kind = value.removeprefix(b" ") if name == b"event" else kind
        data += [value.removeprefix(b" ")] if name == b"data" else []
    return found


STREAMS = st.lists(
    st.sampled_from(
        [
            b"data: ",
            b"data:",
            b"data",
            b": comment",
            b"event: x",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b"{}",
            b"[DONE]",
            b"\xef\xbb\xbf",
            "é".encode(),
            b"id: 1",
            b"retry: 5",
            b" ",
            b"\x00",
        ]
    ),
    max_size=40,
).map(b"".join)
CUTS = st.lists(st.integers(0, 10_000), max_size=30)


@given(STREAMS, CUTS)
def test_cuts_change_nothing(stream: bytes, cuts: list[int]) -> None:
    """Names and payloads are the standard's, and all bytes in a row are the stream, wherever it is cut."""
    events = fed(stream, cuts)
    assert [(event.name, event.data) for event in events if event.data is not None] == expected(stream)
    assert b"".join(event.raw for event in events) == stream


@given(st.binary(max_size=5000), CUTS, st.integers(1, 200))
def test_any_bytes_are_read_within_bounds(stream: bytes, cuts: list[int], limit_bytes: int) -> None:
    """No bytes crash the reader or are lost, and what it holds stays below its limit."""
    reader = SseReader(limit_bytes)
    given_out = 0
    places = sorted({cut % (len(stream) + 1) for cut in cuts} | {0, len(stream)})
    for start, end in pairwise(places):
        given_out += sum(len(event.raw) for event in reader.feed(stream[start:end]))
        assert end - given_out <= limit_bytes
    given_out += sum(len(event.raw) for event in reader.finish())
    assert given_out == len(stream)


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\r\rdata:  b\r\n\r\n", [b"a", b" b"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": ping\n\ndata: a\nid: 1\nevent: x\n\n", [b"a"]),
        (b"data: a\n\ndata: [DONE]", [b"a", b"[DONE]"]),
        (b"data\n\n", [b""]),
        (b"date: a\n\n data: a\n\n", []),
    ],
)
def test_events_are_those_of_the_standard(stream: bytes, wanted: list[bytes]) -> None:
    """Line ends, BOM, several data fields, comments, other fields, a missing last blank line."""
    assert payloads(stream) == wanted


def test_an_event_is_there_with_its_blank_line() -> None:
    """Nothing waits for the byte after it, not even where a CR may be half of a CRLF."""
    for end in (b"\n\n", b"\r\r", b"\r\n\r", b"\r\n\r\n"):
        assert [event.data for event in SseReader(LIMIT).feed(b"data: a" + end)] == [b"a"]


def test_what_is_too_long_is_passed_on_unread() -> None:
    """From there on the stream is bytes."""
    reader = SseReader(10)
    assert reader.feed(b"data: a\n\n")[0].data == b"a"
    (long,) = reader.feed(b"data: " + b"x" * 20)
    assert (long.data, reader.overflowed) == (None, True)
    assert reader.feed(b"\n\ndata: b\n\n") == [Event(b"\n\ndata: b\n\n", None)]
    assert reader.finish() == []


@given(
    st.binary(max_size=100).filter(lambda data: b"\r" not in data),
    st.binary(max_size=20).filter(lambda name: not {*b"\r\n"} & {*name}),
)
def test_a_written_event_is_read_back(data: bytes, name: bytes) -> None:
    """Also one of several lines, with its name."""
    written = write_event(data, name)
    assert read_events(written) == [Event(written, data, name)]
