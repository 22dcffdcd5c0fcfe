"""From what is to be retracted to the counters that are raised."""

from __future__ import annotations

import pytest

from cachewright.errors import InvalidInput
from cachewright.keys.context import Context, Document
from cachewright.keys.digest import ExactQuestion, tenant_tag
from cachewright.keys.generations import Dependence
from cachewright.keys.retraction import Target, TargetKind

KEY = bytes(range(32))
TAG = tenant_tag(KEY, "zoë".encode())
CONTEXT = Context(role="zoë", user="zoë", documents=(Document("zoë"),))
DEPENDENCE = Dependence.of(KEY, TAG, ExactQuestion("/", "", (), {}, CONTEXT), layers=("Exact", "Semantic"))
LAYERS = ("Exact", "Semantic")


@pytest.mark.parametrize("kind", [TargetKind.TENANT, TargetKind.DOCUMENT, TargetKind.ROLE, TargetKind.USER])
def test_answers_depend_on_what_is_raised(kind: TargetKind) -> None:
    """The counter of a name is the one that a request with that name has."""
    assert set(Target(kind, "zoë").counters(KEY, LAYERS)) & set(DEPENDENCE.counters)
    assert not set(Target(kind, "zoe").counters(KEY, LAYERS)) & set(DEPENDENCE.counters)


@pytest.mark.parametrize("kind", [TargetKind.ROLE, TargetKind.USER])
def test_what_came_in_a_header_counts_as_its_bytes(kind: TargetKind) -> None:
    """Gateways keep such bytes one a character."""
    name = "zoë".encode().decode("latin-1")
    context = Context(role=name) if kind is TargetKind.ROLE else Context(user=name)
    dependence = Dependence.of(KEY, TAG, ExactQuestion("/", "", (), {}, context))
    assert set(Target(kind, "zoë").counters(KEY, LAYERS)) & set(dependence.counters)


def test_layers_and_all() -> None:
    """A layer by its name, all by all layers that there are."""
    assert Target(TargetKind.LAYER, "Semantic").counters(KEY, LAYERS) == ("l:Semantic",)
    assert Target(TargetKind.ALL).counters(KEY, LAYERS) == ("l:Exact", "l:Semantic")
    with pytest.raises(InvalidInput, match="Exact, Semantic"):
        Target(TargetKind.LAYER, "exact").counters(KEY, LAYERS)


def test_a_target_shows_no_name() -> None:
    """Neither in logs nor in tracebacks."""
    assert "acme" not in repr(Target(TargetKind.TENANT, "acme"))
