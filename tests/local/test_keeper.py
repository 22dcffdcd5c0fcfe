"""The keeper's clock: retained keyspaces are given up when their time is over, with no edit at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from cachewright.crd.validation import load
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState
from cachewright.local.declared import Declared, Source
from cachewright.local.edition import Edition, UpstreamChoice
from cachewright.local.keeper import Keeper, is_due
from cachewright.local.state_folder import StateFolder
from cachewright.stores.reclaim import ReclaimReport, ReclaimState
from tests.local.harness import QUICKSTART

STORE = "memory://"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the moment."""
        return self.now


def declared(*, epoch: int = 0, **model: Any) -> Declared:
    """Return the quickstart with another model."""
    document = deepcopy(yaml.safe_load(QUICKSTART.read_text()))
    document["spec"]["model"].update(model)
    document["spec"]["epoch"] = epoch
    return Declared(load(document), document)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands at noon."""
    return Clock()


@pytest.fixture
def keeper(tmp_path: Path, clock: Clock) -> Iterator[Keeper]:
    """A keeper of a manifest that nobody edits."""
    state = StateFolder.open(tmp_path / "state")
    source = Source(lambda _: declared(), lambda: (), "cache.yaml")
    yield Keeper(source, (), state, UpstreamChoice("http://127.0.0.1:1/v1", is_stand_in=True), clock)
    state.close()


def test_time_alone_is_due_only_when_a_retention_ends(keeper: Keeper, clock: Clock) -> None:
    """Until then nothing is to be done, and from then on the keyspace is given up for ever."""
    keeper.take(declared(), STORE)
    record = keeper.take(declared(version="2"), STORE).record
    assert not is_due(record, clock.now + timedelta(hours=23, minutes=59))
    assert is_due(record, clock.now + timedelta(hours=24))
    clock.now += timedelta(hours=24)
    (past,) = keeper.take(declared(version="2"), STORE).record.past
    assert past.state is KeyspaceState.DELETING
    again = keeper.take(declared(), STORE).record
    assert again.layers["Exact"].keyspace.id == past.keyspace.id
    assert again.layers["Exact"].keyspace.incarnation == 3


async def test_a_keyspace_that_is_gone_is_forgotten(keeper: Keeper) -> None:
    """Once the janitor reports that nothing is left of it, the record names it no more, for good."""
    keeper.take(declared(), STORE)
    record = keeper.take(declared(epoch=1), STORE).record
    (past,) = record.past
    reports: dict[Keyspace, ReclaimReport] = {past.keyspace: ReclaimReport(ReclaimState.RUNNING, 5)}
    told: asyncio.Queue[str] = asyncio.Queue()

    async def enact(edition: Edition) -> None:
        assert edition.record.revision == record.revision + 1

    following = asyncio.create_task(keeper.follow(STORE, told.put_nowait, enact, lambda: reports))
    reports[past.keyspace] = ReclaimReport(ReclaimState.DONE, 7)
    news = await asyncio.wait_for(told.get(), 10)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert f"keyspace {past.keyspace} is gone" in news
    assert "after 7 keys" in news
    assert keeper.edition.record.past == ()


async def test_the_end_of_a_retention_is_told_once_it_holds(keeper: Keeper, clock: Clock) -> None:
    """`follow` sees it by itself, and tells it after the gateway enacted it."""
    keeper.take(declared(), STORE)
    keeper.take(declared(version="2"), STORE)
    told: asyncio.Queue[str] = asyncio.Queue()
    enacted: list[int] = []

    async def enact(edition: Edition) -> None:
        enacted.append(edition.record.revision)

    following = asyncio.create_task(keeper.follow(STORE, told.put_nowait, enact))
    clock.now += timedelta(days=2)
    news = await asyncio.wait_for(told.get(), 10)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert "-1 (version 1) is no longer retained and is deleted" in news
    assert enacted == [3]
    assert keeper.edition.record.layers["Exact"].model_version == "2"
