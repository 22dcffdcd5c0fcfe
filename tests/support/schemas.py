"""Walking through the structural schema."""

from __future__ import annotations

from collections.abc import Iterator

from cachewright.crd.schema import Schema, object_schema, properties_of


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every schema below one, with its path."""
    yield path, schema
    for name, child in properties_of(schema).items():
        yield from nodes(child, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from nodes(schema[key], f"{path}{mark}")


def spec_and_status() -> list[tuple[str, Schema]]:
    """Return every schema of our own fields."""
    parts = object_schema()["properties"]
    return [*nodes(parts["spec"], "spec"), *nodes(parts["status"], "status")]
