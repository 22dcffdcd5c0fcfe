"""The structural schema: bounded, described, with the models' defaults and rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from cachewright.api.base import VALIDATIONS_KEY, ApiModel, Rule
from cachewright.api.inference_cache import InferenceCache
from cachewright.crd.defaulting import with_defaults
from cachewright.crd.schema import (
    INT_OR_STRING,
    PRESERVE_UNKNOWN,
    Schema,
    below,
    object_schema,
    properties_of,
    structural_schema,
)
from cachewright.crd.sentences import PATTERN_WORDS
from cachewright.crd.validation import load
from tests.api.documents import EXTERNAL, FULL, MINIMAL, Document
from tests.support.schemas import nodes, spec_and_status


def test_every_text_list_and_map_is_bounded() -> None:
    """The API server's cost limit on rules, and etcd's on objects, need an upper bound on everything."""
    for path, schema in spec_and_status():
        if schema.get("type") == "string" or schema.get(INT_OR_STRING):
            assert "maxLength" in schema or "enum" in schema, path
        if schema.get("type") == "array":
            assert "maxItems" in schema, path
            assert schema["x-kubernetes-list-type"] in {"atomic", "set", "map"}, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path
            assert any("self.all(key" in rule["rule"] for rule in schema[VALIDATIONS_KEY]), path


def test_every_field_is_described() -> None:
    """`kubectl explain` has a sentence for each field, on one line and ending like a sentence."""
    for path, schema in spec_and_status():
        if not path.endswith(("[]", "{}")):
            description = schema["description"]
            assert description.endswith("."), path
            assert "\n" not in description, path


def test_only_affinity_takes_what_the_schema_does_not_know() -> None:
    """Nothing in the schema may be silently ignored; affinity is checked when the pods are made."""
    open_ended = [path for path, schema in spec_and_status() if schema.get(PRESERVE_UNKNOWN)]
    parts = ("stores.redis.managed", "stores.qdrant.managed", "stores.postgres.managed", "gateway")
    assert open_ended == [f"spec.{part}.affinity" for part in parts]
    closed = [path for path, schema in spec_and_status() if schema.get("type") == "object"]
    for path in set(closed) - set(open_ended):
        assert dict(spec_and_status())[path].keys() & {"properties", "additionalProperties"}, path


def test_every_pattern_can_be_said_in_words() -> None:
    """A user who misses a pattern reads a sentence, not a regular expression."""
    for path, schema in spec_and_status():
        if "pattern" in schema and path.startswith("spec"):
            assert schema["pattern"] in PATTERN_WORDS or schema.get(VALIDATIONS_KEY), path


def test_keys_of_a_list_map_are_always_present() -> None:
    """The API server needs a key that is required or has a default to tell items apart."""
    for path, schema in spec_and_status():
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            item = schema["items"]
            assert key in item.get("required", ()) or "default" in item["properties"][key], path


def test_rules_about_changes_stand_outside_lists_and_optional_fields() -> None:
    """A rule on an optional field is got round by removing the field first and adding it again."""
    always = {"", "spec"}
    for path, schema in nodes(object_schema()):
        for rule in schema.get(VALIDATIONS_KEY, ()):
            if "oldSelf" in rule["rule"]:
                assert path.removeprefix(".") in always, path
                assert rule["rule"].count("has(self.") == rule["rule"].count("has(oldSelf."), rule["rule"]


def rules_declared() -> Iterator[Rule]:
    """Yield every rule: those of the model classes, and those that stand in a module for `Annotated`."""
    for model in models():
        yield from model.rules
    for name, module in sys.modules.items():
        if name.startswith("cachewright.api"):
            yield from (value for value in vars(module).values() if isinstance(value, Rule))


def models(model: type[BaseModel] = ApiModel) -> Iterator[type[ApiModel]]:
    """Yield every model class of the API."""
    for each in model.__subclasses__():
        if issubclass(each, ApiModel) and each.__module__.startswith("cachewright.api"):
            yield each
            yield from models(each)


def test_every_rule_of_the_models_reaches_the_crd() -> None:
    """A rule that stands beside its model is evaluated by the API server too."""
    written = {
        rule["rule"] for _, schema in nodes(object_schema()) for rule in schema.get(VALIDATIONS_KEY, ())
    }
    declared = {rule.cel for rule in rules_declared()}
    assert declared
    assert declared <= written


@pytest.mark.parametrize("document", [MINIMAL, FULL, EXTERNAL], ids=["minimal", "full", "external"])
def test_defaults_of_the_schema_are_those_of_the_models(document: Document) -> None:
    """An object means the same whether the API server or the model filled in what was left out."""
    filled = with_defaults(document, object_schema())
    assert filled["spec"] == load(document).spec.model_dump(mode="json", exclude_none=True)
    assert with_defaults(filled, object_schema()) == filled


def test_a_null_is_dropped_where_the_schema_knows_the_field_only() -> None:
    """The API server prunes nulls of known fields and leaves free-form objects as they are."""
    document = {"spec": {"suspend": None, "routes": None, "gateway": {"affinity": {"a": None}}, "odd": None}}
    filled = with_defaults(document, object_schema())["spec"]
    assert filled["suspend"] is False
    assert "routes" not in filled
    assert filled["gateway"]["affinity"] == {"a": None}
    assert filled["odd"] is None


def test_the_models_are_left_as_they_were() -> None:
    """Filling in defaults changes neither the object given nor the schema's own default values."""
    document: Document = {"spec": {}}
    first = with_defaults(document, object_schema())
    first["spec"]["limits"]["budget"]["exact"] = "1s"
    assert document == {"spec": {}}
    assert with_defaults(document, object_schema())["spec"]["limits"]["budget"]["exact"] == "5ms"


def test_an_unknown_keyword_is_an_error() -> None:
    """A bound that has no structural form stops the generator instead of getting lost."""

    class Even(ApiModel):
        """A model with a bound that structural schemas lack."""

        count: int
        """A count."""

        @classmethod
        def __get_pydantic_json_schema__(cls, core_schema: object, handler: object, /) -> Schema:
            return {"type": "object", "multipleOf": 2}

    with pytest.raises(NotImplementedError, match="multipleOf"):
        structural_schema(Even)


def test_a_path_leads_to_its_schema() -> None:
    """Fields, list items and map values are found; what the schema does not know is None."""
    spec = properties_of(object_schema())["spec"]
    assert below(spec, "modle") is None
    routes = below(spec, "routes") or {}
    assert "name" in properties_of(below(routes, 3) or {})
    selector = below(below(spec, "gateway") or {}, "nodeSelector") or {}
    assert (below(selector, "any/key") or {})["maxLength"] == 63


def test_the_generated_schema_speaks_of_the_object_alone() -> None:
    """No pydantic word is left that the API server would refuse or ignore."""
    assert set(object_schema()) == {"description", "type", "required", "properties", VALIDATIONS_KEY}
    for path, schema in nodes(object_schema()):
        assert not schema.keys() & {"title", "$ref", "$defs", "anyOf", "const", "propertyNames"}, path
    assert InferenceCache.__doc__ is not None
    assert object_schema()["description"].startswith("Cache layers in front of one model.")
