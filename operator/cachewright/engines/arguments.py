"""From the arguments a user gave an engine to those it needs: what contradicts, what is there, what to add.

Argument parsers take `--flag value`, `--flag=value`, underscores for dashes (vLLM) and any beginning of a
flag that fits one alone (SGLang), so all of these are looked for. Whether the next word is a flag's value is
known only of flags that are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cachewright.engines.configuration import Argument, EngineConfiguration

SHORTEST_ABBREVIATION: Final = 8
"""Characters from which a beginning of one of our flags is taken for it; `--enable` fits too many."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An argument of the user's that undoes or contradicts one of ours."""

    word: str
    """As the user wrote it."""
    why: str

    def __str__(self) -> str:
        return f"{self.word}: {self.why}"


@dataclass(frozen=True, slots=True)
class _Given:
    flag: str
    word: str
    index: int
    joined: str | None
    """What stands after `=`."""
    following: str | None
    """The next word, where it is no flag."""

    def value(self, argument: Argument) -> str | None:
        """Return its value as one of `argument`; a switch takes no word that follows."""
        return self.joined if self.joined is not None or argument.value is None else self.following

    def span(self, argument: Argument) -> range:
        """Return the places of its words as one of `argument`."""
        takes_two = self.joined is None and argument.value is not None and self.following is not None
        return range(self.index, self.index + (2 if takes_two else 1))


@dataclass(frozen=True, slots=True)
class Merged:
    """A user's arguments with ours."""

    words: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]
    """What was left out for it."""
    gone: frozenset[int] = frozenset()
    """Places of what was left out."""


def merge_container(
    command: Sequence[str], args: Sequence[str], configuration: EngineConfiguration
) -> tuple[list[str], list[str]]:
    """Return a container's command and args with the settings: what contradicts goes, ours end the args."""
    words = [*command, *args]
    merged = merge(words, configuration)
    kept = len(words) - len(merged.gone)
    first = [word for index, word in enumerate(command) if index not in merged.gone]
    second = [word for index, word in enumerate(args, len(command)) if index not in merged.gone]
    return first, [*second, *merged.words[kept:]]


def merge(user_words: Sequence[str], configuration: EngineConfiguration) -> Merged:
    """Leave out what contradicts, keep everything else as it is, and append what is not there yet."""
    given = _read(user_words)
    gone: set[int] = set()
    found: list[Contradiction] = []
    missing: list[Argument] = []
    for exclusion in configuration.exclusions:
        for one in given:
            if _is(one.flag, exclusion.flag):
                gone.add(one.index)
                found.append(Contradiction(one.word, exclusion.why))
    for argument in configuration.arguments:
        same = [one for one in given if _is(one.flag, argument.flag)]
        if same and all(one.value(argument) == argument.value for one in same):
            continue
        missing.append(argument)
        for one in same:
            gone.update(one.span(argument))
            found.append(Contradiction(one.word, f"{argument.words[0]} is wanted"))
    kept = tuple(word for index, word in enumerate(user_words) if index not in gone)
    ours = tuple(word for argument in missing for word in argument.words)
    extra = tuple(word for word in configuration.extra_arguments if word not in kept)
    return Merged(kept + ours + extra, tuple(found), frozenset(gone))


def missing_arguments(user_words: Sequence[str], configuration: EngineConfiguration) -> tuple[Argument, ...]:
    """Return what a running engine's arguments lack."""
    given = _read(user_words)
    return tuple(
        argument
        for argument in configuration.arguments
        if not any(_is(one.flag, argument.flag) and one.value(argument) == argument.value for one in given)
    )


def are_as_wanted(user_words: Sequence[str], configuration: EngineConfiguration) -> bool:
    """Tell whether a running engine's arguments lack nothing, and have nothing in the way."""
    has_extras = all(word in user_words for word in configuration.extra_arguments)
    return (
        has_extras
        and not missing_arguments(user_words, configuration)
        and not contradictions(user_words, configuration)
    )


def contradictions(
    user_words: Sequence[str], configuration: EngineConfiguration
) -> tuple[Contradiction, ...]:
    """Return what in a user's arguments is in the way."""
    return merge(user_words, configuration).contradictions


def _read(words: Sequence[str]) -> list[_Given]:
    given: list[_Given] = []
    for index, word in enumerate(words):
        if not word.startswith("--") or word == "--":
            continue
        flag, equals, value = word.partition("=")
        following = words[index + 1] if index + 1 < len(words) else None
        is_apart = not equals and following is not None and not following.startswith("-")
        normal = "--" + flag[2:].replace("_", "-")
        given.append(_Given(normal, word, index, value if equals else None, following if is_apart else None))
    return given


def _is(given: str, flag: str) -> bool:
    wanted = "--" + flag[2:].replace("_", "-")
    return given == wanted or (len(given) >= SHORTEST_ABBREVIATION and wanted.startswith(given))
