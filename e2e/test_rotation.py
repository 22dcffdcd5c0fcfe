"""Rotation as users see it: the engine is rolled under traffic, and no answer ever crosses versions.

8 clients ask 240 times a second through 2 gateways, an engine of three pods that end slowly. On a quiet
machine `--gaps=0,5,60 --least-rate=200` is the whole of it; without, bump and roll-out come at once, and
fewer answers a second are enough.
"""

from __future__ import annotations

import pytest

from e2e.rollouts import DRAIN_SECONDS, REPLICAS, Rollouts
from e2e.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture
def least_rate(request: pytest.FixtureRequest) -> float:
    """Answers in a second that must have been given."""
    return float(request.config.getoption("--least-rate"))


@pytest.fixture
def rollouts(workspace: Workspace, least_rate: float) -> Rollouts:
    """Version 1 of the engine, and a cache fenced by its pods."""
    made = Rollouts(workspace, least_rate)
    made.begin("1")
    return made


@pytest.mark.parametrize("first", ["bump", "workload"])
def test_a_new_version_and_its_rollout_in_either_order(rollouts: Rollouts, first: str, gap: float) -> None:
    """Whichever comes first and however far apart, answers of both versions stay apart."""
    steps = [rollouts.bump, rollouts.roll]
    if first == "workload":
        steps.reverse()
    with rollouts.under_traffic() as story:
        steps[0]("2")
        story.go_on(gap)
        steps[1]("2")
        done = story.wait_for("True/Switched", version="2")
        assert rollouts.pods() == {"2": REPLICAS}
        story.go_on(5)
    story.check(done, "2")
    assert len(story.check_stored()) == 2


def test_an_unannounced_rollout_is_fenced_until_it_is_told(rollouts: Rollouts) -> None:
    """Old answers are read on and nothing is written; the bump that follows switches at once."""
    with rollouts.under_traffic() as story:
        rollouts.roll("2")
        story.wait_for("False/WorkloadChanged")
        story.wait_for_pods(v2=REPLICAS)
        story.go_on(DRAIN_SECONDS)
        before = story.check_stored()
        story.go_on(2)
        assert story.check_stored() == before, "something was written behind the fence"
        rollouts.bump("2")
        done = story.wait_for("True/Switched", version="2")
        story.go_on(5)
    story.check(done, "2")
    assert len(story.check_stored()) == 2


def test_a_rollout_that_is_turned_round_in_the_middle(rollouts: Rollouts) -> None:
    """A to B to A before B was complete: A's keyspace is still in use, unmixed, and written again."""
    keyspace = rollouts.workspace.keyspace()
    with rollouts.under_traffic() as story:
        rollouts.bump("2")
        rollouts.roll("2")
        story.wait_for("False/WaitingForWorkload")
        story.load.wait_until_said_by("2")
        rollouts.bump("1")
        rollouts.roll("1")
        story.wait_for_pods(v1=REPLICAS)
        done = story.watch.wait_until(
            "writes allowed again", lambda state: state.said("RotationComplete").startswith("True/")
        )
        story.go_on(5)
    story.check(done, "1")
    assert set(story.check_stored()) == {keyspace}


def test_a_rollback_brings_the_answers_back(rollouts: Rollouts) -> None:
    """A to B, complete, and back to A: the first repeated question after it is a hit of A's."""
    keyspace = rollouts.workspace.keyspace()
    with rollouts.under_traffic() as story:
        rollouts.bump("2")
        rollouts.roll("2")
        story.wait_for("True/Switched", version="2")
        story.go_on(2)
        rollouts.bump("1")
        rollouts.roll("1")
        done = story.wait_for("True/RolledBack", version="1")
        story.go_on(5)
    story.check(done, "1")
    assert rollouts.workspace.keyspace() == keyspace
    repeated = [each for each in story.load.since(done.at) if each.question.startswith("asked all the time")]
    assert repeated[0].is_hit
    assert len(story.check_stored()) == 2


@pytest.mark.parametrize("annotated", [True, False])
def test_auto_follows_the_workload(workspace: Workspace, least_rate: float, annotated: bool) -> None:
    """With `version: Auto` a roll-out is all it takes."""
    rollouts = Rollouts(workspace, least_rate, annotated)
    rollouts.begin("Auto")
    with rollouts.under_traffic() as story:
        before = rollouts.workspace.keyspace()
        rollouts.roll("2")
        done = story.watch.wait_until(
            "a new keyspace",
            lambda state: (
                state.keyspace not in {"", before} and state.said("RotationComplete") == "True/Switched"
            ),
            240,
        )
        story.go_on(5)
    story.check(done, "2")
    stored = story.check_stored(named=annotated)
    assert len(stored) == 2
