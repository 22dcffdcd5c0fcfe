"""From the structural schema to docs/api.md, the API reference for people.

Called by `python -m cachewright.crd`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from cachewright.api.base import VALIDATIONS_KEY
from cachewright.api.names import API_VERSION, KIND, SHORT_NAME
from cachewright.crd.schema import INT_OR_STRING, PRESERVE_UNKNOWN, Schema, object_schema, properties_of

REFERENCE_PATH: Final = "docs/api.md"

_INTRODUCTION: Final = f"""\
<!-- Generated from the models in operator/cachewright/api by `make generate`; do not edit. -->
# API reference

`apiVersion: {API_VERSION}`, `kind: {KIND}`, short name `{SHORT_NAME}`, namespaced.

A field with a default may be left out; the API server writes the default into the object.
Unknown fields are refused.
Rules in CEL are checked by the API server, by `cachewright validate` and again by the operator.
A rule that compares with `oldSelf` runs when an object is changed.
"""


def api_reference() -> str:
    """Return the whole page: one table per object, from the outside inwards."""
    root = object_schema()
    sections = [_INTRODUCTION, f"## {KIND}\n\n{root['description']}\n\n{_rules(root)}"]
    for name in ("spec", "status"):
        sections += [
            text
            for path, schema in _objects(properties_of(root)[name], name)
            for text in _section(path, schema)
        ]
    return "\n".join(section.rstrip() + "\n" for section in sections)


def _objects(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield the object and every object below it, with its path."""
    if properties_of(schema):
        yield path, schema
    for name, child in properties_of(schema).items():
        yield from _objects(child, f"{path}.{name}")
        yield from _objects(child.get("items", {}), f"{path}.{name}[]")


def _section(path: str, schema: Schema) -> Iterator[str]:
    required = set(schema.get("required", ()))
    rows = [
        f"| `{name}` | {_type(child)} | {_default(name, child, required)} | {_bounds(child)} "
        f"| {_cell(child['description'])} |"
        for name, child in properties_of(schema).items()
    ]
    table = ["| field | type | default | bounds | description |", "|---|---|---|---|---|", *rows]
    yield f"## {path}\n\n{schema['description']}\n\n" + "\n".join(table) + f"\n\n{_rules(schema)}"


def _type(schema: Schema) -> str:
    if schema.get(INT_OR_STRING):
        return "integer or string"
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    if schema.get(PRESERVE_UNKNOWN):
        return "object, passed on as it is"
    return str(schema["type"])


def _default(name: str, schema: Schema, required: set[str]) -> str:
    if name in required:
        return "**required**"
    if properties_of(schema) and "default" in schema:
        return "its fields' defaults"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else "-"


def _bounds(schema: Schema) -> str:
    parts = list(_own_bounds(schema))
    for key, word in (("items", "each"), ("additionalProperties", "each value")):
        parts += [f"{word}: {bound}" for bound in _own_bounds(schema.get(key, {}))]
    return _cell("; ".join(parts)) or "-"


def _own_bounds(schema: dict[str, Any]) -> Iterator[str]:
    if "enum" in schema:
        yield "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " entries"),
    ):
        if low in schema and high in schema:
            yield f"{schema[low]} to {schema[high]}{unit}"
        elif high in schema:
            yield f"at most {schema[high]}{unit}"
        elif low in schema:
            yield f"at least {schema[low]}{unit}"
    if "pattern" in schema:
        yield f"pattern `{schema['pattern']}`"
    match schema.get("x-kubernetes-list-type"):
        case "set":
            yield "no item twice"
        case "map":
            yield "unique by " + " and ".join(f"`{key}`" for key in schema["x-kubernetes-list-map-keys"])
    for validation in schema.get(VALIDATIONS_KEY, ()) if not properties_of(schema) else ():
        yield validation["message"]


def _rules(schema: Schema) -> str:
    lines = [f"- {rule['message']}\n  `{rule['rule']}`" for rule in schema.get(VALIDATIONS_KEY, ())]
    return "\n".join(["Rules:", "", *lines]) if lines else ""


def _cell(text: str) -> str:
    """Keep a text within its table cell."""
    return text.replace("|", "\\|")
