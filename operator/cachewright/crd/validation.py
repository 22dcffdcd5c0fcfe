"""From an InferenceCache as JSON to every problem in it, by the API server's rules but without one.

Called by `cachewright validate` and by reconcile, which must not trust an older CRD to have had all rules.
`problems` checks structure with the models and then walks the structural schema, as the API server does, for
what the models do not know: unique lists and CEL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cachewright.api.base import VALIDATIONS_KEY
from cachewright.api.inference_cache import InferenceCache
from cachewright.crd.defaulting import with_defaults
from cachewright.crd.expressions import holds
from cachewright.crd.schema import INT_OR_STRING, Schema, below, object_schema
from cachewright.crd.sentences import sentence, shown, unknown_field
from cachewright.errors import InvalidSpec, RuleNotEvaluable

Location = tuple[str | int, ...]
"""Field names and list indices from the object's root."""

STRUCTURE: Final = "structure"
"""`Problem.rule` of everything that is not a CEL rule."""

_METADATA_FIELDS: Final = (
    *("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences"),
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "managedFields", "selfLink"),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, in a sentence, and the CEL text of the broken rule (or `structure`)."""

    location: Location
    message: str
    rule: str = STRUCTURE

    @property
    def path(self) -> str:
        """Where it is, such as `spec.routes[0].name`; a map's key with dots stands in brackets."""
        text = ""
        for step in self.location:
            named = isinstance(step, str) and not set(step) & set("./")
            text += f".{step}" if named else f"[{step}]"
        return text.removeprefix(".")

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.location else self.message


def problems(document: Any, old: Any = None) -> list[Problem]:  # noqa: ANN401 - whatever a person wrote
    """Return everything that is wrong with an object, at once; nothing when the API server would take it.

    With `old`, the object it replaces, transition rules are checked too.
    """
    return _checked(document, old)[1]


def load(document: Any) -> InferenceCache:  # noqa: ANN401 - whatever the API server or a person holds
    """Return the object as models, defaults filled in; a status that does not parse is left out.

    Raises InvalidSpec, whose message lists every problem.
    """
    cache, found = _checked(document, None)
    if cache is None or found:
        raise InvalidSpec("; ".join(str(problem) for problem in found))
    try:
        with_status = InferenceCache.model_validate_json(json.dumps(document), by_alias=True, by_name=False)
    except ValidationError:
        return cache
    return cache.model_copy(update={"status": with_status.status})


def _checked(document: Any, old: Any) -> tuple[InferenceCache | None, list[Problem]]:  # noqa: ANN401
    if not isinstance(document, dict):
        return None, [Problem((), f"must be an InferenceCache object, not {shown(document)}")]
    stored = _as_stored(document)
    cache, structural = _parsed(stored)
    former = _as_stored(old) if isinstance(old, dict) else None
    broken = frozenset(problem.location for problem in structural)
    found = [*structural, *_metadata_problems(stored), *_walk(stored, former, object_schema(), (), broken)]
    return cache, found


def _as_stored(document: dict[str, Any]) -> dict[str, Any]:
    """The object as the API server holds it; status is the operator's, and nobody else's write changes it."""
    stored: dict[str, Any] = with_defaults(document, object_schema())
    stored.pop("status", None)
    if isinstance(stored.get("metadata"), dict):
        stored["metadata"] = {key: value for key, value in stored["metadata"].items() if value is not None}
    return stored


def _parsed(stored: dict[str, Any]) -> tuple[InferenceCache | None, list[Problem]]:
    # The models have defaults for these two; a manifest must name them.
    found = [
        Problem((field,), f"is required: {object_schema()['properties'][field]['description']}")
        for field in ("apiVersion", "kind")
        if field not in stored
    ]
    try:
        cache = InferenceCache.model_validate_json(json.dumps(stored), by_alias=True, by_name=False)
    except ValidationError as error:
        return None, found + list(_structural_problems(error))
    return cache, found


