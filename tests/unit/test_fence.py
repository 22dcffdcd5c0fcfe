"""The fence: what pods run decides what may be written, and when a new version is switched to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from cachewright.keys.record import KeyspaceState, Record
from cachewright.reconcile.layer_rows import LayerRow
from cachewright.reconcile.rotation import RotationRules, next_record
from cachewright.reconcile.serving import AUTO, Wish, serving
from cachewright.reconcile.workload import WorkloadSeen, identity_of_version

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def pods(*identities: str) -> WorkloadSeen:
    """Return a look at pods, one for each identity given; `=v` is a pod annotated with version v."""
    counts: dict[str, int] = {}
    versions: dict[str, str] = {}
    for name in identities:
        identity = identity_of_version(name[1:]) if name.startswith("=") else name
        counts[identity] = counts.get(identity, 0) + 1
        if name.startswith("="):
            versions[identity] = name[1:]
    return WorkloadSeen(counts, versions)


@dataclass
class Cache:
    """One layer that depends on the model, and one that does not, before a workload."""

    seen: WorkloadSeen = field(default_factory=lambda: pods("A", "A"))
    version: str = "1"
    fenced: bool = True
    serves: tuple[str, str] = ("", "")
    rules: RotationRules = field(default_factory=RotationRules)
    record: Record = field(default_factory=lambda: Record("0123456789abcdef", 0, 0))
    now: datetime = START

    def step(self, *identities: str, **changes: object) -> None:
        """Let the pods be these, if any are given, edit the spec, and look once."""
        if identities:
            self.seen = pods(*identities)
        for name, value in changes.items():
            setattr(self, name, value)
        wish = Wish(self.version, self.fenced, self.serves)
        served = serving(self.record, wish, self.seen)
        rows = [LayerRow("Embedding", "e" * 16, "binding", None)]
        if served.version:
            name = f"{hash_of(served.version):016x}"
            rows.append(LayerRow("Exact", name, "binding", served.version))
        before = self.record
        self.record = next_record(before, rows, served, wish, self.seen, self.rules, self.now)
        again = next_record(self.record, rows, served, wish, self.seen, self.rules, self.now)
        assert again is self.record

    @property
    def state(self) -> str:
        """Version, incarnation and state of the exact layer."""
        layer = self.record.layers["Exact"]
        return f"{layer.model_version} #{layer.keyspace.incarnation} {layer.state}"

    def waits(self) -> bool:
        """Whether a version waits for the workload."""
        return self.record.waiting is not None


def hash_of(version: str) -> int:
    """Give each version a number of its own."""
    return int.from_bytes(version.encode()[:8], "big")


@pytest.fixture
def cache() -> Cache:
    """Version 1, served by pods that run A."""
    made = Cache()
    made.step()
    assert made.state == "1 #2 active"
    return made


def test_pods_that_differ_allow_reading_alone(cache: Cache) -> None:
    """From the first other pod on, and until the last one is gone; what needs no model stays writable."""
    for seen in (("A", "B"), ("B", "B", "A"), ("B",)):
        cache.step(*seen)
        assert cache.state == "1 #2 readonly"
        assert cache.record.layers["Embedding"].state is KeyspaceState.ACTIVE
    cache.step("A")
    assert cache.state == "1 #2 active"


def test_each_change_of_permission_is_a_new_revision(cache: Cache) -> None:
    """So that what began under the old one is not written under the new one."""
    revisions = [cache.record.revision]
    for seen in ("A", "B"), ("A",), ("A", "A"), ("B",):
        cache.step(*seen)
        revisions.append(cache.record.revision)
    first = revisions[0]
    assert revisions == [first, first + 1, first + 2, first + 2, first + 3]


def test_no_pod_allows_no_writing(cache: Cache) -> None:
    """The next pod to come may run anything."""
    cache.step(seen=pods())
    assert cache.state == "1 #2 readonly"
    cache.step("A")
    assert cache.state == "1 #2 active"


def test_a_bump_before_the_workload_waits_for_every_pod(cache: Cache) -> None:
    """Old answers are stored as long as all pods are old, none while they differ, new ones from then on."""
    cache.step(version="2")
    assert cache.state == "1 #2 active"
    assert cache.waits()
    cache.step("A", "B")
    assert cache.state == "1 #2 readonly"
    cache.step("B", "B")
    assert cache.state == "2 #3 active"
    assert cache.record.layers["Exact"].workload == "B"
    assert not cache.waits()
    assert [past.workload for past in cache.record.past] == ["A"]


def test_a_workload_before_the_bump_stores_nothing_until_it_comes(cache: Cache) -> None:
    """The bump then takes effect at once."""
    cache.step("A", "B")
    cache.step("B")
    assert cache.state == "1 #2 readonly"
    cache.step(version="2")
    assert cache.state == "2 #3 active"


def test_there_and_back_again_in_the_middle(cache: Cache) -> None:
    """A to B to A with the version bumped and set back: nothing was switched, and writes resume."""
    cache.step("A", "B", version="2")
    cache.step(version="1")
    cache.step("A", "B", "A")
    assert cache.state == "1 #2 readonly"
    assert not cache.waits()
    cache.step("A")
    assert cache.state == "1 #2 active"


def test_a_rollback_waits_for_the_pods_that_made_the_keyspace(cache: Cache) -> None:
    """Then its answers are there again; other pods get a new keyspace of the same id."""
    cache.step("B", version="2")
    cache.step(version="1")
    assert cache.state == "2 #3 active"
    cache.step("B", "A")
    assert cache.state == "2 #3 readonly"
    cache.step("A")
    assert cache.state == "1 #2 active"
    assert cache.record.layers["Exact"].rolled_back


def test_a_rollback_to_other_pods_makes_a_new_incarnation(cache: Cache) -> None:
    """A retained keyspace comes back only for the identity that it was made under."""
    old = cache.record.layers["Exact"].keyspace
    cache.step("B", version="2")
    cache.step("C", version="1")
    assert cache.state == "1 #4 active"
    assert cache.record.layers["Exact"].keyspace.id == old.id
    assert {past.keyspace.incarnation for past in cache.record.past} == {2, 3}


def test_an_identity_of_another_version_is_no_evidence(cache: Cache) -> None:
    """Pods that are rolled back to what version 1 was made by do not speak for version 3."""
    cache.step("B", version="2")
    cache.step("A", version="3")
    assert cache.state == "2 #3 readonly"
    cache.step(serves=("A", "3"))
    assert cache.state == "3 #4 active"


def test_what_ran_while_another_version_was_waited_for_is_no_evidence(cache: Cache) -> None:
    """It may be that one's; the next new identity is evidence again."""
    cache.step("A", "B", version="2")
    cache.step(version="3")
    cache.step("B")
    assert cache.state == "1 #2 readonly"
    cache.step("C")
    assert cache.state == "3 #3 active"


