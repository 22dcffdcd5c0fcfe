"""From a text to tokens, near enough: words, digits and signs, long words in pieces.

The engine's own tokenizer gives other counts, and the same answer to the question asked here, namely where
two texts begin to differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Tokenizer = Callable[[str], list[str]]
"""Cuts a text into tokens that, put together, are the text."""

LONGEST_TOKEN: Final = 6
"""Characters of a word in one token; longer words are cut, as byte-pair tokenizers cut rare ones."""

_PIECES: Final = re.compile(rf" ?[^\W\d_]{{1,{LONGEST_TOKEN}}}|\d{{1,3}}| ?[^\w\s]{{1,4}}|\s+|_")


def split_tokens(text: str) -> list[str]:
    """Cut a text into tokens; the same beginning gives the same first tokens, but for the last of them."""
    return _PIECES.findall(text)
