"""Random objects, sound and damaged: offline validation and a real API server must say the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cachewright.crd.validation import problems
from tests.api.admin import Admin
from tests.api.documents import Document
from tests.api.random_objects import damaged_objects, mended, objects

pytestmark = pytest.mark.api


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(document=st.one_of(objects(), objects().map(mended), damaged_objects()))
def test_both_take_or_refuse_an_object(document: Document, admin: Admin) -> None:
    """No random object is taken by one and refused by the other."""
    answer = admin.create(document, dry_run=True)
    found = problems(document)
    assert answer.accepted == (not found), (answer.message, found)
