"""Offline validation against the table of good and bad objects; the API tier runs the same table for real."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType

import pytest

from cachewright.api.base import VALIDATIONS_KEY
from cachewright.crd.schema import INT_OR_STRING, Schema, object_schema, properties_of
from cachewright.crd.validation import STRUCTURE, problems
from tests.api.cases import Case, every_case, schema_at, template
from tests.api.documents import steps
from tests.support.schemas import nodes

CASES = every_case()
BOUNDS = frozenset(
    {"minLength", "maxLength", "pattern", "enum", "minimum", "maximum", "maxItems", "maxProperties", "type"}
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_good_object_has_no_problem_and_a_bad_one_its_own(case: Case) -> None:
    """Validation finds the problem that the object was made to have, and none where there is none."""
    paths = {problem.path for problem in problems(case.document, case.old)}
    if case.broken is None:
        assert paths == set()
    else:
        assert case.broken in paths


def rules_of_the_schema() -> Iterator[tuple[str, str]]:
    """Yield each CEL rule with the place that it reports."""
    for path, schema in nodes(object_schema()):
        for rule in schema.get(VALIDATIONS_KEY, ()):
            yield f"{path}{rule.get('fieldPath', '')}".removeprefix("."), rule["rule"]


def test_every_rule_is_broken_by_a_case() -> None:
    """No CEL rule stands in the schema without an object that the API server refuses for it."""
    broken = set()
    for case in CASES:
        for problem in problems(case.document, case.old):
            if problem.rule != STRUCTURE:
                broken.add((template(problem.path), problem.rule))
    # The keys of a map break structure and rule at once; offline, the structural problem speaks.
    keys = {found for found in rules_of_the_schema() if found[1].startswith("self.all(key")}
    for path, _ in keys:
        assert any(case.broken == path and case.name.endswith("bad-1") for case in CASES), path
    assert set(rules_of_the_schema()) - keys == broken


def test_every_rule_about_a_change_holds_for_another_change() -> None:
    """Each transition rule lets some real change pass."""
    assert (
        sum(case.old is not None and case.broken is None and case.old != case.document for case in CASES) >= 3
    )


def broken_bounds(value: object, schema: Schema) -> Iterator[str]:
    """Yield the keywords of the schema that one value does not meet."""
    kinds: dict[str, type | UnionType] = {
        "string": str,
        "integer": int,
        "number": int | float,
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    kind = schema.get("type")
    if kind and not isinstance(value, kinds[kind]):
        yield "type"
        return
    size = len(value) if isinstance(value, str | list | dict) else 0
    if isinstance(value, str):
        yield from (key for key in ("pattern", "enum") if key in schema)  # a case says that it is one of them
        yield from ("minLength",) if size < schema.get("minLength", 0) else ()
        yield from ("maxLength",) if size > schema.get("maxLength", size) else ()
    if isinstance(value, list):
        yield from ("maxItems",) if size > schema.get("maxItems", size) else ()
    if isinstance(value, dict):
        yield from ("maxProperties",) if size > schema.get("maxProperties", size) else ()
    if isinstance(value, int | float):
        yield from ("minimum",) if value < schema.get("minimum", value) else ()
        yield from ("maximum",) if value > schema.get("maximum", value) else ()


def value_at(case: Case, path: str) -> object:
    """Return what a case has at a path; None where it has nothing."""
    value: object = case.document
    for step in steps(path):
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            return None
    return value


def test_every_bound_of_the_spec_is_overstepped_by_a_case() -> None:
    """No length, range, pattern, choice or type stands in the schema without an object refused for it."""
    overstepped = {
        (template(case.broken), bound)
        for case in CASES
        if case.broken
        for bound in broken_bounds(value_at(case, case.broken), schema_at(case.broken))
    }
    spec = properties_of(object_schema())["spec"]
    wanted = set()
    for path, schema in nodes(spec, "spec"):
        at = path.replace("nodeSelector{}", "nodeSelector[kubernetes.io/os]")
        at = at.replace("matchLabels{}", "matchLabels[app.kubernetes.io/name]").replace("{}", ".cpu")
        bounds = schema.keys() & (BOUNDS - {"type"} if schema.get(INT_OR_STRING) else BOUNDS)
        wanted |= {(at, bound) for bound in bounds}
    assert wanted - overstepped == set()


def test_every_required_field_is_left_out_by_a_case() -> None:
    """Each required field has an object without it."""
    left_out = {
        template(case.broken) for case in CASES if case.broken and value_at(case, case.broken) is None
    }
    for path, schema in nodes(properties_of(object_schema())["spec"], "spec"):
        for name in schema.get("required", ()):
            assert f"{path}.{name}" in left_out
