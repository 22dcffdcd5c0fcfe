"""Properties of offline validation over random objects."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from cachewright.crd.defaulting import with_defaults
from cachewright.crd.schema import object_schema
from cachewright.crd.validation import STRUCTURE, load, problems
from tests.api.documents import Document
from tests.api.random_objects import damaged_objects, objects, valid_objects

CALM = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@CALM
@given(objects())
def test_what_the_schema_allows_the_models_take(document: Document) -> None:
    """An object drawn from the schema breaks rules at most, never the models' structure."""
    assert [problem for problem in problems(document) if problem.rule == STRUCTURE] == []


@CALM
@given(valid_objects())
def test_a_valid_object_means_the_same_after_a_round_trip(document: Document) -> None:
    """Loading, writing and loading again gives the same object, defaults included."""
    cache = load(document)
    written = cache.model_dump(mode="json", exclude_none=True)
    assert load(written) == cache
    assert written["spec"] == with_defaults(document, object_schema())["spec"]


@CALM
@given(damaged_objects())
def test_junk_never_breaks_validation_itself(document: Document) -> None:
    """Whatever stands in an object, the answer is a list of problems, each with a sentence and a place."""
    for problem in problems(document, old=document):
        assert problem.message
        assert problem.path.startswith("spec")
