"""Numbers, units, currencies, dates, times and signs of a question, in one spelling. Pure; called by `guard`.

`1,000`, `1000` and `a thousand` are one number, `2 GB`, `2GB` and `two gigabytes` one quantity. What is not
known to be the same is taken as different: an hour is not 60 minutes here.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cachewright.policy.guard_words import Kind, Token
from cachewright.policy.lexicons.lexicon import Lexicon, words

_SIGN_UNITS: Final = {
    "$": "usd",
    "€": "eur",
    "£": "pound",
    "¥": "jpy",
    "₹": "inr",
    "%": "%",
    "°": "°",
    "′": "ft",  # noqa: RUF001
    '"': "inch",
}
_QUOTES: Final = frozenset({'"', "′"})  # noqa: RUF001
"""Signs that are units behind a number only."""
_BEFORE: Final = frozenset("$€£¥₹")
"""Signs that may stand before their number."""

_ABBREVIATIONS: Final = words(
    "b kb mb gb tb pb kib mib gib tib kbps mbps gbps hz khz mhz ghz w kw mw kwh v kv a ma mah j kj cal kcal n bar "
    "psi mg g kg ml cl dl l mm cm m km sqm km/h kmh mph kph nm ms s min h d y c f k x px pt dpi fps rpm am pm usd "
    "eur gbp chf jpy inr cny th u iu"
)
"""Units that mean one only behind a number, in any language."""

_ORDINAL_ENDINGS: Final = words("st nd rd th er ère ème")
_ROMAN: Final = re.compile(r"(?=[IVX]{2,})X{0,3}(IX|IV|V?I{0,3})")
_ROMAN_VALUES: Final = {"I": 1, "V": 5, "X": 10}
_MATH_SIGNS: Final = frozenset("<>=+^≤≥≠±×÷√∞→←↔")  # noqa: RUF001
_GLUED_SIGNS: Final = frozenset("+#")
"""Signs that belong to the word before them: C++, F#."""
_THOUSANDS: Final = {
    False: re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?"),
    True: re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+(?:,\d+)?"),
}
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d{1,2}")
_VAGUE_UNITS: Final = words("x bit second foot cup yard a v k °")
"""Units whose words mean too much else to count without a number."""

_TEMPERATURES: Final = frozenset("cfk")

NO_UNIT: Final = ""
ORDINAL: Final = "th"


