"""What offline validation says: every problem at once, in sentences that name the field and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from cachewright.crd.expressions import holds
from cachewright.crd.validation import STRUCTURE, Problem, load, problems
from cachewright.errors import InvalidSpec, RuleNotEvaluable
from tests.api.documents import EXTERNAL, FULL, GONE, MINIMAL, changed

DEEP: dict[str, Any] = {}
for _ in range(300):
    DEEP = {"a": DEEP}


def told(**changes: Any) -> list[str]:
    """Return the problems of the full object after some changes, as text."""
    return [str(problem) for problem in problems(changed(FULL, **changes))]


def test_every_problem_is_reported_at_once() -> None:
    """Structure, lists and rules are all looked at, however much is wrong."""
    found = told(
        metadata__name="Bot",
        spec__model__version=GONE,
        spec__layers={},
        spec__gateway__replicas=-1,
        spec__upstream__varyHeaders=["a", "a"],
        spec__limits__budget__exact="1h",
    )
    assert [text.split(":")[0] for text in sorted(found)] == [
        "metadata.name",
        "spec.gateway.replicas",
        "spec.layers",
        "spec.limits.budget.exact",
        "spec.model.version",
        "spec.routes",
        "spec.upstream.varyHeaders[1]",
    ]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("spec__model__version", 1, 'must be text; write it in quotes: "1"'),
        ("spec__model__version", True, 'must be text; write it in quotes: "true"'),
        ("spec__model__version", ["1"], "must be text, not a list"),
        ("spec__model__name", "", "must not be empty"),
        ("spec__model__name", "a b", "must be printable ASCII characters without spaces, not 'a b'"),
        ("spec__model__name", "m" * 257, "must have at most 256 characters; it has 257"),
        ("spec__tenancy__mode", "single", "must be one of Required, Single, not 'single'"),
        ("spec__deletionPolicy", "Keep", "must be one of Retain, Delete, not 'Keep'"),
        ("spec__suspend", "yes", "must be true or false, not 'yes'"),
        ("spec__gateway__replicas", 101, "must be at most 100; it is 101"),
        ("spec__gateway__replicas", "2", "must be a whole number, not '2'"),
        ("spec__routes", {}, "must be a list, not an object"),
        ("spec__limits", [], "must be an object (a mapping), not a list"),
        (
            "spec__limits__maxBody",
            "1e3",
            "must be a quantity greater than zero, such as 512Mi or 1Gi, not '1e3'",
        ),
        (
            "spec__layers__exact__ttl",
            "7d",
            "must be longer than zero; write for example 30m, 24h or 500ms, not '7d'",
        ),
        (
            "spec__upstream__url",
            "engine:8000",
            "must be a URL such as http://vllm.ml:8000/v1, not 'engine:8000'",
        ),
        ("spec__gateway__max_replicas", 3, "is not a known field; did you mean replicas?"),
        ("spec__gateway__image_pull_policy", "Always", "is not a known field; did you mean imagePullPolicy?"),
        ("spec__layers__fuzzy", {}, "is not a known field; known here: exact, semantic, embedding, prefix"),
        ("metadata__label", {}, "is not a known field; did you mean labels?"),
        ("metadata__labels", {"a": 1}, 'must be text; write it in quotes: "1"'),
        ("metadata__annotations", [], "must be an object (a mapping), not a list"),
        (
            "spec__gateway__resources__limits__cpu",
            1.5,
            "must be a whole number or a quantity such as 500m, not 1.5",
        ),
        ("spec__gateway__nodeSelector", {"": "a"}, "the key '' must not be empty"),
        ("apiVersion", "cachewright.dev/v1", "must be cachewright.dev/v1alpha1, not 'cachewright.dev/v1'"),
    ],
)
def test_a_problem_says_what_to_write(path: str, value: object, sentence: str) -> None:
    """The sentence is the remedy, in the user's words."""
    assert [text.split(": ", 1)[1] for text in told(**{path: value})] == [sentence]


def test_a_missing_field_is_explained() -> None:
    """What is required comes with the field's own description."""
    (text,) = told(spec__model__name=GONE)
    assert text.startswith("spec.model.name: is required: Name that requests ask for;")
    assert told(apiVersion=GONE) == ["apiVersion: is required: Version of this schema."]


def test_a_long_value_is_cut() -> None:
    """One wrong value does not fill the screen."""
    (text,) = told(spec__upstream__url="x" * 2000)
    assert len(text) < 200


