"""Names of the guard's checks, as an object lists them; `policy.guard` is what they do. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class GuardCheck(StrEnum):
    """What a semantic hit is refused for, however similar the two questions are."""

    NUMBERS = "Numbers"
    """Another number, unit, currency, date or time."""
    NEGATION = "Negation"
    """One of the two questions is negated, or restricted by an `only`."""
    ORDER = "Order"
    """The same words the other way round: from A to B, and from B to A."""
    ANTONYMS = "Antonyms"
    """A word of one is the opposite of a word of the other: enable, disable."""
    NAMES = "Names"
    """Another name or code word. Costs about a fifth of the hits, so it is not on by itself."""


DEFAULT_GUARD: Final = (GuardCheck.NUMBERS, GuardCheck.NEGATION, GuardCheck.ORDER, GuardCheck.ANTONYMS)
"""The checks of an object that lists none."""