@dataclass(slots=True)
class Quantities:
    """What a question has of numbers."""

    numbers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Value and unit, with how often they come."""
    dates: Counter[str] = field(default_factory=Counter)
    signs: Counter[str] = field(default_factory=Counter)
    letters: set[str] = field(default_factory=set)
    """Single letters that name something: vitamin D."""
    units: set[str] = field(default_factory=set)
    """Units without a number: how many days."""

    def differ(self, other: Quantities) -> bool:
        """Tell whether two questions are about different quantities."""
        if (self.numbers, self.dates, self.signs) != (other.numbers, other.dates, other.signs):
            return True
        # A unit or a letter more is often no more than a longer wording; another one is another question.
        return _conflict(self.units, other.units) or _conflict(self.letters, other.letters)


def _conflict(ours: set[str], theirs: set[str]) -> bool:
    return bool(ours - theirs) and bool(theirs - ours)


def quantities_of(tokens: Sequence[Token], lexicon: Lexicon | None) -> Quantities:
    """Read all quantities of a question; without a lexicon, those that are not words."""
    return _Reader(tokens, lexicon).read()


class _Reader:
    """Goes through the tokens once."""

    def __init__(self, tokens: Sequence[Token], lexicon: Lexicon | None) -> None:
        self._tokens = tokens
        self._lexicon = lexicon
        self._at = 0
        self._found = Quantities()

    def read(self) -> Quantities:
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            match token.kind:
                case Kind.NUMBER:
                    self._at += 1
                    self._number(_plain(token.text, self._lexicon))
                case Kind.SIGN:
                    self._sign(token)
                case Kind.WORD:
                    self._word(token)
        return self._found

    def _peek(self, ahead: int = 0) -> Token | None:
        at = self._at + ahead
        return self._tokens[at] if 0 <= at < len(self._tokens) else None

    def _number(self, value: str, unit: str = NO_UNIT) -> None:
        """Note a number whose token is behind us, with the scale and the unit that follow it."""
        value = self._scaled(value)
        self._found.numbers[value, unit or self._unit_behind()] += 1

    def _scaled(self, value: str) -> str:
        following = self._peek()
        if following and self._lexicon and (scale := self._lexicon.scales.get(following.text)):
            self._at += 1
            return _multiplied(value, scale)
        return value

    def _unit_behind(self) -> str:
        following = self._peek()
        if following is None:
            return NO_UNIT
        unit = self._unit(following)
        if unit:
            self._at += 1
            scale = self._peek()
            if unit == "°" and scale and self._unit(scale) in _TEMPERATURES:
                self._at += 1
                return self._unit(scale)
            return unit
        return NO_UNIT

    def _unit(self, token: Token) -> str:
        if token.kind is Kind.SIGN:
            return _SIGN_UNITS.get(token.text, "")
        if token.text in _ORDINAL_ENDINGS:
            return ORDINAL
        if self._lexicon and (unit := self._lexicon.units.get(token.text)):
            return unit
        return token.text if token.text in _ABBREVIATIONS else ""

    def _sign(self, token: Token) -> None:
        self._at += 1
        following = self._peek()
        if token.text in _BEFORE and following and following.kind is Kind.NUMBER:
            self._at += 1
            self._number(_plain(following.text, self._lexicon), _SIGN_UNITS[token.text])
        elif token.text in _SIGN_UNITS and token.text not in _QUOTES:
            self._found.units.add(_SIGN_UNITS[token.text])
        elif _means_something(token):
            self._found.signs[token.text] += 1

    def _word(self, token: Token) -> None:
        if value := _roman(token):
            self._at += 1
            self._number(value)
        elif self._lexicon is None:
            self._at += 1
            self._letter(token)
        elif not self._spelt(self._lexicon):
            self._at += 1
            self._named(token, self._lexicon)

    def _named(self, token: Token, lexicon: Lexicon) -> None:
        """Note what a word names: a date, an ordinal, a unit or a letter."""
        word = token.text
        if (date := lexicon.dates.get(word)) and self._is_date(token, lexicon):
            self._found.dates[date] += 1
        elif (place := lexicon.ordinals.get(word)) is not None:
            self._found.numbers[str(place), ORDINAL] += 1
        elif (unit := lexicon.units.get(word)) and unit not in _VAGUE_UNITS:
            self._found.units.add(unit)
        else:
            self._letter(token)

    def _is_date(self, token: Token, lexicon: Lexicon) -> bool:
        if token.text not in lexicon.ambiguous_dates:
            return True
        beside = (self._peek(-2), self._peek())
        if any(each and each.kind is Kind.NUMBER for each in beside):
            return True
        return token.raw[0].isupper() and not token.opens

    def _letter(self, token: Token) -> None:
        word = token.text
        quiet = self._lexicon.quiet_letters if self._lexicon else frozenset[str]()
        if (
            len(word) == 1
            and word.isalpha()
            and (word not in quiet or (token.raw == "A" and not token.opens))
        ):
            self._found.letters.add(word)

    def _spelt(self, lexicon: Lexicon) -> bool:
        """Read a number in words, `two hundred and fifty`, and tell whether there is one here."""
        total, current, end = 0, 0, self._at
        seen = False
        while end < len(self._tokens):
            word = self._tokens[end].text
            if (value := lexicon.numerals.get(word)) is not None and (not seen or _continues(current, value)):
                current, seen, end = current + value, True, end + 1
            elif scale := lexicon.scales.get(word) if len(word) > 1 else None:
                current, seen, end = (current or 1) * scale, True, end + 1
                if scale >= 1000:
                    total, current = total + current, 0
            elif seen and word in lexicon.joiners and self._numeral_continues(end + 1, current, lexicon):
                end += 1
            else:
                break
        if not seen:
            return False
        self._at = end
        self._number(str(total + current))
        return True

    def _numeral_continues(self, at: int, current: int, lexicon: Lexicon) -> bool:
        value = lexicon.numerals.get(self._tokens[at].text) if at < len(self._tokens) else None
        return value is not None and _continues(current, value)


def _means_something(sign: Token) -> bool:
    if sign.glued and sign.text in _GLUED_SIGNS:
        return True
    return sign.text in _MATH_SIGNS or unicodedata.category(sign.text) in ("So", "Sk")


def _continues(current: int, value: int) -> bool:
    """Tell whether one numeral adds to the number before it: twenty five, two hundred ten."""
    if current == 0:
        return True
    tens = current % 100
    return (tens == 0 and 0 < value < 100) or (tens >= 20 and tens % 10 == 0 and 0 < value < 10)


def _plain(number: str, lexicon: Lexicon | None) -> str:
    """Write a number without thousands separators and with a decimal point; versions and dates stay."""
    comma = lexicon is not None and lexicon.decimal_comma
    if _THOUSANDS[comma].fullmatch(number):
        number = number.replace("." if comma else ",", "")
    if comma and _DECIMAL_COMMA.fullmatch(number):
        number = number.replace(",", ".")
    number = number.removeprefix("+")
    return number.lstrip("0") or "0" if ":" in number else number


def _multiplied(value: str, scale: int) -> str:
    whole, _, decimals = value.partition(".")
    if not (whole.removeprefix("-") + decimals).isdecimal():
        return f"{value}*{scale}"
    product, places = int(whole + decimals) * scale, 10 ** len(decimals)
    return str(product // places) if product % places == 0 else f"{value}*{scale}"


def _roman(token: Token) -> str:
    """Return the value of a Roman numeral of two letters or more, as in `World War II`."""
    if not _ROMAN.fullmatch(token.raw):
        return ""
    values = [_ROMAN_VALUES[letter] for letter in token.raw]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return str(sum(-value if value < following else value for value, following in pairs))
