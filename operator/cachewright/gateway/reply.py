"""What the flow hands back to the HTTP edge: status, headers and a body that is whole or comes in parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import orjson

from cachewright.gateway.headers import Headers


def _nothing() -> None:
    pass


@dataclass(slots=True)
class Reply:
    """An answer to a client."""

    status: int
    headers: Headers
    body: bytes = b""
    """The whole body, unless `parts` is set."""
    parts: AsyncIterator[bytes] | None = None
    """The body as it arrives; raises UpstreamError when it breaks off."""
    close: Callable[[], None] = field(default=_nothing)
    """Gives up what `parts` holds; called once, whatever happened."""


def error_reply(status: int, code: str, message: str, headers: Headers | None = None) -> Reply:
    """Make an error in the form that OpenAI clients read."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    document = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    body = orjson.dumps(document)
    return Reply(
        status,
        [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *(headers or []),
        ],
        body,
    )
