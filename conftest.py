"""For every tier: a skipped test fails the run, since what is skipped shows nothing."""

from __future__ import annotations

from collections.abc import Generator

import pytest

_SKIPPED = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with no skipped test."""
    config.stash[_SKIPPED] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember each skipped test, whether a mark or its own code skipped it."""
    report = yield
    if report.skipped:
        item.config.stash[_SKIPPED].append(item.nodeid)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which something was skipped."""
    if session.config.stash[_SKIPPED] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say why such a run failed."""
    for nodeid in config.stash[_SKIPPED]:
        terminalreporter.write_line(f"skipped, which counts as a failure here: {nodeid}", red=True)
