"""The guard: whether two questions that an embedder finds similar still ask for different answers. Pure.

Similarity cannot tell `disable` from `enable` or 2 GB from 2 TB. The guard reads both questions word by word
and refuses a hit for what it finds; it never makes a hit of a miss. A refusal costs a call to the model, a
wrong acceptance a wrong answer, so where it cannot tell it refuses.

The semantic layer asks it for each candidate, and `cachewright calibrate` for each labelled pair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.policy.guard_language import language_of_tokens
from cachewright.policy.guard_names import names_differ
from cachewright.policy.guard_numbers import quantities_of
from cachewright.policy.guard_opposites import prefixes_conflict, sides_conflict, sides_of
from cachewright.policy.guard_order import order_differs
from cachewright.policy.guard_words import Kind, Token, in_language, tokens_of
from cachewright.policy.lexicons import LEXICONS
from cachewright.policy.lexicons.lexicon import Lexicon


class GuardReason(StrEnum):
    """Why a similar question's answer is not served; counted by these names."""

    LANGUAGE = "language"
    """The two are in different languages, or in one the guard has no word lists for."""
    NUMBERS = "numbers"
    """They name different numbers, units, currencies, dates, times or signs."""
    NEGATION = "negation"
    """One of them is negated, or restricted by an `only`."""
    ORDER = "order"
    """They have the same words the other way round."""
    ANTONYMS = "antonyms"
    """They have words that exclude each other."""
    NAMES = "names"
    """They name different things."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, taken apart."""

    tokens: Sequence[Token]
    spelt: Sequence[Token]
    """Without its signs."""
    words: Sequence[str]
    """Case-folded, without its signs."""
    lexicon: Lexicon | None


def refusals(
    asked: str,
    stored: str,
    checks: Collection[GuardCheck] = DEFAULT_GUARD,
    *,
    other_languages: bool = False,
) -> tuple[GuardReason, ...]:
    """Return every reason why the answer to one question must not be given to the other; empty: none.

    Symmetric, and empty for equal texts. With `other_languages`, questions in languages without word lists
    are compared by what needs none: digits, signs and names.
    """
    if asked == stored:
        return ()
    ours, theirs = _take_apart(asked), _take_apart(stored)
    if ours.lexicon is not theirs.lexicon or (ours.lexicon is None and not other_languages):
        return (GuardReason.LANGUAGE,)
    return tuple(
        reason for check, (reason, differ) in _CHECKS.items() if check in checks and differ(ours, theirs)
    )


def _take_apart(text: str) -> _Question:
    tokens = tokens_of(text)
    lexicon = LEXICONS.get(language_of_tokens(tokens) or "")
    if lexicon is not None:
        tokens = in_language(tokens, lexicon)
    spelt = [token for token in tokens if token.kind is not Kind.SIGN]
    return _Question(tokens, spelt, [token.text for token in spelt], lexicon)


def _numbers_differ(ours: _Question, theirs: _Question) -> bool:
    found = quantities_of(ours.tokens, ours.lexicon)
    return found.differ(quantities_of(theirs.tokens, theirs.lexicon))


def _negations_differ(ours: _Question, theirs: _Question) -> bool:
    if ours.lexicon is None:
        return False
    if _negations(ours, ours.lexicon) != _negations(theirs, ours.lexicon):
        return True
    return _restricts_more(ours, theirs, ours.lexicon) or _restricts_more(theirs, ours, ours.lexicon)


def _negations(question: _Question, lexicon: Lexicon) -> int:
    words = question.words
    idle = sum(pair in lexicon.idle_phrases for pair in pairwise(words))
    return sum(word in lexicon.negations for word in words) - idle


def _restricts_more(ours: _Question, theirs: _Question, lexicon: Lexicon) -> bool:
    restricted = not lexicon.restrictions.isdisjoint(ours.words)
    return restricted and (lexicon.restrictions | lexicon.mild_restrictions).isdisjoint(theirs.words)


def _order_differs(ours: _Question, theirs: _Question) -> bool:
    return ours.lexicon is not None and order_differs(ours.words, theirs.words, ours.lexicon)


def _opposites_meet(ours: _Question, theirs: _Question) -> bool:
    lexicon = ours.lexicon
    if lexicon is None:
        return False
    if sides_conflict(sides_of(ours.spelt, lexicon), sides_of(theirs.spelt, lexicon)):
        return True
    return prefixes_conflict(frozenset(ours.words), frozenset(theirs.words), lexicon)


def _names_differ(ours: _Question, theirs: _Question) -> bool:
    return names_differ(ours.tokens, theirs.tokens)


_CHECKS: Final[Mapping[GuardCheck, tuple[GuardReason, Callable[[_Question, _Question], bool]]]] = {
    GuardCheck.NUMBERS: (GuardReason.NUMBERS, _numbers_differ),
    GuardCheck.NEGATION: (GuardReason.NEGATION, _negations_differ),
    GuardCheck.ORDER: (GuardReason.ORDER, _order_differs),
    GuardCheck.ANTONYMS: (GuardReason.ANTONYMS, _opposites_meet),
    GuardCheck.NAMES: (GuardReason.NAMES, _names_differ),
}