def test_a_person_may_vouch_for_pods_that_look_the_same(cache: Cache) -> None:
    """Weights replaced in place: the annotation names identity and version, and speaks for nothing else."""
    cache.step(version="2", serves=("A", "1"))
    assert cache.state == "1 #2 active"
    cache.step(serves=("A", "2"))
    assert cache.state == "2 #3 active"
    cache.step(version="3")
    assert cache.state == "2 #3 active"


def test_a_person_may_vouch_for_pods_that_look_different(cache: Cache) -> None:
    """A mended image: the keyspace goes on, bound to the new identity."""
    cache.step("B", serves=("B", "2"))
    assert cache.state == "1 #2 readonly"
    cache.step(serves=("B", "1"))
    assert cache.state == "1 #2 active"
    cache.step("A")
    assert cache.state == "1 #2 readonly"


def test_annotated_pods_speak_for_themselves(cache: Cache) -> None:
    """The annotation on the pods is enough, first for the version in use, then for the next."""
    cache.step("=1")
    assert cache.state == "1 #2 active"
    cache.step("=3", version="2")
    assert cache.state == "1 #2 readonly"
    cache.step("=2")
    assert cache.state == "2 #3 active"


def test_a_raised_epoch_waits_for_nothing(cache: Cache) -> None:
    """Everything is revoked at once, while pods differ and a version waits; the wait goes on."""
    cache.step("A", "B", version="2")
    cache.step(rules=RotationRules(epoch=1))
    assert cache.state == "1 #4 readonly"
    assert {past.state for past in cache.record.past} == {KeyspaceState.DELETING}
    cache.step("B")
    assert cache.state == "2 #5 active"


