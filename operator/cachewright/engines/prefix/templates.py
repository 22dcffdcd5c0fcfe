"""From prompts to the templates that made them: those that share much of their tools and system text.

Where the log names a template, that is it. Else a prompt belongs to the template with which it shares the
most runs of words, wherever they stand: a date at the start of each prompt must not make each one a template.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from cachewright.engines.prefix.prompts import PartKind, Prompt

RUN_WORDS: Final = 5
"""Words in a run; two texts that were not written from one template share few runs of five."""

MOST_RUNS: Final = 400
"""Runs looked at in one prompt, so that a long manual in a prompt costs no more than a short one."""

LEAST_SHARE: Final = 0.2
"""Share of a prompt's runs that a template must know; retrieved documents may be most of a prompt."""

NAME_CHARACTERS: Final = 32


class Templates:
    """The templates seen so far."""

    def __init__(self) -> None:
        self._by_run: dict[int, str] = {}

    def name(self, prompt: Prompt) -> str:
        """Name the template of a prompt, and remember what it looks like."""
        if prompt.request.template:
            return prompt.request.template
        runs = _runs(prompt.text[: prompt.static_length])
        votes = Counter(self._by_run[run] for run in runs if run in self._by_run)
        best, shared = votes.most_common(1)[0] if votes else ("", 0)
        name = best if shared >= max(1, LEAST_SHARE * len(runs)) else _beginning(prompt)
        for run in runs:
            self._by_run[run] = name
        return name


def _runs(text: str) -> list[int]:
    words = text.split()
    starts = range(max(1, len(words) - RUN_WORDS + 1)) if words else range(0)
    step = max(1, len(starts) // MOST_RUNS)
    return [hash(tuple(words[start : start + RUN_WORDS])) for start in starts if start % step == 0]


def _beginning(prompt: Prompt) -> str:
    system = next((part.text for part in prompt.parts if part.kind is PartKind.SYSTEM), "")
    words = " ".join(system.partition("\n")[2].split())
    return words[:NAME_CHARACTERS].strip() or "(no system prompt)"
