"""Which language a question is in, as far as the guard has word lists. Pure; asked before embedding too."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[a-z']+")
_ENGLISH: Final = frozenset(
    {"a", "can", "do", "for", "from", "how", "i", "is", "my", "of", "the", "this", "to", "what"}
)


def language_of(text: str) -> str | None:
    """Return `en`, or None where a text's language has no word lists or cannot be told."""
    words = _WORD.findall(text.lower())
    return "en" if any(word in _ENGLISH for word in words) else None
