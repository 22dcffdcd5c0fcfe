"""Events are said once, never fail a pass, and fit into the API's limits."""

from datetime import UTC, datetime, timedelta

import pytest

from cachewright.errors import KubeForbidden
from cachewright.kube import events as events_module
from cachewright.kube.events import KubeEvents
from cachewright.kube.memory import MemoryKube, Place
from cachewright.kube.protocol import EVENTS, Manifest

CACHE: Manifest = {
    "apiVersion": "cachewright.dev/v1alpha1",
    "kind": "InferenceCache",
    "metadata": {"name": "demo", "namespace": "ns", "uid": "uid-1", "resourceVersion": "7"},
}


class Bench:
    """A sink, the API behind it, and a clock."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        self.now = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
        self.sink = self.restart()

    def restart(self) -> KubeEvents:
        """Begin anew with nothing remembered."""
        self.sink = KubeEvents(self.kube, "pod-1", lambda: self.now)
        return self.sink

    async def written(self) -> list[tuple[str, str, str]]:
        """Return type, reason and note of all Events."""
        found = await self.kube.list(EVENTS, "ns")
        return sorted((each["type"], each["reason"], each["note"]) for each in found)


@pytest.fixture
def bench() -> Bench:
    """Nothing was said yet."""
    return Bench()


async def test_a_warning_is_said_once_until_it_changes(bench: Bench) -> None:
    """A hundred passes with the same trouble write one Event; another message writes another."""
    for _ in range(100):
        await bench.sink.warn(CACHE, "SecretNotFound", "Secret a is missing.")
    assert len(bench.kube.writes) == 1
    await bench.sink.warn(CACHE, "SecretNotFound", "Secret b is missing.")
    await bench.sink.warn(CACHE, "NameConflict", "Service demo-redis is not ours.")
    assert await bench.written() == [
        ("Warning", "NameConflict", "Service demo-redis is not ours."),
        ("Warning", "SecretNotFound", "Secret a is missing."),
        ("Warning", "SecretNotFound", "Secret b is missing."),
    ]


async def test_a_restarted_operator_does_not_repeat_itself(bench: Bench) -> None:
    """The name of an Event is made of what it says, so the API server refuses the second one."""
    await bench.sink.warn(CACHE, "SecretNotFound", "Secret a is missing.")
    bench.now += timedelta(minutes=10)
    await bench.restart().warn(CACHE, "SecretNotFound", "Secret a is missing.")
    assert len(await bench.written()) == 1


async def test_trouble_that_returns_is_said_again(bench: Bench) -> None:
    """After it went well in between, and once the first Event has aged."""
    await bench.sink.warn(CACHE, "StoreUnreachable", "The store is down.")
    await bench.sink.normal(CACHE, "Ready", "All is well.")
    bench.now += timedelta(hours=2)
    await bench.sink.warn(CACHE, "StoreUnreachable", "The store is down.")
    assert [each[:2] for each in await bench.written()] == [
        ("Normal", "Ready"),
        ("Warning", "StoreUnreachable"),
        ("Warning", "StoreUnreachable"),
    ]


async def test_objects_of_the_same_name_are_different_objects(bench: Bench) -> None:
    """What was said about a deleted object is no reason to be silent about its successor."""
    await bench.sink.warn(CACHE, "SecretNotFound", "Secret a is missing.")
    successor = {**CACHE, "metadata": {**CACHE["metadata"], "uid": "uid-2"}}
    await bench.sink.warn(successor, "SecretNotFound", "Secret a is missing.")
    assert len(await bench.written()) == 2


async def test_an_event_that_cannot_be_written_fails_nothing(bench: Bench) -> None:
    """A missing right or a namespace that is going away costs the Event, not the pass."""

    def refuse(verb: str, place: Place) -> None:
        raise KubeForbidden(f"{verb} {place}: Forbidden")

    bench.kube.before_write = refuse
    await bench.sink.warn(CACHE, "SecretNotFound", "Secret a is missing.")
    assert await bench.written() == []


async def test_a_long_message_is_cut_at_a_character(bench: Bench) -> None:
    """The API server takes 1,024 bytes; the cut leaves valid text."""
    await bench.sink.warn(CACHE, "ApplyFailed", "ü" * 2000)
    ((_, _, note),) = await bench.written()
    assert note == "ü" * 512


async def test_memory_of_what_was_said_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that come and go do not fill the process."""
    monkeypatch.setattr(events_module, "REMEMBERED", 3)
    for number in range(10):
        cache = {**CACHE, "metadata": {**CACHE["metadata"], "uid": f"uid-{number}"}}
        await bench.sink.warn(cache, "SecretNotFound", "Secret a is missing.")
    assert len(bench.sink._said) == 3
