"""From the pydantic models to the structural OpenAPI v3 schema of a CRD.

Called by `manifest`, `reference` and `validation`. Pydantic's JSON schema says the same in other words:
references are inlined, `null` is dropped from unions (the API server prunes nulls), and what a structural
schema may not hold is left out. A keyword that is not known here is an error, so that no bound is ever
lost in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from cachewright.api.base import VALIDATIONS_KEY
from cachewright.api.inference_cache import InferenceCache

Schema = dict[str, Any]
"""A JSON schema, or a part of one."""

INT_OR_STRING: Final = "x-kubernetes-int-or-string"
PRESERVE_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"

_KEPT: Final = (
    "description",
    "type",
    "format",
    "enum",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    INT_OR_STRING,
    PRESERVE_UNKNOWN,
    "required",
)
"""Keywords that mean the same on both sides, in the order they are written in."""

_REWRITTEN: Final = frozenset(
    {"anyOf", "const", "properties", "items", "additionalProperties", "propertyNames", VALIDATIONS_KEY}
)
_DROPPED: Final = frozenset({"title", "$defs"})


def properties_of(schema: Schema) -> dict[str, Schema]:
    """Return the named fields of an object's schema; none for anything else."""
    properties: dict[str, Schema] = schema.get("properties", {})
    return properties


def below(schema: Schema, step: str | int) -> Schema | None:
    """Return the schema of one field, map value or list item; None where the schema knows nothing of it."""
    if isinstance(step, int):
        return schema.get("items")
    return properties_of(schema).get(step) or schema.get("additionalProperties")


@cache
def object_schema() -> Schema:
    """Return the structural schema of InferenceCache; callers must not change it."""
    schema = structural_schema(InferenceCache)
    properties = schema["properties"]
    for field in ("apiVersion", "kind"):
        # The API server checks these itself and takes no bounds here.
        properties[field] = {"type": "string", "description": properties[field]["description"]}
    # Without any bound the API server would refuse the rules on the name as too costly; theirs is lower.
    properties["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 253}},
    }
    schema["required"] = ["spec"]
    return schema


def structural_schema(model: type[BaseModel]) -> Schema:
    """Return the structural schema of one model and all that it holds."""
    generated = model.model_json_schema(by_alias=True, schema_generator=_WithFactoryDefaults)
    return _structural(generated, generated.get("$defs", {}))


class _WithFactoryDefaults(GenerateJsonSchema):
    """Writes the defaults of factories too."""

    def get_default_value(self, schema: core_schema.WithDefaultSchema) -> Any:  # noqa: ANN401 - pydantic's signature
        factory: Callable[..., Any] | None = schema.get("default_factory")
        if factory is None:
            return super().get_default_value(schema)
        value = factory()
        # In full, not as `{}`: the API server checks a default against the rules before it fills it in.
        return value.model_dump(mode="json", exclude_none=True) if isinstance(value, BaseModel) else value


def _structural(node: Schema, definitions: dict[str, Schema]) -> Schema:
    merged = _without_union(_inlined(node, definitions), definitions)
    unknown = merged.keys() - set(_KEPT) - _REWRITTEN - _DROPPED
    if unknown:
        raise NotImplementedError(f"no structural form is known for {sorted(unknown)} in {merged}")
    schema: Schema = {key: merged[key] for key in _KEPT if merged.get(key) is not None}
    if "description" in schema:
        schema["description"] = " ".join(schema["description"].split())
    if "const" in merged:
        schema["enum"] = [merged["const"]]
    if "properties" in merged:
        schema["properties"] = {
            name: _structural(child, definitions) for name, child in merged["properties"].items()
        }
    if "items" in merged:
        schema["items"] = _structural(merged["items"], definitions)
    # False only repeats what a structural schema means anyway, and true stands beside PRESERVE_UNKNOWN.
    if isinstance(merged.get("additionalProperties"), dict):
        schema["additionalProperties"] = _structural(merged["additionalProperties"], definitions)
    if validations := [*merged.get(VALIDATIONS_KEY, []), *_key_rules(merged.get("propertyNames"))]:
        schema[VALIDATIONS_KEY] = validations
    return schema


def _inlined(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """Put the referenced schema in place; what stands beside the reference wins, rules add up."""
    if "$ref" not in node:
        return node
    target = definitions[node["$ref"].removeprefix("#/$defs/")]
    beside = {key: value for key, value in node.items() if key != "$ref"}
    return _combined(_inlined(target, definitions), beside)


def _without_union(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """Resolve `X | None` to X, and an integer or a string to Kubernetes' own name for that."""
    if "anyOf" not in node:
        return node
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    options = [option for option in node["anyOf"] if option.get("type") != "null"]
    if len(options) == 1:
        return _without_union(_combined(_inlined(options[0], definitions), beside), definitions)
    if [option.get("type") for option in options] != ["integer", "string"]:
        raise NotImplementedError(f"no structural form is known for the union {options}")
    both = _combined(*({k: v for k, v in option.items() if k != "type"} for option in options))
    return _combined({**both, INT_OR_STRING: True}, beside)


def _combined(first: Schema, second: Schema) -> Schema:
    merged = first | second
    if rules := [*first.get(VALIDATIONS_KEY, []), *second.get(VALIDATIONS_KEY, [])]:
        merged[VALIDATIONS_KEY] = rules
    return merged


def _key_rules(names: Schema | None) -> Iterator[dict[str, str]]:
    """Say in CEL what a structural schema cannot: how long a map's keys may be."""
    if not names:
        return
    if unknown := names.keys() - {"minLength", "maxLength", "type"}:
        raise NotImplementedError(f"no rule is known for {sorted(unknown)} on the keys of a map")
    low, high = names.get("minLength", 0), names["maxLength"]
    yield {
        "rule": f"self.all(key, key.size() >= {low} && key.size() <= {high})",
        "message": f"keys must have {low} to {high} characters",
    }
