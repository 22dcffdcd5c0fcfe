"""Request bodies into OpenAI answers: deterministic, and different where request, tenant or version is.

Called by `server.Engine`; tests call `answer_text` to know what an answer must say. Pure but for the clock in
`created`.
"""

import base64
import hashlib
import json
import re
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

NOT_PART_OF_THE_ANSWER: Final = ("stream", "stream_options", "cache_salt")
"""How an answer is delivered, or found sooner; everything else in the body changes its text."""

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"
EMBEDDINGS: Final = "/v1/embeddings"
ECHO_CHARS: Final = 60
DEFAULT_DIMENSIONS: Final = 8
_SAID_BY: Final = re.compile(r"Engine (\S+) for tenant ")


@dataclass(frozen=True)
class Reuse:
    """What the prefix cache knew of one prompt, in tokens."""

    tokens: int
    cached: int


class InvalidRequestError(ValueError):
    """The body is none that the API takes; the message goes into a 400."""


@dataclass(frozen=True)
class Call:
    """One call of an inference path, parsed, with the identity that its answer shows."""

    path: str
    body: Json
    tenant: str
    version: str
    model: str
    number: int
    reuse: Reuse | None = None
    """What the prefix cache knew of its prompt; None without one."""

    @property
    def fingerprint(self) -> str:
        """The system fingerprint, which follows the version as a real engine's follows its weights."""
        return f"fp_{_digest(self.version)[:10]}"


def answer_text(path: str, body: Json, tenant: str = "", version: str = "1", choice: int = 0) -> str:
    """Return the text that the engine answers: version, tenant, a digest of all it was asked, an echo.

    The digest covers path, tenant, version, choice and the whole body as canonical JSON, so that a text
    served to the wrong request or tenant, or past a version's end, is told by comparing with this function.
    """
    asked = {key: value for key, value in body.items() if key not in NOT_PART_OF_THE_ANSWER}
    digest = _digest(json.dumps([path, asked, tenant, version, choice], sort_keys=True))
    text = (
        f"Engine {version} for tenant {tenant or 'none'}, {digest[:16]}: {last_question(body)[:ECHO_CHARS]}"
    )
    wanted = body.get("response_format")
    wants_json = isinstance(wanted, dict) and str(wanted.get("type", "")).startswith("json")
    return json.dumps({"answer": text}) if wants_json else text


def version_in(text: str) -> str:
    """Return the version of the engine that said `text`, or a body around it; ValueError without one."""
    found = _SAID_BY.search(text)
    if found is None:
        raise ValueError("no engine of ours said that")
    return found.group(1)


def last_question(body: Json) -> str:
    """Return the last user message's text, or the prompt."""
    for message in reversed(body.get("messages") or []):
        if message.get("role") == "user":
            content = message.get("content") or ""
            parts = [{"text": content}] if isinstance(content, str) else content
            return " ".join(part.get("text", "") for part in parts)
    return str(body.get("prompt", ""))


def parse(path: str, raw: bytes) -> Json:
    """Return the body, or raise InvalidRequestError where it lacks what the path needs."""
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise InvalidRequestError("the body is not JSON") from error
    needed = {CHAT: "messages", COMPLETIONS: "prompt", EMBEDDINGS: "input"}[path]
    if not isinstance(body, dict) or not body.get(needed):
        raise InvalidRequestError(f"the body has no {needed}")
    if path == CHAT and not all(isinstance(message, dict) for message in body["messages"]):
        raise InvalidRequestError("each of messages must be an object")
    return body


def completion(call: Call) -> Json:
    """Build a whole chat or text completion."""
    choices = []
    for index in range(int(call.body.get("n") or 1)):
        text, reason = _limited(call, index)
        content = {"message": {"role": "assistant", "content": text}} if call.path == CHAT else {"text": text}
        choices.append({"index": index, **content, "logprobs": None, "finish_reason": reason})
    kind = "chat.completion" if call.path == CHAT else "text_completion"
    return _envelope(call, kind, choices) | {"usage": usage(call)}


def chunks(call: Call) -> Iterator[bytes]:
    """Yield the server-sent events of a streamed completion, `[DONE]` included."""
    is_chat = call.path == CHAT
    kind = "chat.completion.chunk" if is_chat else "text_completion"
    wants_usage = bool((call.body.get("stream_options") or {}).get("include_usage"))

    def event(index: int, text: str | None, reason: str | None) -> bytes:
        delta = {} if text is None else {"content": text}
        part: Json = {"delta": delta} if is_chat else {"text": text or ""}
        choice = {"index": index, **part, "logprobs": None, "finish_reason": reason}
        return _event(_envelope(call, kind, [choice]) | ({"usage": None} if wants_usage else {}))

    for index in range(int(call.body.get("n") or 1)):
        if is_chat:
            opening = {"index": index, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
            yield _event(_envelope(call, kind, [opening]))
        text, reason = _limited(call, index)
        for word in _words(text):
            yield event(index, word, None)
        yield event(index, None, reason)
    if wants_usage:
        yield _event(_envelope(call, kind, []) | {"usage": usage(call)})
    yield b"data: [DONE]\n\n"


def embeddings(call: Call) -> Json:
    """Build unit-less vectors that depend on model, version and input alone, as an embedder's do."""
    inputs = call.body["input"]
    size = int(call.body.get("dimensions") or DEFAULT_DIMENSIONS)
    data = []
    for index, item in enumerate(inputs if isinstance(inputs, list) else [inputs]):
        vector = _vector(json.dumps([call.model, call.version, item]), size)
        packed = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        as_text = call.body.get("encoding_format") == "base64"
        data.append({"object": "embedding", "index": index, "embedding": packed if as_text else vector})
    counted = usage(call)["prompt_tokens"]
    return {
        "object": "list",
        "model": call.model,
        "data": data,
        "usage": {"prompt_tokens": counted, "total_tokens": counted},
    }


def usage(call: Call) -> Json:
    """Count words as tokens, as the prefix cache does where there is one."""
    asked = len(
        json.dumps(call.body.get("messages") or call.body.get("prompt") or call.body.get("input")).split()
    )
    told = 0
    if call.path != EMBEDDINGS:
        told = sum(len(_limited(call, index)[0].split()) for index in range(int(call.body.get("n") or 1)))
    if call.reuse is None:
        return {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}
    asked = call.reuse.tokens
    counted = {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}
    return {**counted, "prompt_tokens_details": {"cached_tokens": call.reuse.cached}}


def _limited(call: Call, choice: int) -> tuple[str, str]:
    """Return a choice's text, cut to the tokens asked for, and why it ends."""
    text = answer_text(call.path, call.body, call.tenant, call.version, choice)
    limit = call.body.get("max_completion_tokens") or call.body.get("max_tokens")
    words = _words(text)
    return (text, "stop") if limit is None or len(words) <= limit else ("".join(words[:limit]), "length")


def _envelope(call: Call, kind: str, choices: list[Json]) -> Json:
    prefix = "chatcmpl" if call.path == CHAT else "cmpl"
    return {
        "id": f"{prefix}-{call.number}",
        "object": kind,
        "created": int(time.time()),
        "model": call.model,
        "system_fingerprint": call.fingerprint,
        "choices": choices,
    }


def _event(payload: Json) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def _words(text: str) -> list[str]:
    first, *rest = text.split(" ")
    return [first, *(f" {word}" for word in rest)]


def _vector(seed: str, size: int) -> list[float]:
    raw = hashlib.shake_256(seed.encode()).digest(2 * size)
    return [value / 32768 for value in struct.unpack(f"<{size}h", raw)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
