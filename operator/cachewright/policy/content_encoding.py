"""Content-Encoding: from a compressed body to its plain bytes, within a bound.

Called for requests by the gateway and for answers by `validate`.
"""

from __future__ import annotations

import zlib
from typing import Final

_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
"""Lets zlib find out which of the two it reads."""

READABLE_ENCODINGS: Final = ("", "identity", "gzip", "x-gzip", "deflate")
"""What `decode_content` understands."""


def decode_content(body: bytes, encoding: str, limit_bytes: int) -> bytes | None:
    """Undo one `gzip`, `x-gzip` or `deflate`.

    None for any other encoding, for broken data, and for more than `limit_bytes`, which are never unpacked.
    """
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return None
    stream = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = stream.decompress(body, limit_bytes + 1)
    except zlib.error:
        return None
    whole = stream.eof and not stream.unused_data and len(plain) <= limit_bytes
    return plain if whole else None
