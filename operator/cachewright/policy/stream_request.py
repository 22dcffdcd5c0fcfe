"""The request for a stream that goes upstream: as the client sent it, but that its usage is asked for too.

So one stream serves all who want the same answer later, with usage and without, streamed and whole. The
gateway leaves the usage out for clients that did not ask. Pure.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from cachewright.policy.body import Body

_OPTIONS: Final = b'{"stream_options":{"include_usage":true},'


def asking_for_usage(raw: bytes, request: Body) -> bytes:
    """Return the body `raw`, which parses to `request`, with `stream_options.include_usage` set."""
    options: Any = request.get("stream_options")
    if "stream_options" not in request:
        return _OPTIONS + raw.lstrip(b" \t\r\n")[1:]  # every other byte stays as the client wrote it
    if options is not None and (not isinstance(options, dict) or options.get("include_usage") is True):
        return raw
    return orjson.dumps({**request, "stream_options": {**(options or {}), "include_usage": True}})
