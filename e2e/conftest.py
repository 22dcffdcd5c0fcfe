"""One installation of the chart on a real node for the whole run, and a namespace for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from e2e.installation import Installation
from e2e.kubectl import Kubectl
from e2e.workspace import Workspace, operator_metric

_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a person ask for more of the tests of rotation."""
    parser.addoption(
        "--gaps", default="0", help="seconds between bump and roll-out, such as 0,5,60 (default: 0)"
    )
    parser.addoption(
        "--least-rate", default="100", help="answers in a second during roll-outs (default: 100)"
    )
    parser.addoption(
        "--truth-seconds",
        default="30",
        help="until status must tell of a store's pod that went or came (default: 30; promised: 10)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that take a `gap` with each that was asked for."""
    if "gap" in metafunc.fixturenames:
        metafunc.parametrize("gap", [float(gap) for gap in metafunc.config.getoption("--gaps").split(",")])


@pytest.fixture(scope="session")
def installation() -> Iterator[Installation]:
    """Bring the cluster up and the chart on it; afterwards no request of the operator was ever forbidden."""
    made = Installation.start()
    made.install("replicas=2")
    yield made
    forbidden = operator_metric(made.kubectl, "cachewright_kube_requests_total", 'code="403"')
    assert forbidden == 0, f"{forbidden} requests of the operator were forbidden: its role lacks a right"


@pytest.fixture
def kubectl(installation: Installation) -> Kubectl:
    """Reach the cluster as administrator."""
    return installation.kubectl


@pytest.fixture
def workspace(installation: Installation, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Make a namespace with the stand-in engine in it; it is deleted afterwards."""
    name = f"e2e-{next(_numbers)}"
    made = Workspace(installation, installation.kubectl.within(name))
    made.create()
    yield made
    failed = getattr(request.node, "failed", False)
    if failed:
        print(made.describe())
    made.kubectl.run("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Let fixtures see that their test failed."""
    report = yield
    if call.when == "call" and report.failed:  # type: ignore[attr-defined]
        item.failed = True  # type: ignore[attr-defined]
    return report
