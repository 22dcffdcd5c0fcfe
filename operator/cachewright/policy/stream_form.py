"""How the answers of one endpoint are streamed: from events to the whole and back. Pure.

Named by `endpoints`, used by `answers`, by `validate`, and by the gateway for what is on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from cachewright.policy.sse import DONE, write_event
from cachewright.policy.stream_assemble import Assembled, assemble_chat, assemble_completion
from cachewright.policy.stream_replay import replay_chat, replay_completion
from cachewright.policy.stream_responses import assemble_response, is_completed_event, replay_response


@dataclass(frozen=True, slots=True)
class StreamForm:
    """The two directions, and what sets one endpoint's streams apart."""

    assemble: Callable[[Iterable[bytes]], Assembled | None]
    """From the payloads of a stream's events to the whole answer; None where they are none."""
    replay: Callable[[dict[str, Any]], tuple[bytes, bytes] | None]
    """From a whole answer to its events, and apart from them the event with its usage, or nothing.

    None where it cannot be streamed.
    """
    says_all: Callable[[bytes], bool]
    """Tells whether clients may leave after the event with this payload, since it is the last."""
    end: bytes
    """What every stream ends with, and is therefore not kept."""
    has_usage_apart: bool
    """True: usage comes in an event of its own, to those who ask for it with `stream_options`."""


def _is_done(payload: bytes) -> bool:
    return payload == DONE


_END: Final = write_event(DONE)

CHAT_STREAM: Final = StreamForm(assemble_chat, replay_chat, _is_done, _END, has_usage_apart=True)

COMPLETION_STREAM: Final = StreamForm(
    assemble_completion, replay_completion, _is_done, _END, has_usage_apart=True
)

RESPONSE_STREAM: Final = StreamForm(
    assemble_response, replay_response, is_completed_event, b"", has_usage_apart=False
)
