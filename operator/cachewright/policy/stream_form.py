"""How the answers of one endpoint are streamed: from chunks to the whole and back. Pure.

Named by `endpoints`, used by `answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from cachewright.policy.stream_assemble import Assembled, assemble_chat, assemble_completion
from cachewright.policy.stream_replay import replay_chat, replay_completion


@dataclass(frozen=True, slots=True)
class StreamForm:
    """The two directions."""

    assemble: Callable[[Iterable[bytes]], Assembled | None]
    """From the payloads of a stream's events to the whole answer; None where they are none."""
    replay: Callable[[dict[str, Any]], tuple[bytes, bytes]]
    """From a whole answer to its events, and apart from them the event with its usage, or nothing."""


CHAT_STREAM: Final = StreamForm(assemble_chat, replay_chat)

COMPLETION_STREAM: Final = StreamForm(assemble_completion, replay_completion)
