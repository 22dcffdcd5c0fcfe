"""What the stand-in model says: from the body of a request to OpenAI's documents and chunks.

Every answer has a number, so that an answer from the cache can be told from a new one by eye. Used by
`stand_in`. Does no IO.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"
EMBEDDINGS: Final = "/v1/embeddings"
MODELS: Final = "/v1/models"

DIMENSIONS: Final = 64
_LONGEST_ECHO: Final = 120


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the model."""

    path: str
    body: Json
    number: int
    """Counted from 1 over all requests."""
    created: int
    """Seconds since the epoch."""

    @property
    def model(self) -> str:
        """The model's name as the client asked for it."""
        return str(self.body.get("model", "stand-in"))


def parse_body(raw: bytes) -> Json:
    """Read a request's body; raises ValueError for what is no JSON object."""
    body = json.loads(raw)
    if isinstance(body, dict):
        return body
    raise ValueError("the body must be a JSON object")


def whole(call: Call) -> Json:
    """Answer in one document; raises ValueError for a body that OpenAI would refuse."""
    if call.path == EMBEDDINGS:
        return _embeddings(call)
    text = _text(call)
    choice = _choice(call, text, finish_reason="stop")
    return {**_head(call, _object(call)), "choices": [choice], "usage": _usage(call, text)}


def chunks(call: Call) -> Iterator[bytes]:
    """Answer as server-sent events; raises ValueError for a body that OpenAI would refuse."""
    text = _text(call)
    is_chat = call.path == CHAT
    head = _head(call, "chat.completion.chunk" if is_chat else _object(call))
    words = text.split(" ")
    pieces = [words[0], *(f" {word}" for word in words[1:])]
    deltas: list[Json] = [{"text": piece} for piece in pieces]
    last: Json = {"text": ""}
    if is_chat:
        deltas = [
            {"delta": {"role": "assistant", "content": ""}},
            *({"delta": {"content": p}} for p in pieces),
        ]
        last = {"delta": {}}
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, **delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, **last, "finish_reason": "stop"}]})
    options = call.body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield _event({**head, "choices": [], "usage": _usage(call, text)})
    yield b"data: [DONE]\n\n"


def _text(call: Call) -> str:
    asked = _asked(call).strip() or "nothing"
    if len(asked) > _LONGEST_ECHO:
        asked = f"{asked[:_LONGEST_ECHO]}…"
    return f"Answer {call.number} of the stand-in model. You asked: {asked}"


def _asked(call: Call) -> str:
    if call.path == COMPLETIONS:
        prompt = call.body.get("prompt")
        return prompt if isinstance(prompt, str) else json.dumps(prompt)
    messages = call.body.get("messages")
    if not isinstance(messages, list) or not messages or not isinstance(messages[-1], dict):
        raise ValueError("messages must be a list of messages")
    content = messages[-1].get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _object(call: Call) -> str:
    return "chat.completion" if call.path == CHAT else "text_completion"


def _head(call: Call, kind: str) -> Json:
    prefix = "chatcmpl" if call.path == CHAT else "cmpl"
    identity = f"{prefix}-standin-{call.number}"
    return {"id": identity, "object": kind, "created": call.created, "model": call.model}


def _choice(call: Call, text: str, finish_reason: str) -> Json:
    said = {"message": {"role": "assistant", "content": text}} if call.path == CHAT else {"text": text}
    return {"index": 0, **said, "logprobs": None, "finish_reason": finish_reason}


def _usage(call: Call, text: str) -> Json:
    asked, answered = len(_asked(call).split()), len(text.split())
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def _embeddings(call: Call) -> Json:
    given = call.body.get("input")
    texts = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    as_base64 = call.body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _vector(json.dumps(text), as_base64)}
        for index, text in enumerate(texts)
    ]
    tokens = len(json.dumps(given).split())
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": call.model, "usage": usage}


def _vector(text: str, as_base64: bool) -> list[float] | str:
    """Spread a hash over a unit vector: the same text has the same vector, and no meaning."""
    raw = hashlib.shake_256(text.encode()).digest(DIMENSIONS)
    centred = [byte - 127.5 for byte in raw]
    length = sum(value * value for value in centred) ** 0.5
    values = [value / length for value in centred]
    return base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *values)).decode() if as_base64 else values


def _event(document: Json) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"
