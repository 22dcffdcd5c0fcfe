"""Tells a story step by step, and remembers what was not seen as expected; used by the demo."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from e2e.client import Answer


@dataclass
class Story:
    """What was expected and whether it was seen."""

    failures: list[str] = field(default_factory=list)
    color: bool = field(default_factory=sys.stdout.isatty)

    def title(self, text: str) -> None:
        """Begin a chapter."""
        print(f"\n{self._paint('1', text)}", flush=True)

    def tell(self, expected: str, *, seen: str, holds: bool) -> None:
        """Tell one fact, and remember it if it does not hold."""
        mark = self._paint("32", "✓") if holds else self._paint("31", "✗")
        print(f"  {mark} {expected:<58} {seen}", flush=True)
        if not holds:
            self.failures.append(expected)

    def answer(self, expected: str, answer: Answer, *, holds: bool) -> None:
        """Tell how a request was answered."""
        seen = f"{answer.seconds * 1000:6.0f} ms   {_told(answer)}"
        self.tell(expected, seen=seen, holds=holds and answer.status == 200)

    def _paint(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.color else text


def _told(answer: Answer) -> str:
    """Return what the cache says of an answer, but for the entry's id."""
    return answer.cache_status.partition("; key=")[0] or f"HTTP {answer.status}"
