"""From a request as it reached the upstream to an answer that betrays whom it was computed for. Pure.

The text of every answer is a JSON object with the number of the upstream call, a digest of all that was
asked, the tenant and the last message. So whoever gets an answer can tell whether it was computed for them,
without trusting a word of what the gateway in between says. Called by `bench.upstream`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

Pairs = Iterable[tuple[str, str]]

DIGESTED: Final = ("x-", "openai-", "api-version", "authorization")
"""Prefixes of the request headers that are part of the digest."""

TENANT_HEADER: Final = "x-tenant-id"
ASKED_CHARS: Final = 64
PIECE_CHARS: Final = 48
"""Characters of the text in each event of a stream."""

CREATED: Final = 1_764_460_800
"""A fixed time, so that equal calls differ in their number alone."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it reached the upstream."""

    number: int
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    """Lower-case names, in the order sent, repeated ones kept."""
    raw: bytes

    @property
    def digest(self) -> str:
        """Digest path, query, headers and the bytes of the body, none of them brought into any other form."""
        told = [(name, value) for name, value in self.headers if name.startswith(DIGESTED)]
        head = json.dumps([self.path, self.query, sorted(told)]).encode()
        return hashlib.sha256(len(head).to_bytes(8, "big") + head + self.raw).hexdigest()[:32]

    @property
    def tenant(self) -> str:
        """The values of the tenant header."""
        return ",".join(value for name, value in self.headers if name == TENANT_HEADER)

    def body(self) -> Mapping[str, Any]:
        """Return the body as a lenient server reads it; empty where it is no JSON object."""
        try:
            read = json.loads(self.raw)
        except (ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}


def answer_text(asked: Asked, body: Mapping[str, Any], filling: int) -> str:
    """Return the text of the answer, with `filling` further characters."""
    told = {"call": asked.number, "digest": asked.digest, "tenant": asked.tenant, "asked": last_words(body)}
    return json.dumps(
        told | ({"filling": "lorem ipsum "[: filling % 12 or 12] * (filling // 12)} if filling else {})
    )


def last_words(body: Mapping[str, Any]) -> str:
    """Return the start of the last message, prompt or input, if it is a text."""
    messages = body.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        content = messages[-1].get("content")
    else:
        content = body.get("prompt", body.get("input"))
    return content[:ASKED_CHARS] if isinstance(content, str) else ""


def whole(asked: Asked, body: Mapping[str, Any], filling: int) -> bytes:
    """Return an answer as one document, in the form that the path asks for."""
    text = answer_text(asked, body, filling)
    model = body.get("model", "llama")
    usage = {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46}
    if asked.path.endswith("/responses"):
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output = {"type": "message", "id": f"msg_{asked.number}", "role": "assistant", "status": "completed"}
        document: dict[str, Any] = {
            "id": f"resp_{asked.number}",
            "object": "response",
            "created_at": CREATED,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "model": model,
            "output": [output | {"content": content}],
            "usage": {"input_tokens": 12, "output_tokens": 34, "total_tokens": 46},
        }
        return orjson.dumps(document)
    chat = not asked.path.endswith("/v1/completions")
    count = body.get("n") if type(body.get("n")) is int else 1
    choices = []
    for index in range(max(1, min(int(count or 1), 8))):
        said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        choices.append({"index": index, **said, "logprobs": None, "finish_reason": "stop"})
    kind = "chat.completion" if chat else "text_completion"
    return orjson.dumps(_envelope(asked, kind, model, choices) | {"usage": usage})


def events(asked: Asked, body: Mapping[str, Any], filling: int) -> list[bytes]:
    """Return the answer as server-sent events, `[DONE]` included."""
    text = answer_text(asked, body, filling)
    model = body.get("model", "llama")
    chat = not asked.path.endswith("/v1/completions")
    kind = "chat.completion.chunk" if chat else "text_completion"

    def event(piece: dict[str, Any], reason: str | None) -> bytes:
        said = {"delta": piece} if chat else {"text": piece.get("content", "")}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": reason}
        return b"data: " + orjson.dumps(_envelope(asked, kind, model, [choice])) + b"\n\n"

    sent = [event({"role": "assistant", "content": ""}, None)]
    sent += [event({"content": text[at : at + PIECE_CHARS]}, None) for at in range(0, len(text), PIECE_CHARS)]
    sent.append(event({}, "stop"))
    options = body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        usage = {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46}
        sent.append(b"data: " + orjson.dumps(_envelope(asked, kind, model, []) | {"usage": usage}) + b"\n\n")
    return [*sent, b"data: [DONE]\n\n"]


def _envelope(asked: Asked, kind: str, model: object, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": kind,
        "created": CREATED,
        "model": model,
        "system_fingerprint": "fp_bench",
        "choices": choices,
    }
