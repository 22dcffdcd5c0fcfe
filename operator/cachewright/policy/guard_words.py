"""Questions taken apart into words, numbers and signs, for the guard. Pure; called by `guard`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from cachewright.policy.lexicons.lexicon import Lexicon

LONGEST_TEXT: Final = 4096
"""Characters that are read; what is longer is no question, and a reader that is linear still takes time."""

_DIGIT_GAPS: Final = re.compile(r"(?<=\d)[\u00a0\u202f\u2009'’](?=\d{3}(?!\d))")  # noqa: RUF001
"""Thin spaces and apostrophes between thousands, which would split a number in two."""

_TOKEN: Final = re.compile(
    r"""
    (?P<number> (?<![\w.])[-+−](?=\d)\d+(?:[.,:/-]\d+)* | \d+(?:[.,:/-]\d+)* )
    | (?P<word> [^\W\d_]+ (?:['-][^\W\d_]+)* '? )
    | (?P<sign> [^\s\w] )
    """,  # noqa: RUF001
    re.VERBOSE,
)
_HALF_DAY: Final = re.compile(r"\b([ap])\.\s?m\b\.?", re.IGNORECASE)
_APOSTROPHES: Final = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "ʼ": "'", "‑": "-"})  # noqa: RUF001
_ENDING: Final = re.compile(r"'(?:s|d|m|ll|re|ve)?$", re.IGNORECASE)
_SENTENCE_ENDS: Final = frozenset(".!?:;\n")


class Kind(Enum):
    """What a token is."""

    NUMBER = auto()
    WORD = auto()
    SIGN = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of a question."""

    kind: Kind
    text: str
    """Case-folded."""
    raw: str
    """As written."""
    opens: bool
    """It is the first of its sentence, where a capital says nothing."""
    glued: bool = False
    """Nothing stands between it and the token before it."""


def tokens_of(text: str) -> tuple[Token, ...]:
    """Take a text apart, language unseen: spaces go, everything else becomes a token."""
    plain = _DIGIT_GAPS.sub("", text[:LONGEST_TEXT])
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain.translate(_APOSTROPHES))
    return tuple(_tokens(_HALF_DAY.sub(r"\1m", plain)))


def _tokens(text: str) -> Iterator[Token]:
    opens, end = True, 0
    for match in _TOKEN.finditer(text):
        raw = match.group()
        glued = 0 < end == match.start()
        end = match.end()
        match match.lastgroup:
            case "number":
                yield Token(Kind.NUMBER, _western(raw), raw, opens, glued)
                opens = False
            case "word":
                yield Token(Kind.WORD, raw.casefold(), raw, opens, glued)
                opens = False
            case _:
                yield Token(Kind.SIGN, raw, raw, opens, glued)
                opens = opens or raw in _SENTENCE_ENDS


def _western(number: str) -> str:
    """Write the digits of any script as 0 to 9."""
    if number.isascii():
        return number
    return "".join(str(unicodedata.digit(each, "")) or each for each in number).replace("−", "-")  # noqa: RUF001


def in_language(tokens: tuple[Token, ...], lexicon: Lexicon) -> tuple[Token, ...]:
    """Split what a language writes together: contractions, elided articles, and hyphens of unknown words."""
    return tuple(part for token in tokens for part in _parts(token, lexicon))


def _parts(token: Token, lexicon: Lexicon) -> Iterator[Token]:
    if token.kind is not Kind.WORD or token.text.isalpha():
        spelt = lexicon.contractions.get(token.text) if token.kind is Kind.WORD else None
        yield from (_renamed(token, part) for part in spelt) if spelt else (token,)
        return
    if spelt := lexicon.contractions.get(token.text):
        yield from (_renamed(token, part) for part in spelt)
    elif _is_known(token.text, lexicon):
        yield token
    else:
        yield from _split(token)


def _is_known(word: str, lexicon: Lexicon) -> bool:
    lists: tuple[Callable[[str], object], ...] = (
        lexicon.numerals.get,
        lexicon.dates.get,
        lexicon.opposites.whole.get,
        lexicon.function_words.__contains__,
    )
    return any(known(word) for known in lists)


def _split(token: Token) -> Iterator[Token]:
    """Split at hyphens and behind apostrophes; English endings behind one are dropped."""
    opens = token.opens
    for piece in _ENDING.sub("", token.raw).replace("'", "' ").replace("-", " ").split():
        yield Token(Kind.WORD, piece.casefold(), piece, opens)
        opens = False


def _renamed(token: Token, text: str) -> Token:
    return Token(Kind.WORD, text, text, token.opens)