def test_a_new_cache_binds_to_the_first_pods_that_are_alike() -> None:
    """Until then nothing is written."""
    cache = Cache(seen=pods())
    cache.step()
    assert cache.state == "1 #2 readonly"
    cache.step("A", "B")
    assert cache.state == "1 #2 readonly"
    cache.step("B")
    assert cache.state == "1 #2 active"


def test_a_bump_before_the_first_pod_leaves_nothing_to_retain() -> None:
    """What was never bound was never written."""
    cache = Cache(seen=pods())
    cache.step()
    cache.step("A", version="2")
    assert cache.state == "2 #3 active"
    assert [past.state for past in cache.record.past] == [KeyspaceState.DELETING]


def test_a_fence_that_comes_with_a_bump_takes_what_runs_for_the_old_version() -> None:
    """The pods that filled the keyspace so far run still."""
    cache = Cache(fenced=False)
    cache.step()
    assert cache.state == "1 #2 active"
    cache.step("A", fenced=True, version="2")
    assert cache.state == "1 #2 active"
    assert cache.record.layers["Exact"].workload == "A"
    cache.step("B")
    assert cache.state == "2 #3 active"


def test_taking_the_fence_away_switches_at_once(cache: Cache) -> None:
    """Also what waited, and whatever runs."""
    cache.step("A", "B", version="2")
    cache.step(fenced=False)
    assert cache.state == "2 #3 active"
    assert cache.record.layers["Exact"].workload == ""
    assert not cache.record.fenced
    assert cache.record.heartbeat_seconds == 0


def test_a_fenced_record_asks_for_a_heartbeat(cache: Cache) -> None:
    """For as long as the rules say."""
    assert cache.record.fenced
    assert cache.record.heartbeat_seconds == 600
    cache.step(rules=RotationRules(heartbeat_seconds=60))
    assert cache.record.heartbeat_seconds == 60


def test_auto_follows_the_pods() -> None:
    """Each identity is a version of its own, and comes back with its keyspace."""
    cache = Cache(seen=pods(), version=AUTO)
    cache.step()
    assert "Exact" not in cache.record.layers
    cache.step("A")
    assert cache.state == "A #2 active"
    cache.step("A", "B")
    assert cache.state == "A #2 readonly"
    cache.step("B")
    assert cache.state == "B #3 active"
    cache.step("A")
    assert cache.state == "A #2 active"
    assert not cache.waits()


def test_auto_takes_the_annotation_for_the_version() -> None:
    """So that naming the same version by hand later changes nothing."""
    cache = Cache(seen=pods("=v7"), version=AUTO)
    cache.step()
    assert cache.state == "v7 #2 active"
    cache.step(version="v7")
    assert cache.state == "v7 #2 active"


def test_turning_auto_on_rotates_nothing(cache: Cache) -> None:
    """What is in use keeps its version while the pods stay, and has it again when they come back."""
    cache.step(version=AUTO)
    assert cache.state == "1 #2 active"
    cache.step("B")
    cache.step("A")
    assert cache.state == "1 #2 active"


def test_a_wait_remembers_when_it_began(cache: Cache) -> None:
    """Once for each version that is waited for."""
    cache.step(version="2")
    cache.step(now=START + timedelta(minutes=5))
    assert cache.record.waiting is not None
    assert cache.record.waiting.since == "2026-11-30T12:00:00Z"
    cache.step(version="3")
    assert cache.record.waiting.version == "3"
    assert cache.record.waiting.since == "2026-11-30T12:05:00Z"
