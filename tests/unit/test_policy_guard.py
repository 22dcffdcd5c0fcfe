"""The guard: which similar questions it keeps apart, and which it lets through."""

from __future__ import annotations

import pytest

from cachewright.policy.guard import GuardReason, refusals


@pytest.mark.parametrize(
    ("asked", "stored", "reason"),
    [
        ("How do I add 2 users?", "How do I add 3 users?", GuardReason.NUMBERS),
        ("Can I run this as root?", "Can I not run this as root?", GuardReason.NEGATION),
        ("How do I log in?", "Wie melde ich mich an?", GuardReason.LANGUAGE),
    ],
)
def test_questions_that_differ_in_meaning_are_kept_apart(
    asked: str, stored: str, reason: GuardReason
) -> None:
    """Whatever an embedder says of their similarity, in both directions."""
    assert refusals(asked, stored) == (reason,)
    assert refusals(stored, asked) == (reason,)


def test_a_paraphrase_and_an_equal_text_pass() -> None:
    """Equal texts pass in any language."""
    assert refusals("How do I reset my password?", "How can I reset my password?") == ()
    assert refusals("Как дела?", "Как дела?") == ()
