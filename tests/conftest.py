"""What every tier shares: golden files, slow servers, and how long `make soak` lets hypothesis search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.postgres_servers import PostgresServer, run_postgres
from tests.support.qdrant_servers import GivenServer, QdrantServer, given_server, run_qdrant

GOLDEN = Path(__file__).parent / "golden"

CompareGolden = Callable[[str, str], None]

# A machine that is busy with others is no failure, neither of what is tested nor of what draws its input.
settings.register_profile("usual", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("usual")
settings.register_profile(
    "soak", max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that accepts what the code renders now."""
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing")
    parser.addoption("--crowd", default=2000, type=int, help="entries of others in tests of vector stores")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> CompareGolden:
    """Compare a text with a file below tests/golden/, or write the file under `--update-golden`."""

    def compare(path: str, text: str) -> None:
        file = GOLDEN / path
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        assert file.exists(), f"{file} is missing; run pytest --update-golden and read what it wrote"
        assert text == file.read_text(), f"{file} differs; if that is meant, run pytest --update-golden"

    return compare


@pytest.fixture(scope="session")
def qdrant() -> Iterator[QdrantServer | GivenServer]:
    """Give a Qdrant server that tests share: the stand-in, or the real one that the environment names."""
    if (given := given_server()) is not None:
        yield given
        return
    with run_qdrant() as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Give a PostgreSQL server with pgvector that tests share."""
    with run_postgres() as running:
        yield running
