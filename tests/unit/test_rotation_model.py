"""Any order of bumps, rollouts, epochs, waits and reports: what must never happen to a record does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, Record
from cachewright.reconcile.rotation import RotationRules, without_reclaimed
from tests.unit.test_fence import Cache, pods

VERSIONS = st.sampled_from(["1", "2", "3", "Auto"])
PODS = st.lists(st.sampled_from(["A", "B", "C", "=1", "=2"]), max_size=3)

_USABLE = frozenset({KeyspaceState.ACTIVE, KeyspaceState.READONLY, KeyspaceState.RETAINED})


def states(record: Record) -> dict[Keyspace, KeyspaceState]:
    """Return every keyspace with its state."""
    in_use = {layer.keyspace: layer.state for layer in record.layers.values()}
    return in_use | {past.keyspace: past.state for past in record.past}


class RecordMachine(RuleBasedStateMachine):
    """One cache, whose object, pods and clock change in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.dead: set[Keyspace] = set()
        self.given: set[int] = set()
        self.writers: dict[Keyspace, set[str]] = {}
        """Identities that could have written into each keyspace."""
        self.vouched: set[Keyspace] = set()
        self.unfenced: set[Keyspace] = set()
        self.epochs: dict[str, int] = {}

    def look(self, **changes: Any) -> None:
        """Edit something, let the operator look, and compare the two records."""
        before = self.cache.record
        self.cache.step(**changes)
        after = self.cache.record
        assert (after.revision > before.revision) == (after != before)
        assert after.revision <= before.revision + 1
        assert after.incarnation >= before.incarnation
        for name, epoch in before.epochs.items():
            assert after.epochs[name] >= epoch
        was, now = states(before), states(after)
        for keyspace in now.keys() - was.keys():
            assert keyspace.incarnation > before.incarnation, "an incarnation was given twice"
            assert keyspace.incarnation not in self.given
        self.given |= {keyspace.incarnation for keyspace in now}
        for keyspace, state in was.items():
            if state is KeyspaceState.DELETING:
                assert now[keyspace] is KeyspaceState.DELETING, "what is being deleted came back"
                self.dead.add(keyspace)
            if state is not KeyspaceState.DELETING:
                assert keyspace in now, "a keyspace vanished that was not being deleted"
        self.note_writers(after)

    def note_writers(self, record: Record) -> None:
        """Note who could write now: every pod that is there, while the keyspace is active."""
        layer = record.layers.get("Exact")
        if layer is None or layer.state is not KeyspaceState.ACTIVE:
            return
        if not self.cache.fenced:
            self.unfenced.add(layer.keyspace)
        if self.cache.serves[0] or any(
            identity in self.cache.seen.versions for identity in self.cache.seen.pods
        ):
            self.vouched.add(layer.keyspace)
        self.writers.setdefault(layer.keyspace, set()).update(self.cache.seen.pods)

    @initialize(seen=PODS, version=VERSIONS)
    def begin(self, seen: list[str], version: str) -> None:
        """The object is made while some pods run."""
        self.look(seen=pods(*seen), version=version)

    @rule(seen=PODS)
    def roll(self, seen: list[str]) -> None:
        """Pods come and go."""
        self.look(seen=pods(*seen))

    @rule(version=VERSIONS)
    def bump(self, version: str) -> None:
        """The version is edited, forwards or back."""
        self.look(version=version)

    @rule(seen=PODS, version=VERSIONS)
    def bump_and_roll(self, seen: list[str], version: str) -> None:
        """Both at once."""
        self.look(seen=pods(*seen), version=version)

    @precondition(lambda self: self.cache.version != "Auto")
    @rule(fenced=st.booleans())
    def fence(self, fenced: bool) -> None:
        """The fence is put up or taken away."""
        self.look(fenced=fenced or self.cache.version == "Auto")

    @rule(identity=st.sampled_from(["A", "B", ""]), version=st.sampled_from(["1", "2"]))
    def vouch(self, identity: str, version: str) -> None:
        """A person says what pods serve, or takes that back."""
        self.look(serves=(identity, version) if identity else ("", ""))

    @rule(epoch=st.integers(0, 4), kept=st.integers(0, 3))
    def edit_rules(self, epoch: int, kept: int) -> None:
        """The epoch goes up and down, and so does the number of keyspaces kept."""
        self.look(rules=RotationRules(epoch=epoch, max_retained=kept))

    @rule(hours=st.integers(1, 30))
    def wait(self, hours: int) -> None:
        """Time goes by."""
        self.look(now=self.cache.now + timedelta(hours=hours))

    @rule()
    def reclaim(self) -> None:
        """Everything that is to be deleted was, and whatever else is reported is passed over."""
        before = self.cache.record
        after = without_reclaimed(before, set(before.keyspaces()))
        self.cache.record = after
        assert {past.state for past in after.past} <= {KeyspaceState.RETAINED}
        assert after.layers == before.layers

    @invariant()
    def nothing_dead_is_used(self) -> None:
        """What was to be deleted once is neither read, written nor retained again."""
        usable = {keyspace for keyspace, state in states(self.cache.record).items() if state in _USABLE}
        assert not usable & self.dead

    @invariant()
    def each_keyspace_is_named_once(self) -> None:
        """In use by one layer, or past once."""
        keyspaces = self.cache.record.keyspaces()
        assert len(keyspaces) == len(set(keyspaces))
        assert all(keyspace.incarnation <= self.cache.record.incarnation for keyspace in keyspaces)

    @invariant()
    def one_identity_has_written_each_keyspace(self) -> None:
        """But for those that somebody vouched for, or that had no fence."""
        for keyspace, writers in self.writers.items():
            if keyspace not in self.vouched | self.unfenced:
                assert len(writers) <= 1, (keyspace, writers)

    @invariant()
    def only_alike_pods_may_write(self) -> None:
        """A fenced keyspace is active only while every pod carries its identity."""
        for layer in self.cache.record.layers.values():
            if self.cache.fenced and layer.model_version and layer.state is KeyspaceState.ACTIVE:
                assert set(self.cache.seen.pods) == {layer.workload}

    @invariant()
    def limits_hold(self) -> None:
        """No layer retains more than allowed."""
        retained = [past.layer for past in self.cache.record.in_state(KeyspaceState.RETAINED)]
        assert all(retained.count(layer) <= self.cache.rules.max_retained for layer in retained)


TestRecordMachine = RecordMachine.TestCase
