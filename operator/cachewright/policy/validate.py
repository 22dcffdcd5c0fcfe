"""Validate before store: from an upstream's answer to what may be stored and shared, or the reason why not.

Truncated, filtered, empty, failed and tool-calling answers are relayed and never stored. Called by the
gateway after every cacheable miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from cachewright.policy.answers import KeptAnswer
from cachewright.policy.body import Body
from cachewright.policy.cacheable import is_json_type
from cachewright.policy.content_encoding import decode_content
from cachewright.policy.document import GatewayPolicy
from cachewright.policy.endpoints import ENDPOINTS
from cachewright.policy.reasons import RefusalReason
from cachewright.policy.sse import DONE, Event, write_event
from cachewright.policy.stream_form import StreamForm
from cachewright.policy.stream_replay import is_usage_chunk, without_null_usage

ANSWERS_ALL_THE_SAME: Final = frozenset(
    {RefusalReason.FINISH_REASON, RefusalReason.TOOL_CALL, RefusalReason.REFUSAL}
)
"""Refused by the store, and yet what the model says to this request: shared by those who ask at once."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the upstream sent, whole."""

    status: int
    content_type: str
    content_encoding: str
    """Lower case; empty where absent."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Judgement:
    """What may be done with an answer beyond relaying it."""

    refusal: RefusalReason | None
    """Why it is not stored; None: it may be."""
    kept: KeptAnswer | None
    """What others may get; None: nobody but the client that caused it."""


def judge_answer(answer: Answer, request: Body, path: str, policy: GatewayPolicy) -> Judgement:
    """Judge a whole answer to `request` on `path`."""
    body = storable_body(answer, request, path, policy)
    if isinstance(body, bytes):
        return Judgement(None, KeptAnswer(answer.content_type, body))
    if body not in ANSWERS_ALL_THE_SAME:
        return Judgement(body, None)
    plain = decode_content(answer.body, answer.content_encoding, policy.max_cacheable_body_bytes)
    return Judgement(body, None if plain is None else KeptAnswer(answer.content_type, plain))


def judge_stream(
    content_type: str, events: Sequence[Event], request: Body, path: str, policy: GatewayPolicy
) -> Judgement:
    """Judge a stream that was not cut off."""
    form = ENDPOINTS[path].stream
    assembled = form.assemble(event.data for event in events if event.data is not None)
    if assembled is None:
        return Judgement(RefusalReason.UNPARSABLE, None)
    if not assembled.is_done:
        return Judgement(RefusalReason.INCOMPLETE, None)
    if len(assembled.models) > 1:
        return Judgement(RefusalReason.MODEL, None)
    reason = why_not_stored(assembled.document, request, path, policy)
    if reason is not None and reason not in ANSWERS_ALL_THE_SAME:
        return Judgement(reason, None)
    return Judgement(reason, _kept_stream(content_type, events, form))


def _kept_stream(content_type: str, events: Sequence[Event], form: StreamForm) -> KeptAnswer:
    if not form.has_usage_apart:
        named = [write_event(event.data, event.name) for event in events if event.data is not None]
        return KeptAnswer(content_type, b"".join(named))
    payloads = [event.data for event in events if event.data is not None]
    usage = [payload for payload in payloads if is_usage_chunk(payload)]
    body = b"".join(
        write_event(without_null_usage(payload))
        for payload in payloads
        if payload.strip() != DONE and payload not in usage
    )
    return KeptAnswer(content_type, body, b"".join(map(write_event, usage[-1:])))


def storable_body(answer: Answer, request: Body, path: str, policy: GatewayPolicy) -> bytes | RefusalReason:
    """Return the plain body to store, or why the answer to `request` on `path` must not be stored."""
    if answer.status != 200:
        return RefusalReason.STATUS
    if not is_json_type(answer.content_type):
        return RefusalReason.CONTENT_TYPE
    if len(answer.body) > policy.max_cacheable_body_bytes:
        return RefusalReason.TOO_LARGE
    body = decode_content(answer.body, answer.content_encoding, policy.max_cacheable_body_bytes)
    if body is None:
        return RefusalReason.ENCODED
    try:
        document: Any = orjson.loads(body)
    except ValueError:
        return RefusalReason.UNPARSABLE
    return why_not_stored(document, request, path, policy) or body


def why_not_stored(document: object, request: Body, path: str, policy: GatewayPolicy) -> RefusalReason | None:
    """Say why a parsed answer must not be stored, or None if it may be."""
    if not isinstance(document, dict) or document.get("error"):
        return RefusalReason.UNPARSABLE
    reason = ENDPOINTS[path].why_not_stored(document, request)
    if reason is RefusalReason.UNPARSABLE:
        return reason
    if document.get("model") not in (policy.model, *policy.model_aliases):
        return RefusalReason.MODEL
    return reason
