"""The order of words where it makes the meaning: from A to B, and from B to A. Pure; called by `guard`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Final

from cachewright.policy.lexicons.lexicon import Lexicon

_REACH: Final = 6
"""Words between two that a direction may still connect."""

_SHORTEST_PLURAL: Final = 3
"""Letters of a word whose last s may be a plural's; `bus` and `gas` end with one."""

_LONGEST_BLOCK: Final = 4
"""Words of one thing that may change places with another."""


def order_differs(ours: Sequence[str], theirs: Sequence[str], lexicon: Lexicon) -> bool:
    """Tell whether two questions say the same of two things, the other way round."""
    ours, theirs = _singular(ours), _singular(theirs)
    return (
        _roles_conflict(ours, theirs, lexicon)
        or _doer_is_done_to(ours, theirs, lexicon)
        or _doer_is_done_to(theirs, ours, lexicon)
        or _speaker_is_done_to(ours, theirs, lexicon)
        or _speaker_is_done_to(theirs, ours, lexicon)
        or _sides_of_a_direction_swap(ours, theirs, lexicon)
        or _two_things_swap(ours, theirs, lexicon)
    )


def _singular(words: Sequence[str]) -> Sequence[str]:
    """Drop a plural's s, so that two things are found again where one of them is many: ten dollars."""
    return [word[:-1] if len(word) > _SHORTEST_PLURAL and word[-1] == "s" else word for word in words]


def _doer_is_done_to(passive: Sequence[str], active: Sequence[str], lexicon: Lexicon) -> bool:
    """Was A bought by B in one, did A buy B in the other: the order stays, the doer does not."""
    agent = next((place for place, word in enumerate(passive) if word in lexicon.agents), None)
    if agent is None or lexicon.auxiliaries.isdisjoint(passive[:agent]):
        return False
    if not lexicon.auxiliaries.isdisjoint(active) or not lexicon.agents.isdisjoint(active):
        return False
    doer = next((word for word in passive[agent + 1 :] if word not in lexicon.function_words), None)
    places = _contents(active, lexicon)
    if doer is None or doer not in places:
        return False
    return any(places.get(word, places[doer]) < places[doer] for word in passive[:agent])


def _speaker_is_done_to(acting: Sequence[str], other: Sequence[str], lexicon: Lexicon) -> bool:
    """Can I see my boss's mail in one, can my boss see my mail in the other."""
    place = next((place for place, word in enumerate(acting) if word in lexicon.speaker_acts), None)
    if place is None or not lexicon.speaker_acts.isdisjoint(other) or lexicon.speaker_else.isdisjoint(other):
        return False
    ours, theirs = _contents(acting[place + 1 :], lexicon), _contents(other, lexicon)
    shared = [word for word in ours if word in theirs]
    return any(theirs[later] < theirs[first] for first, later in combinations(shared, 2))


def _contents(words: Sequence[str], lexicon: Lexicon) -> dict[str, int]:
    """Return each content word that comes once, with its place."""
    counted = Counter(words)
    return {
        word: place
        for place, word in enumerate(words)
        if counted[word] == 1 and word not in lexicon.function_words
    }


def _roles_conflict(ours: Sequence[str], theirs: Sequence[str], lexicon: Lexicon) -> bool:
    """From London in one, to London in the other."""
    our_roles, their_roles = _roles(ours, lexicon), _roles(theirs, lexicon)
    return any(
        (their_role := their_roles.get(word)) is not None and their_role != role
        for word, role in our_roles.items()
    )


def _roles(words: Sequence[str], lexicon: Lexicon) -> dict[str, int]:
    """Return the part that content words have by the word before them, articles overlooked."""
    found: dict[str, int] = {}
    role: int | None = None
    for word in words:
        marked = next((part for part, markers in enumerate(lexicon.roles) if word in markers), None)
        if marked is not None:
            role = marked
        elif word not in lexicon.function_words:
            if role is not None:
                found[word] = role
            role = None
    return found


def _sides_of_a_direction_swap(ours: Sequence[str], theirs: Sequence[str], lexicon: Lexicon) -> bool:
    """PDF to Word in one, Word to PDF in the other: the same direction between the same two words."""
    our_places, their_places = _contents(ours, lexicon), _contents(theirs, lexicon)
    shared = [word for word in our_places if word in their_places]
    for index, first in enumerate(shared):
        for second in shared[index + 1 :]:
            if their_places[first] < their_places[second]:
                continue
            between = ours[our_places[first] + 1 : our_places[second]]
            reverse = theirs[their_places[second] + 1 : their_places[first]]
            if max(len(between), len(reverse)) <= _REACH and set(between) & set(reverse) & lexicon.directions:
                return True
    return False


def _two_things_swap(ours: Sequence[str], theirs: Sequence[str], lexicon: Lexicon) -> bool:
    """Does France owe Germany, does Germany owe France: all else stands where it stood."""
    if len(ours) != len(theirs) or Counter(ours) != Counter(theirs):
        return False
    start = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b), None)
    if start is None:
        return False
    end = len(ours)
    while ours[end - 1] == theirs[end - 1]:
        end -= 1
    return _is_swap(ours[start:end], theirs[start:end], lexicon)


def _is_swap(ours: Sequence[str], theirs: Sequence[str], lexicon: Lexicon) -> bool:
    length = len(ours)
    for first in range(1, min(_LONGEST_BLOCK, length - 2) + 1):
        for last in range(1, min(_LONGEST_BLOCK, length - first - 1) + 1):
            middle = ours[first : length - last]
            swapped = (*ours[length - last :], *middle, *ours[:first])
            if tuple(theirs) == swapped:
                return not _joins(middle, lexicon)
    return False


def _joins(middle: Sequence[str], lexicon: Lexicon) -> bool:
    """Tell whether what stands between two things only lists them: `a cat and a dog`."""
    quiet = lexicon.function_words - lexicon.directions
    return not lexicon.joiners.isdisjoint(middle) and all(
        word in lexicon.joiners or word in quiet for word in middle
    )
