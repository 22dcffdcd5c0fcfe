"""From two prompts that should begin the same to the name of what made them differ.

Called by `report` for each prompt whose reuse ended within its tools or its system text. A breaker is named
only where both sides show it: a date in one prompt alone is no reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from cachewright.engines.prefix.prompts import STATIC_KINDS, PartKind, Prompt


class BreakerKind(StrEnum):
    """What makes the beginning of a prompt differ each time."""

    TIMESTAMP = "Timestamp"
    REQUEST_ID = "RequestId"
    EMAIL = "Email"
    TOOL_ORDER = "ToolOrder"
    TOOL_SET = "ToolSet"
    JSON_ORDER = "JsonOrder"
    LINE_ORDER = "LineOrder"
    SPACING = "Spacing"
    NUMBER = "Number"
    NAME = "Name"
    DOCUMENTS = "Documents"
    OTHER = "Other"


FIXES: Final[dict[BreakerKind, str]] = {
    BreakerKind.TIMESTAMP: "Move the time into the last user message, or round it to the day.",
    BreakerKind.REQUEST_ID: "Leave ids of requests and sessions out of the prompt; send them in metadata.",
    BreakerKind.EMAIL: "Move what is known of the user into the last user message.",
    BreakerKind.TOOL_ORDER: "Sort tools by name before each request; sets and maps often have no order.",
    BreakerKind.TOOL_SET: "Offer the same tools in every request of a template, or put those that vary last.",
    BreakerKind.JSON_ORDER: "Write JSON with sorted keys and fixed separators.",
    BreakerKind.LINE_ORDER: "Keep examples and rules in a fixed order; sort them by something stable.",
    BreakerKind.SPACING: "Build the prompt from one template, so that blanks and line ends are the same.",
    BreakerKind.NUMBER: "Move counters and amounts that vary into the last user message.",
    BreakerKind.NAME: "Move the user's name into the last user message, after what is the same for all.",
    BreakerKind.DOCUMENTS: "Put retrieved documents after the instructions, best into the last user message.",
    BreakerKind.OTHER: "Put what varies after what is the same in every request.",
}
"""One sentence for each, that says what to change in the application."""

_MONTH: Final = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"

_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:\s?Z|\s?UTC|[+-]\d{2}:?\d{2})?"
    r"|\d{1,2}[./]\d{1,2}[./]\d{2,4}(?:,? \d{1,2}:\d{2}(?::\d{2})?)?"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp][Mm]\b)?"
    r"|(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?"
    rf"(?:{_MONTH} \d{{1,2}}|\d{{1,2}} {_MONTH})(?:,? \d{{4}})?(?:,? \d{{1,2}}:\d{{2}}(?::\d{{2}})?)?"
    r"|\b1[5-9]\d{8}(?:\d{3})?\b"
)
"""ISO 8601, usual written forms, times of day, and seconds or milliseconds since 1970."""

_ID: Final = re.compile(
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
    r"|\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{12,}\b"
    r"|\b[a-z]{2,8}[-_](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}\b"
)
"""UUIDs, long hexadecimal numbers, and ids with a short prefix such as `req_8fh2k1z9`."""

_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_NAME: Final = re.compile(r"[^\W\d_][\w'-]*(?: [^\W\d_][\w'-]*){0,2}")

VOLATILE: Final[tuple[tuple[BreakerKind, re.Pattern[str]], ...]] = (
    (BreakerKind.TIMESTAMP, _TIMESTAMP),
    (BreakerKind.REQUEST_ID, _ID),
    (BreakerKind.EMAIL, _EMAIL),
)
"""What is known by its form alone."""

REACH: Final = 96
"""Characters before and after a difference in which a form is looked for."""

LONGEST_NAME_LINE: Final = 160
"""A line that differs in a word or two and is no longer than this speaks of somebody or something by name."""

DOCUMENT_CHARACTERS: Final = 200
"""Text that differs for longer than this is material, not a value."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """Why two prompts stop being the same."""

    kind: BreakerKind
    part: PartKind
    offset: int
    """Characters that were the same."""
    lost_characters: int
    """Tools and system text behind it, which could have been shared too."""


def find_breaker(earlier: Prompt, later: Prompt) -> Breaker | None:
    """Name what ended the shared beginning; None where it lasted through tools and system text."""
    old, new = earlier.text, later.text
    offset = _common_length(old, new)
    static = later.static_length
    if offset >= static or offset >= earlier.static_length:
        return None
    part = later.kind_at(offset)
    if part not in STATIC_KINDS:
        return None
    kind = _classify(earlier, later, offset, part)
    return Breaker(kind, part, offset, static - offset)


def _classify(earlier: Prompt, later: Prompt, offset: int, part: PartKind) -> BreakerKind:
    if part is PartKind.TOOLS or earlier.kind_at(offset) is PartKind.TOOLS:
        return _tools_breaker(earlier, later)
    old = earlier.text[: earlier.static_length]
    new = later.text[: later.static_length]
    for kind, pattern in VOLATILE:
        if _spans(pattern, old, offset) and _spans(pattern, new, offset):
            return kind
    if _same_json_at(old, new, offset):
        return BreakerKind.JSON_ORDER
    if old.split() == new.split():
        return BreakerKind.SPACING
    if sorted(old.splitlines()) == sorted(new.splitlines()):
        return BreakerKind.LINE_ORDER
    if _spans(_NUMBER, old, offset) and _spans(_NUMBER, new, offset):
        return BreakerKind.NUMBER
    return _by_length(old, new, offset)


def _by_length(old: str, new: str, offset: int) -> BreakerKind:
    """Tell a name from material by how much of the text differs before it is the same again."""
    differing = max(len(old), len(new)) - offset - _common_length(old[offset:][::-1], new[offset:][::-1])
    if differing > DOCUMENT_CHARACTERS:
        return BreakerKind.DOCUMENTS
    line = _line_at(new, offset)
    is_short = len(line) <= LONGEST_NAME_LINE
    if is_short and _spans(_NAME, old, offset) and _spans(_NAME, new, offset):
        return BreakerKind.NAME
    return BreakerKind.OTHER


def _tools_breaker(earlier: Prompt, later: Prompt) -> BreakerKind:
    old, new = earlier.request.tools, later.request.tools
    canonical_old, canonical_new = [_canonical(tool) for tool in old], [_canonical(tool) for tool in new]
    if canonical_old == canonical_new:
        return BreakerKind.JSON_ORDER
    return BreakerKind.TOOL_ORDER if sorted(canonical_old) == sorted(canonical_new) else BreakerKind.TOOL_SET


def _canonical(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _common_length(one: str, other: str) -> int:
    """Count the characters that two texts share at their start, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _spans(pattern: re.Pattern[str], text: str, offset: int) -> bool:
    """Tell whether a match of the pattern covers or touches the place where the texts differ."""
    start = max(0, offset - REACH)
    window = text[start : offset + REACH]
    return any(
        match.start() + start <= offset <= match.end() + start and match.group()
        for match in pattern.finditer(window)
    )


def _line_at(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    return text[start : len(text) if end < 0 else end]


def _same_json_at(old: str, new: str, offset: int) -> bool:
    """Tell whether the difference lies within JSON that says the same on both sides."""
    for start in reversed([i for i in range(min(offset, len(new))) if new[i] in "{["]):
        one, other = json_at(old, start), json_at(new, start)
        if one is None or other is None:
            continue
        reaches = start + len(one[1]) > offset or start + len(other[1]) > offset
        if reaches and _canonical(one[0]) == _canonical(other[0]):
            return True
    return False


def json_at(text: str, start: int) -> tuple[Any, str] | None:
    """Read the JSON object or array that begins at `start`, and its text; None where there is none."""
    end = _closing(text, start)
    if end is None:
        return None
    try:
        return orjson.loads(text[start:end]), text[start:end]
    except ValueError:
        return None


LONGEST_JSON: Final = 65_536


def _closing(text: str, start: int) -> int | None:
    """Find where the bracket at `start` is closed, outside strings."""
    depth, within, escaped = 0, False, False
    for index in range(start, min(len(text), start + LONGEST_JSON)):
        character = text[index]
        if within:
            within = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            within = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return index + 1
    return None