@pytest.mark.parametrize("document", [None, [], "text", 5])
def test_what_is_no_object_is_one_problem(document: object) -> None:
    """A document that is no mapping is told so, at the root."""
    (problem,) = problems(document)
    assert problem.path == ""
    assert str(problem).startswith("must be an InferenceCache object, not ")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"apiVersion": 1, "kind": [], "metadata": "x", "spec": 5},
        {"metadata": {"name": 5, "labels": "x"}, "spec": {"model": []}},
        changed(FULL, spec__model__name="\ud800"),
        changed(FULL, spec__gateway__replicas=10**30, spec__model__name=float("nan")),
        changed(FULL, spec__gateway__affinity=DEEP),
    ],
    ids=["empty", "junk", "wrong-parts", "half-a-character", "numbers", "deep"],
)
def test_nothing_that_is_written_breaks_validation_itself(document: dict[str, Any]) -> None:
    """Texts, numbers and depths that JSON or its parser cannot take are problems like others."""
    found = problems(document, old=document)
    assert found
    assert all(problem.message for problem in found)


def test_a_rule_that_needs_a_broken_part_stays_silent() -> None:
    """One mistake gives one problem: rules that cannot read their fields say nothing on top."""
    assert told(spec__limits__maxBody="much") == [
        "spec.limits.maxBody: must be a quantity greater than zero, such as 512Mi or 1Gi, not 'much'"
    ]
    assert len(told(spec__stores__redis="valkey")) == 1
    assert len(told(spec__upstream=GONE)) == 1


def test_rules_that_read_other_parts_still_speak() -> None:
    """A mistake elsewhere does not hide what else is wrong."""
    found = problems(changed(FULL, spec__gateway__replicas="x", spec__routes=[{"name": "a"}, {"name": "a"}]))
    assert {problem.path for problem in found} == {"spec.gateway.replicas", "spec.routes"}


def test_a_problem_names_its_rule() -> None:
    """Pipelines can tell a broken rule from broken structure."""
    (of_rule,) = problems(changed(FULL, spec__layers={}, spec__routes=GONE))
    assert of_rule.rule == "has(self.exact) || has(self.embedding)"
    (of_structure,) = problems(changed(FULL, spec__suspend=1))
    assert of_structure.rule == STRUCTURE


def test_a_path_with_a_dotted_key_stays_readable() -> None:
    """A map's key that holds dots or slashes stands in brackets."""
    location = ("spec", "routes", 3, "nodeSelector", "kubernetes.io/os", "x")
    assert Problem(location, "").path == "spec.routes[3].nodeSelector[kubernetes.io/os].x"


def test_status_is_the_operators_and_never_a_problem() -> None:
    """An exported object may carry any status; the API server ignores it as well."""
    assert problems(changed(FULL, status={"anything": 1})) == []


def test_load_gives_the_object_with_defaults() -> None:
    """The models come filled in, and the status with them."""
    cache = load(changed(MINIMAL, status={"observedGeneration": 3, "endpoint": "http://x"}))
    assert cache.spec.limits.budget.total == "50ms"
    assert cache.status is not None
    assert cache.status.observed_generation == 3


def test_load_survives_a_status_of_another_release() -> None:
    """A status that does not parse is left out: the operator writes a new one."""
    assert load(changed(MINIMAL, status={"conditions": "none"})).status is None


def test_load_lists_every_problem() -> None:
    """The one exception says all that is wrong."""
    with pytest.raises(InvalidSpec) as caught:
        load(changed(FULL, spec__layers={}, spec__suspend="x"))
    assert "spec.layers: layers needs at least one layer" in str(caught.value)
    assert "spec.suspend: must be true or false" in str(caught.value)


def test_fields_that_the_api_server_writes_are_known() -> None:
    """An object as `kubectl get -o yaml` prints it is valid."""
    document = changed(
        EXTERNAL,
        metadata__uid="u",
        metadata__generation=3,
        metadata__creationTimestamp=None,
        metadata__managedFields=[],
        metadata__resourceVersion="5",
    )
    assert problems(document) == []


def test_a_rule_that_gives_no_truth_is_an_error() -> None:
    """An expression that the evaluator cannot finish never counts as held."""
    for rule in ("self.a == 1", "1", "quantity(self).compareTo(quantity('x')) > 0", "nothing(self)"):
        with pytest.raises(RuleNotEvaluable):
            holds(rule, "text")


@pytest.mark.parametrize(
    ("rule", "value", "truth"),
    [
        ("quantity(self).compareTo(quantity('1Ki')) == 0", "1024", True),
        ("quantity(self).isGreaterThan(quantity('1000m'))", "1", False),
        ("quantity(self).isLessThan(quantity('1Ki'))", "1k", True),
        ("isQuantity(self)", "1 Gi", False),
        ("isURL(self)", "http://a/%4g", False),
        ("isURL(self)", "http://[::1]:1/", True),
        ("duration(self) > duration('1h')", "60m1ms", True),
    ],
)
def test_kubernetes_functions(rule: str, value: str, truth: bool) -> None:
    """The functions that Kubernetes adds to CEL do offline what they do there."""
    assert holds(rule, value) is truth