def _structural_problems(error: ValidationError) -> Iterator[Problem]:
    numbers_or_text: dict[Location, ErrorDetails] = {}
    for detail in error.errors(include_url=False):
        location, schema = _located(detail)
        if detail["loc"][-1:] == ("[key]",):
            yield Problem(location[:-1], f"the key {shown(location[-1])} {sentence(detail, schema)}")
        elif not schema.get(INT_OR_STRING):
            yield Problem(location, sentence(detail, schema))
        elif detail["type"] in {"int_type", "string_type"}:
            # Pydantic reports both halves of the union; the half that fits the value's type says more.
            numbers_or_text.setdefault(location, {**detail, "type": "int_or_string"})
        else:
            numbers_or_text[location] = detail
    for location, detail in numbers_or_text.items():
        yield Problem(location, sentence(detail, {}))


def _located(detail: ErrorDetails) -> tuple[Location, Schema]:
    """Return the place of an error and its schema: for an unknown field, that of the object around it."""
    schema = object_schema()
    place: list[str | int] = []
    for step in detail["loc"]:
        known = below(schema, step)
        if schema.get(INT_OR_STRING) or step == "[key]":
            break  # pydantic appends which half of a union, or which side of a map, it means
        place.append(step)
        schema = known if known is not None else schema
    return tuple(place), schema


def _metadata_problems(stored: dict[str, Any]) -> Iterator[Problem]:
    metadata = stored.get("metadata")
    if not isinstance(metadata, dict):
        return
    for name in metadata:
        if name not in _METADATA_FIELDS:
            yield Problem(("metadata", name), unknown_field(name, _METADATA_FIELDS))
    for field in ("labels", "annotations"):
        entries = metadata.get(field, {})
        if not isinstance(entries, dict):
            yield Problem(("metadata", field), f"must be an object (a mapping), not {shown(entries)}")
            continue
        for key, value in entries.items():
            if not isinstance(value, str):
                message = f'must be text; write it in quotes: "{shown(value)}"'
                yield Problem(("metadata", field, key), message)


def _walk(
    value: Any,  # noqa: ANN401 - any JSON value
    former: Any,  # noqa: ANN401
    schema: Schema,
    place: Location,
    broken: frozenset[Location],
) -> Iterator[Problem]:
    """Check lists and rules of this value and of all below it; `broken` places are structurally wrong."""
    if place not in broken:
        yield from _broken_rules(value, former, schema, place, broken)
    if isinstance(value, dict):
        for name, child in value.items():
            known = below(schema, name)
            if known is not None:
                before = former.get(name) if isinstance(former, dict) else None
                yield from _walk(child, before, known, (*place, name), broken)
    elif isinstance(value, list):
        if place not in broken:
            yield from _duplicates(value, schema, place)
        for index, item in enumerate(value):
            # Items have no former self here: the rules that compare stand on objects outside lists.
            yield from _walk(item, None, below(schema, index) or {}, (*place, index), broken)


def _broken_rules(
    value: Any,  # noqa: ANN401 - any JSON value
    former: Any,  # noqa: ANN401
    schema: Schema,
    place: Location,
    broken: frozenset[Location],
) -> Iterator[Problem]:
    for validation in schema.get(VALIDATIONS_KEY, ()):
        rule, message = validation["rule"], validation["message"]
        if ("oldSelf" in rule and former is None) or _reads_broken(rule, place, broken):
            continue
        try:
            if holds(rule, value, former):
                continue
        except RuleNotEvaluable as error:
            if any(other[: len(place)] == place for other in broken):
                continue  # the structural problem below explains it, and comes first for the reader
            message = str(error)
        below_it = tuple(step for step in validation.get("fieldPath", "").split(".") if step)
        yield Problem((*place, *below_it), message, rule)


def _reads_broken(rule: str, place: Location, broken: frozenset[Location]) -> bool:
    """Tell whether a rule reads a field that has a structural problem: that one says what to mend."""
    inside = (other[len(place) :] for other in broken if other[: len(place)] == place)
    return any(f"self.{'.'.join(str(step) for step in steps)}" in rule for steps in inside)


def _duplicates(value: list[Any], schema: Schema, place: Location) -> Iterator[Problem]:
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys", ())
    seen: list[Any] = []
    for index, item in enumerate(value):
        if kind == "map" and not isinstance(item, dict):
            continue
        mark = item if kind == "set" else [item.get(key) for key in keys] if kind == "map" else None
        if mark is not None and mark in seen:
            unique = f" by {' and '.join(keys)}" if keys else ""
            yield Problem((*place, index), f"stands in the list twice; items must be unique{unique}")
        seen.append(mark)
