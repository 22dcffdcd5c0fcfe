"""From YAML or JSON text to Kubernetes objects as JSON, each value with its line and column.

Called by `cli.validate`. YAML is read as kubectl reads it (YAML 1.1 without timestamps and base 60): `yes`
and `on` are booleans, an unquoted date stays text, keys become text. Where kubectl would let the last of
two equal keys win, a defect is noted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from cachewright.errors import InvalidDocument

Location = tuple[str | int, ...]

MAX_VALUES: Final = 200_000
"""Far more than a manifest that etcd would take; stops aliases that multiply themselves."""

_PLAIN: Final = "plain"
_TAG: Final = "tag:yaml.org,2002:"
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Position:
    """Where something stands in its file, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Defect:
    """Something that is wrong with the text itself, such as a key written twice."""

    position: Position
    message: str


@dataclass(slots=True)
class Manifest:
    """One object, and where each of its parts stands."""

    value: Any = None
    positions: dict[Location, Position] = field(default_factory=dict)
    defects: list[Defect] = field(default_factory=list)

    def position(self, location: Location) -> Position:
        """Return where a part stands, or the nearest part around it that is written down."""
        while location not in self.positions:
            location = location[:-1]
        return self.positions[location]

    def item(self, prefix: Location, value: Any) -> Manifest:  # noqa: ANN401 - any JSON value
        """Return one part as an object of its own, as for the items of a List."""
        size = len(prefix)
        inside = {place[size:]: spot for place, spot in self.positions.items() if place[:size] == prefix}
        return Manifest(value, inside, self.defects)


def read_manifests(text: str) -> Iterator[Manifest]:
    """Yield each object of a text, with a List taken apart; empty documents are left out.

    Raises InvalidDocument, with line and column, where the text is no YAML.
    """
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")  # allowed between the parts of JSON, not of YAML
    try:
        documents = [_Builder().build(node) for node in _nodes(text)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidDocument(f"{place}{error.problem or error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidDocument(str(error)) from error
    for document in documents:
        if document.value is not None:
            yield from _without_list(document)


def _nodes(text: str) -> Iterator[Node]:
    loader = _PlainLoader(text)
    while loader.check_node():
        if (node := loader.get_node()) is not None:
            yield node


def _without_list(document: Manifest) -> Iterator[Manifest]:
    value = document.value
    items = value.get("items") if isinstance(value, dict) else None
    if isinstance(items, list) and str(value.get("kind", "")).endswith("List"):
        for index, item in enumerate(items):
            yield document.item(("items", index), item)
    else:
        yield document


class _PlainLoader(Reader, Scanner, Parser, Composer):
    """Composes nodes and leaves the meaning of plain scalars to `plain_value`."""

    def __init__(self, stream: str) -> None:
        Reader.__init__(self, stream)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)

    def descend_resolver(self, current_node: Node | None, current_index: int | Node | None) -> None:
        """Resolve nothing by path."""

    def ascend_resolver(self) -> None:
        """Resolve nothing by path."""

    def resolve(self, kind: type[Node], value: str, implicit: tuple[bool, bool] | bool) -> str:
        """Mark plain scalars; all that is quoted is text."""
        del value
        if kind is ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else f"{_TAG}str"
        return f"{_TAG}map" if kind is MappingNode else f"{_TAG}seq"


class _Builder:
    """Turns one document's nodes into JSON values."""

    def __init__(self) -> None:
        self._result = Manifest()
        self._open: set[int] = set()
        self._count = 0

    def build(self, node: Node) -> Manifest:
        self._result.positions[()] = _position(node)
        self._result.value = self._value(node, ())
        return self._result

    def _value(self, node: Node, place: Location) -> Any:  # noqa: ANN401 - any JSON value
        self._count += 1
        if self._count > MAX_VALUES:
            raise yaml.MarkedYAMLError(problem=f"more than {MAX_VALUES} values", problem_mark=node.start_mark)
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            raise yaml.MarkedYAMLError(problem="an alias contains itself", problem_mark=node.start_mark)
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, place)
            return self._sequence(node, place)
        finally:
            self._open.discard(id(node))

    def _sequence(self, node: Node, place: Location) -> list[Any]:
        values = []
        for index, item in enumerate(node.value):
            self._result.positions[(*place, index)] = _position(item)
            values.append(self._value(item, (*place, index)))
        return values

    def _mapping(self, node: MappingNode, place: Location) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag in {_PLAIN, f"{_TAG}merge"} and key_node.value == "<<":
                for source in self._merge_sources(value_node):
                    for key, value in self._mapping(source, place).items():
                        merged.setdefault(key, value)
                continue
            key = self._key(key_node)
            if key in own:
                self._defect(key_node, f"the key {key!r} is written twice in the same object")
            self._result.positions[(*place, key)] = _position(key_node)
            own[key] = self._value(value_node, (*place, key))
        return {**merged, **own}

    def _merge_sources(self, node: Node) -> list[MappingNode]:
        sources = node.value if isinstance(node, SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, MappingNode) or id(source) in self._open:
                message = "<< takes a mapping or a list of mappings"
                raise yaml.MarkedYAMLError(problem=message, problem_mark=source.start_mark)
        return list(sources)

    def _key(self, node: Node) -> str:
        key = self._scalar(node) if isinstance(node, ScalarNode) else None
        match key:
            case str():
                return key
            case bool():
                return "true" if key else "false"
            case int() | float():
                return str(key)
        raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=node.start_mark)

    def _scalar(self, node: ScalarNode) -> Any:  # noqa: ANN401 - any JSON scalar
        if node.tag not in {_PLAIN, *(f"{_TAG}{name}" for name in ("int", "float", "bool", "null"))}:
            return _whole_characters(node)
        if _NOT_FINITE.fullmatch(node.value):
            self._defect(node, f"{node.value} is not a number that JSON can hold")
        return plain_value(node.value)

    def _defect(self, node: Node, message: str) -> None:
        self._result.defects.append(Defect(_position(node), message))


def _whole_characters(node: ScalarNode) -> str:
    """Join what JSON writes as two escapes (beyond 16 bits); half a character is no text."""
    try:
        return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        message = "half a character (a lone surrogate) is no text"
        raise yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark) from error


def plain_value(text: str) -> str | int | float | bool | None:
    """Read an unquoted scalar as kubectl does."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if (match := _INTEGER.fullmatch(digits)) and match.lastgroup:
        number = int(match["sign"] + match[match.lastgroup], _BASES[match.lastgroup])
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(digits) and math.isfinite(float(digits)):
        return float(digits)
    return text


def _position(node: Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)
