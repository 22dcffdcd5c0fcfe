"""The endpoints whose requests and answers we understand, each with its rules. Pure.

`cacheable` asks them about requests, `validate` about answers; an endpoint is added by a file of rules beside
`chat` and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cachewright.policy.body import Body, BodyCheck
from cachewright.policy.chat import CHAT_CHECKS, why_not_chat
from cachewright.policy.completions import COMPLETIONS_CHECKS, why_not_completion
from cachewright.policy.reasons import RefusalReason
from cachewright.policy.responses import RESPONSES_CHECKS, why_not_response
from cachewright.policy.stream_form import (
    CHAT_STREAM,
    COMPLETION_STREAM,
    RESPONSE_STREAM,
    StreamForm,
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The rules of one endpoint, beyond those that hold for all."""

    checks: tuple[BodyCheck, ...]
    """What speaks against looking up a request."""
    why_not_stored: Callable[[Body, Body], RefusalReason | None]
    """What speaks against storing an answer, given answer and request."""
    stream: StreamForm
    """How its answers are streamed."""


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "/v1/chat/completions": Endpoint(CHAT_CHECKS, why_not_chat, CHAT_STREAM),
    "/v1/completions": Endpoint(COMPLETIONS_CHECKS, why_not_completion, COMPLETION_STREAM),
    "/v1/responses": Endpoint(RESPONSES_CHECKS, why_not_response, RESPONSE_STREAM),
}
"""By path; a route that names any other path is passed on uncached."""
