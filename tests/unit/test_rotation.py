"""Keyspaces from one record to the next: bump, retention, rollback, epochs, limits; without a fence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from cachewright.keys.record import KeyspaceState, Record
from cachewright.reconcile.layer_rows import LayerRow
from cachewright.reconcile.rotation import RotationRules, all_deleting, next_record, without_reclaimed
from cachewright.reconcile.serving import Wish, serving
from cachewright.reconcile.workload import WorkloadSeen

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = 3600.0


@dataclass
class Cache:
    """An object with one layer that depends on the model and one that does not."""

    record: Record = field(default_factory=lambda: Record("0123456789abcdef", 0, 0))
    version: str = "1"
    layers: tuple[str, ...] = ("Embedding", "Exact")
    epochs: dict[str, int] = field(default_factory=dict)
    rules: RotationRules = field(default_factory=RotationRules)
    now: datetime = START
    template: int = 0

    def rows(self) -> list[LayerRow]:
        """Return what the spec asks for."""
        ids = {"Exact": f"{int(self.version):015x}{self.template:x}", "Embedding": "e" * 16}
        versions = {"Exact": self.version, "Embedding": None}
        return [
            LayerRow(name, ids[name], f"binding-{name}", versions[name], self.epochs.get(name, 0))
            for name in self.layers
        ]

    def step(self, **changes: object) -> Record:
        """Edit the spec, look once, and return the record then."""
        for name, value in changes.items():
            setattr(self, name, value)
        wish, seen = Wish(self.version, fenced=False), WorkloadSeen()
        served = serving(self.record, wish, seen)
        self.record = next_record(self.record, self.rows(), served, wish, seen, self.rules, self.now)
        return self.record

    def later(self, seconds: float) -> Record:
        """Let time go by, and look again."""
        return self.step(now=self.now + timedelta(seconds=seconds))

    def exact(self) -> int:
        """Return the incarnation in use by the exact layer."""
        return self.record.layers["Exact"].keyspace.incarnation

    def in_state(self, state: KeyspaceState) -> list[int]:
        """Return the incarnations of past keyspaces in one state."""
        return [past.keyspace.incarnation for past in self.record.in_state(state)]


def test_a_bump_moves_what_depends_on_the_model_alone() -> None:
    """The embedding layer keeps its keyspace, and so every vector."""
    cache = Cache()
    first = cache.step()
    second = cache.step(version="2")
    assert second.layers["Embedding"] == first.layers["Embedding"]
    assert second.layers["Exact"].keyspace.incarnation == 3
    assert [past.layer for past in second.past] == ["Exact"]
    assert second.revision == first.revision + 1


def test_a_second_look_changes_nothing() -> None:
    """The machine is level-triggered: the same input gives the same record, and no revision."""
    cache = Cache()
    cache.step()
    before = cache.step(version="2")
    assert cache.step() is before
    assert cache.later(HOUR) is before


def test_what_is_retained_long_enough_is_given_up() -> None:
    """At `until` exactly, and for good."""
    cache = Cache(rules=RotationRules(retain_seconds=HOUR))
    cache.step()
    cache.step(version="2")
    assert cache.record.past[0].until == "2026-11-30T13:00:00Z"
    cache.later(HOUR - 1)
    assert cache.in_state(KeyspaceState.RETAINED) == [2]
    revision = cache.record.revision
    cache.later(1)
    assert cache.in_state(KeyspaceState.DELETING) == [2]
    assert cache.record.revision == revision + 1


def test_a_rollback_brings_the_retained_keyspace_back() -> None:
    """It is the same incarnation, marked as brought back; the one that was in use is retained in turn."""
    cache = Cache()
    cache.step()
    cache.step(version="2")
    cache.later(HOUR)
    cache.step(version="1")
    assert cache.exact() == 2
    assert cache.record.layers["Exact"].rolled_back
    assert cache.record.layers["Exact"].since == "2026-11-30T13:00:00Z"
    assert cache.in_state(KeyspaceState.RETAINED) == [3]
    cache.step(version="2")
    assert cache.exact() == 3


def test_a_rollback_after_the_retention_makes_a_new_incarnation() -> None:
    """What is being deleted never comes back."""
    cache = Cache(rules=RotationRules(retain_seconds=HOUR))
    cache.step()
    cache.step(version="2")
    cache.later(2 * HOUR)
    cache.step(version="1")
    assert cache.exact() == 4
    assert not cache.record.layers["Exact"].rolled_back
    assert cache.in_state(KeyspaceState.DELETING) == [2]


def test_a_rollback_at_the_very_end_of_the_retention_is_too_late() -> None:
    """A keyspace whose time has come in this very look may come back; it is not deleted while in use."""
    cache = Cache(rules=RotationRules(retain_seconds=HOUR))
    cache.step()
    cache.step(version="2")
    cache.step(version="1", now=START + timedelta(hours=1))
    assert cache.exact() == 2
    assert cache.in_state(KeyspaceState.DELETING) == []


def test_ten_versions_in_an_hour_keep_the_latest() -> None:
    """More than `maxRetained` are given up at once, the oldest first; the other layer is not counted."""
    cache = Cache()
    cache.step()
    for number in range(2, 12):
        cache.step(version=str(number))
        cache.later(360)
    assert cache.in_state(KeyspaceState.RETAINED) == [9, 10, 11]
    assert cache.in_state(KeyspaceState.DELETING) == [2, 3, 4, 5, 6, 7, 8]
    cache.step(rules=RotationRules(max_retained=1))
    assert cache.in_state(KeyspaceState.RETAINED) == [11]


def test_without_retention_the_old_keyspace_is_given_up_at_once() -> None:
    """`maxRetained: 0` leaves no way back."""
    cache = Cache(rules=RotationRules(max_retained=0))
    cache.step()
    cache.step(version="2")
    assert cache.in_state(KeyspaceState.DELETING) == [2]


def test_raising_the_epoch_revokes_every_entry_at_once() -> None:
    """In use and retained, of every layer; the same versions go on in new incarnations."""
    cache = Cache()
    cache.step()
    cache.step(version="2")
    cache.step(rules=RotationRules(epoch=1))
    assert sorted(cache.in_state(KeyspaceState.DELETING)) == [1, 2, 3]
    assert [layer.keyspace.incarnation for _, layer in sorted(cache.record.layers.items())] == [4, 5]
    assert cache.record.layers["Exact"].keyspace.id == cache.rows()[1].keyspace_id


def test_lowering_the_epoch_does_nothing_and_raising_it_again_only_beyond_the_highest() -> None:
    """A git revert of the number brings no revoked entry back."""
    cache = Cache()
    cache.step()
    revoked = cache.step(rules=RotationRules(epoch=5))
    assert cache.step(rules=RotationRules(epoch=3)) is revoked
    assert cache.step(rules=RotationRules(epoch=5)) is revoked
    assert cache.step(rules=RotationRules(epoch=6)) is not revoked
    assert cache.record.epochs[""] == 6


def test_a_layers_epoch_revokes_that_layer_alone() -> None:
    """The other layers keep what they have, retained keyspaces included."""
    cache = Cache()
    cache.step()
    cache.step(version="2")
    cache.step(epochs={"Embedding": 1})
    assert cache.in_state(KeyspaceState.DELETING) == [1]
    assert cache.in_state(KeyspaceState.RETAINED) == [2]
    assert cache.exact() == 3


def test_an_epoch_raised_with_a_bump_makes_one_keyspace() -> None:
    """The new version's keyspace is new already; only what was there before is revoked."""
    cache = Cache()
    cache.step()
    cache.step(version="2", rules=RotationRules(epoch=1))
    assert cache.exact() == 3
    assert sorted(cache.in_state(KeyspaceState.DELETING)) == [1, 2]
    assert cache.in_state(KeyspaceState.RETAINED) == []


