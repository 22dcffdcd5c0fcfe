"""The request with a salt for the engine's prefix cache: as its client wrote it, and one more field.

The field is written last, where it holds also against one that the client sent in a body too large, or too
odd, to be parsed: of two fields of one name, JSON readers take the last. Pure; called by the exchange.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import orjson

from cachewright.errors import AmbiguousJson, InvalidJson
from cachewright.keys.canonical import parse_json, plain_json
from cachewright.keys.prefix import SALT_FIELD

_SPACE: Final = b" \t\r\n"
_NAME: Final = SALT_FIELD.encode()


def opens_object(beginning: bytes) -> bool:
    """Tell whether a body that begins so is a JSON object in UTF-8, if it is JSON at all."""
    return beginning.lstrip(_SPACE).startswith(b"{")


def salted(raw: bytes, salt: str) -> bytes:
    """Return the body `raw` with the salt in place of the client's own; what is no object stays as it is."""
    if _NAME in raw:
        try:
            request = parse_json(raw)
            if isinstance(request, dict) and SALT_FIELD in request:
                raw = plain_json({name: value for name, value in request.items() if name != SALT_FIELD})
        except (AmbiguousJson, InvalidJson):
            pass  # ours will stand after it
    tail = Tail(salt)
    return tail.feed(raw) + tail.finish()


class Tail:
    """Writes the salt as the last field of an object that arrives in parts."""

    def __init__(self, salt: str) -> None:
        self._field = f'"{SALT_FIELD}":'.encode() + orjson.dumps(salt)
        self._held = b""
        """What may be the end: a closing brace and the blanks after it."""
        self._last = b""
        """The last byte given out that is no blank."""

    def feed(self, part: bytes) -> bytes:
        """Take a part and return what can go out."""
        data = self._held + part
        full = data.rstrip(_SPACE)
        if full.endswith(b"}"):
            out, self._held = full[:-1], data[len(full) - 1 :]
        elif full or not self._held:
            out, self._held = data, b""
        else:
            out, self._held = b"", data
        self._last = out.rstrip(_SPACE)[-1:] or self._last
        return out

    def finish(self) -> bytes:
        """Return what is left, with the salt before the closing brace."""
        if not self._held:
            return b""
        comma = b"" if self._last == b"{" else b","
        return comma + self._field + self._held


async def salted_parts(parts: AsyncIterator[bytes], salt: str) -> AsyncIterator[bytes]:
    """Write the salt into a body as it passes by."""
    tail = Tail(salt)
    async for part in parts:
        if out := tail.feed(part):
            yield out
    if out := tail.finish():
        yield out
