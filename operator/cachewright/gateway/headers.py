"""HTTP headers as ASGI gives them: lower-case names and raw values, in order, doubles kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

Headers = list[tuple[bytes, bytes]]

HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""RFC 9110 section 7.6.1: they concern one connection and are never passed on."""


def values_of(headers: Headers, name: bytes) -> list[bytes]:
    """Return all values of a header, in order."""
    return [value for key, value in headers if key == name]


def first_of(headers: Headers, name: bytes) -> bytes:
    """Return a header's first value; empty where absent."""
    return next((value for key, value in headers if key == name), b"")


def end_to_end(headers: Headers, dropped: Iterable[bytes]) -> Headers:
    """Return the headers to pass on: without hop-by-hop ones, those that Connection names, and `dropped`."""
    named = {
        token.strip().lower() for value in values_of(headers, b"connection") for token in value.split(b",")
    }
    gone = HOP_BY_HOP | named | set(dropped)
    return [(key, value) for key, value in headers if key not in gone]


def content_length(headers: Headers) -> int | None:
    """Return the declared length of the body; None where it is absent or not a number."""
    value = first_of(headers, b"content-length")
    return int(value) if value.isdigit() else None
