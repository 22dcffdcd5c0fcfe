"""Word lists of the guard, one module per language. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cachewright.policy.lexicons.english import ENGLISH
from cachewright.policy.lexicons.french import FRENCH
from cachewright.policy.lexicons.german import GERMAN
from cachewright.policy.lexicons.lexicon import Lexicon
from cachewright.policy.lexicons.spanish import SPANISH

LEXICONS: Final[Mapping[str, Lexicon]] = {each.language: each for each in (ENGLISH, GERMAN, FRENCH, SPANISH)}
"""The languages the guard can read, by ISO 639-1 code."""
