"""Words of two questions that exclude each other: enable and disable. Pure; called by `guard`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Final

from cachewright.policy.guard_words import Token
from cachewright.policy.lexicons.lexicon import AS_WRITTEN, START, Lexicon, Side

_PARTICLE_REACH: Final = 8
"""Words between a verb and the particle that belongs to it: turn the heating in the hall off."""

_SHORTEST_REST: Final = 3
"""Letters behind a prefix at least; `under` is not the opposite of `der`, and both must be there anyway."""


def sides_of(tokens: Sequence[Token], lexicon: Lexicon) -> frozenset[Side]:
    """Return where a question's words stand in the lists of alternatives."""
    opposites = lexicon.opposites
    words = [token.text for token in tokens]
    pairs = (f"{first}_{second}" for first, second in pairwise((START, *words)))
    written = (f"{AS_WRITTEN}{token.raw}" for token in tokens if not token.opens)
    spelt = chain(pairs, written, _particle_verbs(words, lexicon))
    joined = (opposites.whole.get(each, ()) for each in spelt)
    return frozenset(chain(*joined, *map(opposites.sides, words)))


def _particle_verbs(words: Sequence[str], lexicon: Lexicon) -> Iterator[str]:
    """Join verbs to the particle that follows later: `turn the light off` is `turn_off`."""
    for place, word in enumerate(words):
        if verb := lexicon.particles.get(word):
            found = [
                each for each in words[place + 1 : place + 2 + _PARTICLE_REACH] if each in verb.particles
            ]
            if found:
                yield f"{verb.base}_{found[-1 if lexicon.particles_come_last else 0]}"


def sides_conflict(ours: frozenset[Side], theirs: frozenset[Side]) -> bool:
    """Tell whether each question has an alternative that the other lacks, on the same line."""
    only_ours, only_theirs = ours - theirs, theirs - ours
    lines = {line for line, _ in only_ours}
    return any(line in lines for line, _ in only_theirs)


def prefixes_conflict(ours: frozenset[str], theirs: frozenset[str], lexicon: Lexicon) -> bool:
    """Tell whether a word of one is a word of the other with a prefix that turns it round."""
    only_ours, only_theirs = ours - theirs, theirs - ours
    return _turned(only_ours, only_theirs, lexicon) or _turned(only_theirs, only_ours, lexicon)


def _turned(plain: frozenset[str], turned: frozenset[str], lexicon: Lexicon) -> bool:
    for word in turned:
        for prefix, opposite in lexicon.prefixes if word.startswith(lexicon.opposite_prefixes) else ():
            if not word.startswith(opposite):
                continue
            rest = word[len(opposite) :]
            if len(rest) >= _SHORTEST_REST and f"{prefix}{rest}" in plain:
                return True
    return False
