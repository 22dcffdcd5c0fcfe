"""From a record to what may be written to."""

from __future__ import annotations

from dataclasses import replace

from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.permission import WritePermission, spaced
from cachewright.keys.record import KeyspaceState, PastKeyspace, Record

RECORD = Record("c" * 16, 0, 0).with_layer("Exact", "1" * 16, "binding", "t", "v1", "w1")
KEYSPACE = RECORD.layers["Exact"].keyspace


def test_an_active_keyspace_is_free() -> None:
    """Where nothing is fenced, and also where its layer does not depend on the model."""
    assert WritePermission.of(RECORD).allows(KEYSPACE, is_beating=False)
    independent = Record("c" * 16, 0, 0, fenced=True).with_layer("Embedding", "1" * 16, "binding", "t")
    assert WritePermission.of(independent).allows(KEYSPACE, is_beating=False)


def test_a_fenced_keyspace_needs_the_heartbeat() -> None:
    """Also where its workload is not known: not knowing is no permission."""
    for workload in ("w1", ""):
        layer = replace(RECORD.layers["Exact"], workload=workload)
        permission = WritePermission.of(replace(RECORD, fenced=True, layers={"Exact": layer}))
        assert permission.allows(KEYSPACE, is_beating=True)
        assert not permission.allows(KEYSPACE, is_beating=False)


def test_nothing_else_may_be_written_to() -> None:
    """Not what is read-only, retained or being deleted, with a heartbeat or without."""
    readonly = replace(RECORD.layers["Exact"], state=KeyspaceState.READONLY)
    past = tuple(
        PastKeyspace("Exact", Keyspace("1" * 16, number), "binding", state, "t", "t")
        for number, state in ((7, KeyspaceState.RETAINED), (8, KeyspaceState.DELETING))
    )
    for fenced in (True, False):
        record = replace(RECORD, layers={"Exact": readonly}, past=past, fenced=fenced)
        for keyspace in record.keyspaces():
            assert not WritePermission.of(record).allows(keyspace, is_beating=True)


def test_no_name_is_found_in_another() -> None:
    """Written between spaces, one keyspace is never taken for a longer one."""
    names = spaced(Keyspace("1" * 16, 12), Keyspace("2" * 16, 3))
    assert spaced(Keyspace("1" * 16, 12)) in names
    assert spaced(Keyspace("2" * 16, 3)) in names
    for absent in (Keyspace("1" * 16, 1), Keyspace("1" * 16, 2), Keyspace("2" * 16, 33)):
        assert spaced(absent) not in names
    assert spaced(Keyspace("1" * 16, 1)) not in spaced()
