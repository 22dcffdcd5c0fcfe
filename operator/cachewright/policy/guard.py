"""The guard: whether two questions that an embedder finds similar still ask for different answers. Pure.

Similarity cannot tell `disable` from `enable` or 2 GB from 2 TB. The guard reads both questions word by word
and refuses a hit for what it finds; it never makes a hit of a miss. A refusal costs a call to the model, a
wrong acceptance a wrong answer, so where it cannot tell it refuses.

The semantic layer asks it for each candidate, and `cachewright calibrate` for each labelled pair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Final

from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.policy.guard_language import language_of


class GuardReason(StrEnum):
    """Why a similar question's answer is not served; counted by these names."""

    LANGUAGE = "language"
    """The two are in different languages, or in one the guard has no word lists for."""
    NUMBERS = "numbers"
    """They name different numbers, units, currencies, dates, times or signs."""
    NEGATION = "negation"
    """One of them is negated."""
    ORDER = "order"
    """They have the same words the other way round."""
    ANTONYMS = "antonyms"
    """They have words that exclude each other."""
    NAMES = "names"
    """They name different things."""


def refusals(
    asked: str,
    stored: str,
    checks: Collection[GuardCheck] = DEFAULT_GUARD,
    *,
    other_languages: bool = False,
) -> tuple[GuardReason, ...]:
    """Return every reason why the answer to one question must not be given to the other; empty: none.

    Symmetric, and empty for equal texts. With `other_languages`, questions in languages without word lists
    are compared by what needs none: numbers, signs and names.
    """
    if asked == stored:
        return ()
    language, other = language_of(asked), language_of(stored)
    if language != other or (language is None and not other_languages):
        return (GuardReason.LANGUAGE,)
    return tuple(
        reason for check, (reason, differ) in _CHECKS.items() if check in checks and differ(asked, stored)
    )


_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATION: Final = re.compile(r"\b(?:not|no|never|without|cannot)\b|n't\b", re.IGNORECASE)


def _numbers_differ(asked: str, stored: str) -> bool:
    return sorted(_NUMBER.findall(asked)) != sorted(_NUMBER.findall(stored))


def _negations_differ(asked: str, stored: str) -> bool:
    return len(_NEGATION.findall(asked)) != len(_NEGATION.findall(stored))


_CHECKS: Final[Mapping[GuardCheck, tuple[GuardReason, Callable[[str, str], bool]]]] = {
    GuardCheck.NUMBERS: (GuardReason.NUMBERS, _numbers_differ),
    GuardCheck.NEGATION: (GuardReason.NEGATION, _negations_differ),
}
