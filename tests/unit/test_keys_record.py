"""The record as JSON: what one release wrote, every later one reads to the same keyspaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachewright.errors import InvalidDocument
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, LayerRecord, PastKeyspace, Record, Waiting

GOLDEN = Path(__file__).parent.parent / "golden/record"

RECORD = Record(
    cache_id="0123456789abcdef",
    revision=12,
    incarnation=5,
    layers={
        "Embedding": LayerRecord(Keyspace("b" * 16, 2), "binding-e", "2026-11-28T10:00:00Z"),
        "Exact": LayerRecord(
            Keyspace("a" * 16, 5),
            "binding",
            "2026-11-30T12:00:00Z",
            KeyspaceState.READONLY,
            model_version="2026-11-28",
            workload="feed" * 4,
            rolled_back=True,
        ),
    },
    immutable={"stores.redis": "external"},
    past=(
        PastKeyspace(
            "Exact",
            Keyspace("c" * 16, 3),
            "binding",
            KeyspaceState.DELETING,
            "2026-11-27T12:00:00Z",
            "2026-11-28T12:00:00Z",
            "2026-10-01",
            "cafe" * 4,
        ),
        PastKeyspace(
            "Exact",
            Keyspace("d" * 16, 4),
            "binding",
            KeyspaceState.RETAINED,
            "2026-11-30T12:00:00Z",
            "2026-12-01T12:00:00Z",
            "2026-10-30",
            "cafe" * 4,
        ),
    ),
    epochs={"": 2, "Exact": 7},
    waiting=Waiting("2026-11-29", "2026-11-30T12:30:00Z", ("beef" * 4,)),
    fenced=True,
    heartbeat_seconds=600,
)


def test_the_json_is_frozen() -> None:
    """Gateways and operators of different releases meet in this text."""
    assert json.loads(RECORD.to_json()) == json.loads((GOLDEN / "format-2.json").read_text())


def test_what_was_written_is_read_again() -> None:
    """Every part of the record survives."""
    assert Record.from_json(RECORD.to_json()) == RECORD


def test_a_record_without_states_is_read_as_active() -> None:
    """Format 1 had neither states nor fences: what it lists is in use, under the same names."""
    record = Record.from_json((GOLDEN / "format-1.json").read_text())
    assert record.layers["Exact"] == LayerRecord(Keyspace("a" * 16, 5), "binding", "2026-11-30T12:00:00Z")
    assert not record.fenced
    assert record.past == ()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("format", 3),
        ("layers", {"Exact": {"keyspace": "a" * 16 + "-1", "binding": "", "since": "", "state": "retained"}}),
        ("layers", {"Exact": {"keyspace": "a" * 16 + "-1", "binding": "", "since": "", "state": "new"}}),
        ("layers", {"Exact": {"keyspace": "a", "binding": "", "since": ""}}),
        ("past", [{"layer": "Exact"}]),
        ("past", [{**json.loads(RECORD.to_json())["past"][0], "state": "active"}]),
        ("waiting", {"version": "1"}),
        ("revision", "x"),
        ("epochs", {"": "x"}),
    ],
)
def test_what_is_no_record_is_refused(part: str, value: object) -> None:
    """A state that does not belong there, a damaged name or an unknown format: nothing is guessed."""
    document = {**json.loads(RECORD.to_json()), part: value}
    with pytest.raises(InvalidDocument):
        Record.from_json(json.dumps(document))


def test_keyspaces_in_use_and_past_are_all_listed() -> None:
    """So that none of their names is given again."""
    assert [keyspace.incarnation for keyspace in RECORD.keyspaces()] == [2, 5, 3, 4]
    assert [past.keyspace.incarnation for past in RECORD.in_state(KeyspaceState.DELETING)] == [3]
