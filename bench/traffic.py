"""Mixed traffic for the soak: what is asked, by whom and how, and what must be true of each answer. Pure.

Called by `bench.soak`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from bench.load import Timing, question
from tests.adversarial.runner import told_by

TENANTS: Final = 20
QUESTIONS: Final = 400

UNDERSTOOD: Final = frozenset({200, 502, 503, 504})
"""Answers, errors of the upstream passed on, and ours where the upstream broke off."""


class Fate(StrEnum):
    """What became of one request."""

    ANSWERED = "answered"
    FAILED = "failed by the upstream"
    BROKEN = "broken off"
    LEFT = "left by the client"
    LOST = "lost"
    CROSSED = "crossed"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to send."""

    tenant: str
    text: str
    body: bytes
    streamed: bool
    leaves: bool
    """The client goes away before the answer is whole."""


def draw(dice: random.Random) -> Ask:
    """Draw a request: few questions are frequent, a third is streamed, a tenth sampled, a few leave early."""
    tenant = f"tenant{dice.randrange(TENANTS)}"
    text = f"question {min(int(dice.paretovariate(0.6)), QUESTIONS)}"
    streamed = dice.random() < 0.3
    fields: dict[str, Any] = {"stream": True} if streamed else {}
    if dice.random() < 0.1:
        fields["temperature"] = 0.7
    return Ask(tenant, text, question(text, **fields), streamed, dice.random() < 0.02)


def judge(ask: Ask, timing: Timing, troubled: bool) -> Fate:
    """Judge an answer; `troubled` where the upstream may have broken off while it was made."""
    if timing.status == 0:
        return Fate.BROKEN if troubled else Fate.LOST
    if timing.status not in UNDERSTOOD:
        return Fate.LOST
    if timing.status != 200:
        return Fate.FAILED if troubled else Fate.LOST
    told = told_by(timing.body)
    if told is None:
        return Fate.BROKEN if troubled else Fate.LOST
    if (told["tenant"], told["asked"]) != (ask.tenant, ask.text):
        return Fate.CROSSED
    if ask.streamed and not timing.body.rstrip().endswith(b"data: [DONE]"):
        return Fate.BROKEN if troubled else Fate.LOST
    return Fate.ANSWERED
