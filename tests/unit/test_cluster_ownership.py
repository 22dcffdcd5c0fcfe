"""What the test cluster may touch: only what its own record or mark says it made."""

import ipaddress
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster import clusters, state
from e2e.cluster.errors import ClusterError
from e2e.cluster.node.network import SLOTS, Network
from e2e.cluster.state import State

PutCommand = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEWRIGHT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def put_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PutCommand:
    """Return a function that puts a shell script in front of PATH and returns the log of its calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, script: str) -> Path:
        log = tmp_path / f"{name}.log"
        log.touch()
        (folder / name).write_text(f'#!/bin/sh\necho "$*" >> "{log}"\n{script}\n')
        (folder / name).chmod(0o755)
        return log

    return put


@pytest.mark.parametrize("name", ["", "Upper", "a_b", "-a", "a-", "../a", "a" * 21])
def test_a_name_that_could_leave_the_cache_folder_is_refused(name: str) -> None:
    """Names become folders, groups and containers, so they are held to what all of those take."""
    with pytest.raises(ClusterError, match="is no cluster name"):
        state.folder_of(name)


def test_a_record_is_read_back_as_written() -> None:
    """What one command writes, the next one knows."""
    written = State("some", "context", context="theirs")
    written.save()
    assert state.load("some") == written
    assert state.load_all() == [written]
    assert state.load("other") is None


@pytest.mark.parametrize(("provider", "context"), [("context", ""), ("node", "theirs"), (None, "theirs")])
def test_a_context_is_used_only_when_provider_and_name_are_given(
    provider: state.ProviderName | None, context: str
) -> None:
    """Nobody's current context becomes the test cluster by accident."""
    with pytest.raises(ClusterError, match="belong together"):
        clusters.up("some", provider, context)


def test_another_provider_does_not_replace_a_recorded_cluster() -> None:
    """A cluster is taken down by name, not by asking for another."""
    State("some", "context", context="theirs").save()
    with pytest.raises(ClusterError, match="cluster some is of provider context"):
        clusters.up("some", "node")


def test_a_kind_cluster_that_was_not_made_here_is_refused(put_command: PutCommand) -> None:
    """One of our name but without our record belongs to somebody else: neither used nor deleted."""
    put_command("docker", "exit 0")
    calls = put_command("kind", 'test "$1" = get && echo cachewright-some')
    with pytest.raises(ClusterError, match="was not made here"):
        clusters.up("some", "kind")
    assert clusters.down("some", everything=True) is False
    assert set(calls.read_text().splitlines()) == {"get clusters"}


def test_kind_is_chosen_where_docker_answers(put_command: PutCommand) -> None:
    """Without being asked for, kind makes a cluster of our own name, kubeconfig and record."""
    put_command("docker", "exit 0")
    calls = put_command("kind", "exit 0")
    made = clusters.up("some")
    assert made.state == State("some", "kind")
    create = f"create cluster --wait=180s --name=cachewright-some --kubeconfig={made.state.kubeconfig}"
    assert create in calls.read_text().splitlines()


def test_no_two_nodes_share_an_address() -> None:
    """Nodes of all slots can run side by side, and none uses a range twice."""
    ranges = [
        ipaddress.ip_network(text)
        for network in map(Network, range(SLOTS))
        for text in (network.pods, network.services, f"{network.node_ip}/30")
        for text in (str(ipaddress.ip_interface(text).network),)
    ]
    overlaps = [(a, b) for i, a in enumerate(ranges) for b in ranges[i + 1 :] if a.overlaps(b)]
    assert overlaps == []
    assert len({Network(slot).link for slot in range(SLOTS)}) == SLOTS
    assert all(len(Network(slot).link) <= 15 for slot in range(SLOTS)), "the kernel's limit for a link's name"
