"""Fixtures of the chart's tests."""

from __future__ import annotations

import pytest

from e2e.cluster import binaries
from tests.chart.helm import Helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    """Build a real Helm from its pinned module where it is not there yet."""
    return Helm(binaries.path("helm"))
