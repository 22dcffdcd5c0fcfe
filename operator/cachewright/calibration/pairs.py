"""Labelled pairs of questions: from CSV, JSON or JSONL to values. Pure; called by `cli.calibrate`.

A pair says whether one answer serves both questions. The files beside this one were written for this
project, by hand, pair by pair; each class is one way in which similar questions differ. `held_out.csv` was
written after the guard and its word lists, to see what they are worth on what they have not seen.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from cachewright.errors import InvalidDocument

COLUMNS: Final = ("text_a", "text_b", "same", "class", "language")
"""In this order in files that are written; the last two may be missing in files that are read."""

NO_CLASS: Final = "unclassed"
"""The class of pairs that name none."""

_YES: Final = frozenset({"yes", "true", "1", "same", "y"})
_NO: Final = frozenset({"no", "false", "0", "different", "n"})


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two questions, and whether one answer serves both."""

    text_a: str
    text_b: str
    same: bool
    kind: str = NO_CLASS
    language: str = ""
    """ISO 639-1; empty where the file does not say."""


@dataclass(slots=True)
class PairFile:
    """What a file holds."""

    pairs: list[LabelledPair] = field(default_factory=list)
    unlabelled: int = 0
    """Rows whose label is still empty."""


def read_pairs(text: str, name: str) -> PairFile:
    """Read a file by its name's ending: .csv, .json or .jsonl; raises InvalidDocument with the line."""
    text = text.removeprefix("\ufeff")
    match name.rpartition(".")[2].lower():
        case "csv":
            rows = _csv_rows(text, name)
        case "jsonl" | "ndjson":
            rows = _json_lines(text, name)
        case "json":
            rows = _json_rows(text, name)
        case _:
            raise InvalidDocument(f"{name}: a file of pairs ends with .csv, .json or .jsonl")
    found = PairFile()
    for place, row in rows:
        _add(found, row, place)
    if not found.pairs:
        left = f", and {found.unlabelled} rows whose `same` is empty" if found.unlabelled else ""
        raise InvalidDocument(f"{name}: no labelled pair{left}")
    return found


def _csv_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(text.splitlines(keepends=True), strict=True)
    try:
        missing = [column for column in COLUMNS[:3] if column not in (reader.fieldnames or ())]
        if missing:
            raise InvalidDocument(
                f"{name}:1: the first line names the columns, and lacks {', '.join(missing)}; "
                f"it reads {','.join(COLUMNS[:3])} and, if you like, {','.join(COLUMNS[3:])}"
            )
        for row in reader:
            place = f"{name}:{reader.line_num}"
            if None in row or None in row.values():
                raise InvalidDocument(
                    f"{place}: not as many fields as columns; a text with a comma in it needs quotes"
                )
            yield place, row
    except csv.Error as e:
        raise InvalidDocument(f"{name}:{reader.line_num}: not CSV: {e}") from e


def _json_lines(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{name}:{number}", _json_object(_loaded(line, f"{name}:{number}"), f"{name}:{number}")


def _json_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    rows = _loaded(text, name)
    if not isinstance(rows, list):
        raise InvalidDocument(f"{name}: not a list of pairs")
    for number, row in enumerate(rows, 1):
        yield f"{name}: pair {number}", _json_object(row, f"{name}: pair {number}")


def _loaded(text: str, place: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise InvalidDocument(f"{place}: not JSON: {e}") from e


def _json_object(row: Any, place: str) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON value
    if not isinstance(row, dict):
        raise InvalidDocument(f"{place}: not an object with text_a, text_b and same")
    return row


def _add(found: PairFile, row: Mapping[str, Any], place: str) -> None:
    texts = [row.get(name) for name in COLUMNS[:2]]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise InvalidDocument(f"{place}: text_a and text_b are two questions, neither of them empty")
    label = str(row.get("same", row.get("label", ""))).strip().lower()
    if not label or label == "none":
        found.unlabelled += 1
        return
    if label not in _YES | _NO:
        raise InvalidDocument(f"{place}: same is yes or no, not {label!r}")
    kind, language = (str(row.get(name) or "").strip() for name in COLUMNS[3:])
    found.pairs.append(
        LabelledPair(str(texts[0]), str(texts[1]), label in _YES, kind or NO_CLASS, language.lower())
    )


@dataclass(frozen=True, slots=True)
class ShadowSample:
    """Two questions that Shadow mode found similar enough."""

    asked: str
    stored: str
    similarity: float
    refused: tuple[str, ...] = ()
    """What the guard had against them."""


def read_samples(text: str, name: str) -> list[ShadowSample]:
    """Read what Shadow mode sampled: objects with asked, stored, similarity and refused, as JSON or JSONL."""
    whole = text.lstrip()
    rows = _json_rows(text, name) if whole.startswith("[") else _json_lines(text, name)
    samples: dict[tuple[str, str], ShadowSample] = {}
    for place, row in rows:
        asked, stored, similarity = row.get("asked"), row.get("stored"), row.get("similarity")
        if not (isinstance(asked, str) and isinstance(stored, str) and isinstance(similarity, int | float)):
            raise InvalidDocument(f"{place}: a sample has asked, stored and similarity")
        refused = row.get("refused") or []
        if not isinstance(refused, list):
            raise InvalidDocument(f"{place}: refused is a list of reasons")
        samples[asked, stored] = ShadowSample(asked, stored, float(similarity), tuple(map(str, refused)))
    return sorted(samples.values(), key=lambda each: -each.similarity)


def to_label(samples: Iterable[ShadowSample]) -> list[tuple[str, str, str, str, str]]:
    """Lay samples out as rows of a CSV file whose `same` is for a person to fill in.

    The class is what the guard would have refused the pair for, so that its worth shows by class.
    """
    return [(each.asked, each.stored, "", each.refused[0] if each.refused else "", "") for each in samples]
