"""Names of things in a question, told by their capitals. Pure; called by `guard`.

Costs hits, since people also write capitals at will; so its check is a switch of its own. In German, where
each noun has a capital, each noun counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cachewright.policy.guard_words import Kind, Token

_QUIET: Final = frozenset({"i", "i'm", "i'd", "i've", "i'll"})
_TITLE_SHARE: Final = 0.6
"""Of a text's words; with more capitals than that, it is a headline, and capitals name nothing."""


def names_differ(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tell whether one question names what the other does not have, in whatever case."""
    return not (_names(ours) <= _words(theirs) and _names(theirs) <= _words(ours))


def _words(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.text for token in tokens if token.kind is Kind.WORD)


def _names(tokens: Sequence[Token]) -> frozenset[str]:
    words = [token for token in tokens if token.kind is Kind.WORD]
    capital = [token for token in words if token.raw[0].isupper()]
    if len(capital) > _TITLE_SHARE * len(words):
        return frozenset()
    inner = [token for token in words if not token.opens or not token.raw[1:].islower()]
    return frozenset(
        token.text
        for token in inner
        if any(letter.isupper() for letter in token.raw) and token.text not in _QUIET
    )
