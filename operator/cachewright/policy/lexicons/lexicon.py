"""A lexicon: what the guard knows of one language. Pure; written by the modules beside this one.

The lists are text, so that they can be read and added to by whoever speaks the language:

- words are separated by spaces, lower case;
- `enabl*` stands for every word that begins so;
- `turn_off` stands for two words in a row, `^_who` for `who` as the first word;
- `=US` stands for a word in just these letters, within a sentence;
- alternatives that exclude each other stand on one line, separated by `/`; each may be several words of the
  same meaning: `start* begin* launch* / stop* end* quit*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Side: TypeAlias = tuple[int, int]
"""Which line of alternatives, and which of its alternatives."""

START: Final = "^"
"""Stands before the first word."""

AS_WRITTEN: Final = "="
"""Stands before a word whose capitals matter."""

SHORTEST_STEM: Final = 3
"""Letters before a `*` at least; a shorter stem would take in half of a language."""


def words(text: str) -> frozenset[str]:
    """Read a list of words."""
    return frozenset(text.split())


def table(text: str) -> dict[str, str]:
    """Read lines of `meaning: words` into word → meaning."""
    read: dict[str, str] = {}
    for line in text.strip().splitlines():
        meaning, _, spelt = line.partition(":")
        read |= dict.fromkeys(spelt.split(), meaning.strip())
    return read


def numerals(text: str, first: int = 0, step: int = 1) -> dict[str, int]:
    """Read words for numbers that follow each other; `|` separates spellings of one number."""
    return {
        word: first + index * step for index, spelt in enumerate(text.split()) for word in spelt.split("|")
    }


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Closed lists of words that exclude each other."""

    whole: Mapping[str, tuple[Side, ...]]
    stems: Mapping[str, tuple[Side, ...]]

    def sides(self, word: str) -> tuple[Side, ...]:
        """Return where a word, or two joined by `_`, stands; a whole word wins over a stem, a longer stem too."""
        if found := self.whole.get(word):
            return found
        for length in range(len(word), SHORTEST_STEM - 1, -1):
            if found := self.stems.get(word[:length]):
                return found
        return ()


def alternatives(text: str) -> Alternatives:
    """Read lines of alternatives."""
    whole: dict[str, tuple[Side, ...]] = {}
    stems: dict[str, tuple[Side, ...]] = {}
    lines = [line for line in text.strip().splitlines() if line.strip()]
    for number, line in enumerate(lines):
        for side, spelt in enumerate(line.split("/")):
            for word in spelt.split():
                into = stems if word.endswith("*") else whole
                key = word.removesuffix("*")
                into[key] = (*into.get(key, ()), (number, side))
    return Alternatives(whole, stems)


@dataclass(frozen=True, slots=True)
class ParticleVerb:
    """A verb that a later word turns round."""

    base: str
    particles: frozenset[str]


def particle_verbs(text: str) -> dict[str, ParticleVerb]:
    """Read lines of `base: forms / particles`; `base_particle` is what stands in the lists of opposites."""
    read: dict[str, ParticleVerb] = {}
    for line in text.strip().splitlines():
        base, _, rest = line.partition(":")
        forms, _, particles = rest.partition("/")
        read |= dict.fromkeys(forms.split(), ParticleVerb(base.strip(), words(particles)))
    return read


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What the guard knows of one language."""

    language: str
    """ISO 639-1."""
    function_words: frozenset[str]
    """Articles, pronouns, prepositions, auxiliaries, question words: how the language is told, and what the
    order of words is not judged by."""
    telling_words: frozenset[str]
    """Further words of its questions by which the language is told where function words are missing."""
    negations: frozenset[str]
    """Words that negate; contractions are split before."""
    idle_phrases: tuple[tuple[str, ...], ...]
    """Phrases with a negation that negates nothing: `or not`."""
    opposites: Alternatives
    prefixes: tuple[tuple[str, str], ...]
    """Beginnings that turn a word into its opposite: `un` and nothing, `up` and `down`."""
    particles: Mapping[str, ParticleVerb]
    """Verbs whose meaning hangs on a later word: `turn` … `off`."""
    directions: frozenset[str]
    """Words that make the order of what stands around them matter: `to`, `over`, `than`."""
    roles: tuple[frozenset[str], ...]
    """Words that give what follows them a part in the sentence, by part: from here, to there."""
    joiners: frozenset[str]
    """Words around which order does not matter: `and`, `or`."""
    numerals: Mapping[str, int]
    """Words for numbers below a hundred, in their written-together forms too."""
    scales: Mapping[str, int]
    """Words that multiply what stands before them."""
    ordinals: Mapping[str, int]
    units: Mapping[str, str]
    """Words for units and currencies → one name for each; in addition to the signs that all languages share."""
    dates: Mapping[str, str]
    """Months, weekdays and relative days → one name for each."""
    ambiguous_dates: frozenset[str]
    """Of these, the ones that are everyday words too, and count only with a capital or beside a number."""
    quiet_letters: frozenset[str]
    """Single letters that are words of the language; every other one is a code, as in `vitamin D`."""
    decimal_comma: bool
    """Whether 1,5 is one and a half."""
    restrictions: frozenset[str]
    """Words that say that nothing else is meant: `only`."""
    mild_restrictions: frozenset[str]
    """Words that may say so too, and often say nothing: `just`."""
    agents: frozenset[str] = frozenset()
    """Words that name the doer in the passive: `by`."""
    auxiliaries: frozenset[str] = frozenset()
    """Words that make the passive, where `agents` are told by them."""
    speaker_acts: frozenset[str] = frozenset()
    """Words for who asks, where they are the one who does something: `I`."""
    speaker_else: frozenset[str] = frozenset()
    """Words for who asks in any other part: `me`, `my`."""
    contractions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words that stand for several."""
    particles_come_last: bool = False
    """Whether the last particle in reach is the verb's, as in German, and not the first."""
    opposite_prefixes: tuple[str, ...] = field(init=False)
    """The second of each of `prefixes`."""

    def __post_init__(self) -> None:
        """Keep what is asked for with each word."""
        object.__setattr__(self, "opposite_prefixes", tuple({opposite for _, opposite in self.prefixes}))