def test_an_epoch_raised_with_a_rollback_revokes_what_came_back() -> None:
    """A retained keyspace that comes into use in the same look is revoked like all others."""
    cache = Cache()
    cache.step()
    cache.step(version="2")
    cache.step(version="1", rules=RotationRules(epoch=1))
    assert cache.exact() > 3
    assert {2, 3} <= set(cache.in_state(KeyspaceState.DELETING))


def test_a_new_object_may_start_at_any_epoch() -> None:
    """There is nothing to revoke, and the number is remembered."""
    cache = Cache(rules=RotationRules(epoch=7), epochs={"Exact": 2})
    cache.step()
    assert cache.record.past == ()
    assert cache.record.epochs == {"": 7, "Exact": 2}


def test_a_layer_taken_away_is_retained_and_brought_back() -> None:
    """Within the retention its answers are there again; its epoch is not forgotten meanwhile."""
    cache = Cache(epochs={"Exact": 3})
    cache.step()
    cache.step(layers=("Embedding",))
    assert cache.in_state(KeyspaceState.RETAINED) == [2]
    cache.step(layers=("Embedding", "Exact"), epochs={"Exact": 1})
    assert cache.exact() == 2


def test_a_revoked_layer_that_is_away_does_not_come_back() -> None:
    """The object's epoch reaches what is retained of layers that the spec does not name."""
    cache = Cache()
    cache.step()
    cache.step(layers=("Embedding",))
    cache.step(rules=RotationRules(epoch=1))
    cache.step(layers=("Embedding", "Exact"))
    assert cache.exact() == 4


def test_a_change_beside_the_version_is_brought_back_too() -> None:
    """A template or a tenant's header set back is a rollback like any other."""
    cache = Cache()
    cache.step()
    cache.step(template=1)
    assert cache.exact() == 3
    cache.step(template=0)
    assert cache.exact() == 2


def test_what_was_reclaimed_is_forgotten_and_nothing_else() -> None:
    """A report about a keyspace that is retained or in use takes nothing away."""
    cache = Cache()
    cache.step()
    cache.step(version="2")
    cache.step(version="3", rules=RotationRules(max_retained=1))
    everything = set(cache.record.keyspaces())
    after = without_reclaimed(cache.record, everything)
    assert everything - set(after.keyspaces()) == {cache.record.past[0].keyspace}
    assert after.revision == cache.record.revision + 1
    assert after.incarnation == cache.record.incarnation
    assert without_reclaimed(after, everything) is after


def test_all_is_given_up_with_the_object() -> None:
    """Nothing stays in use or retained."""
    cache = Cache()
    cache.step()
    cache.step(version="2")
    given_up = all_deleting(cache.record, cache.now)
    assert given_up.layers == {}
    assert {past.state for past in given_up.past} == {KeyspaceState.DELETING}
    assert set(given_up.keyspaces()) == set(cache.record.keyspaces())


def test_a_damaged_end_of_retention_counts_as_over() -> None:
    """What cannot be read keeps nothing alive."""
    cache = Cache()
    cache.step()
    cache.step(version="2")
    past = replace(cache.record.past[0], until="soon")
    cache.record = replace(cache.record, past=(past,))
    cache.step()
    assert cache.in_state(KeyspaceState.DELETING) == [2]
