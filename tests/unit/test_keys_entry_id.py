"""Entry ids: they lead back to the entry with the cache's key, and tell nothing without it."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.errors import InvalidInput
from cachewright.keys.digest import EntryName, tenant_tag
from cachewright.keys.entry_id import entry_id, entry_name
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import TAGS

KEY = bytes(range(32))
CACHE = "0123456789abcdef"

hexadecimal = st.binary(min_size=8, max_size=8).map(bytes.hex)
names = st.builds(
    EntryName,
    cache_id=st.just(CACHE),
    keyspace=st.builds(Keyspace, id=hexadecimal, incarnation=st.integers(1, 10**18 - 1)),
    tenant_tag=st.binary(max_size=20).map(lambda tenant: tenant_tag(KEY, tenant)),
    digest=st.binary(min_size=32, max_size=32).map(bytes.hex),
    chosen_tag=st.sampled_from(["", *TAGS]),
)


def name(tenant: bytes = b"acme", digest: str = "ab" * 32) -> EntryName:
    """Return a name."""
    return EntryName(CACHE, Keyspace("1" * 16, 3), tenant_tag(KEY, tenant), digest)


@given(names)
def test_an_id_leads_back_to_its_entry(entry: EntryName) -> None:
    """To the very keys in the store, whichever hash tag they have."""
    found = entry_name(KEY, CACHE, entry_id(KEY, entry))
    assert (found.key, found.record_key) == (entry.key, entry.record_key)


def test_an_id_is_always_the_same() -> None:
    """On every replica and after every restart; a change would strand the ids in people's logs."""
    assert entry_id(KEY, name()) == (
        "eWarTWYFcth1fnGNBfZ3i8dOlz8IkYMShmb7Op33iAFj0XKPkV-d2iZLKY0rt0W88"
        "F1ViWWiK-t8pQUQ8lMb8pYB5C7USXc4poHSth0mBCLmY4m0Dae9w8Rjco028lV0F"
    )


@given(st.binary(min_size=32, max_size=32))
def test_another_key_reads_nothing(other: bytes) -> None:
    """An id of another cache, or from before the key was changed, is refused."""
    if other != KEY:
        with pytest.raises(InvalidInput):
            entry_name(other, CACHE, entry_id(KEY, name()))


@given(st.integers(0, 128), st.sampled_from("AZaz09-_"))
def test_a_changed_id_is_refused(at: int, letter: str) -> None:
    """Nobody makes up an id, or another one from one that is known."""
    right = entry_id(KEY, name())
    wrong = right[:at] + letter + right[at + 1 :]
    if wrong != right:
        with pytest.raises(InvalidInput):
            entry_name(KEY, CACHE, wrong)


@given(st.text(max_size=140) | st.text(alphabet="AZaz09-_=", min_size=129, max_size=129))
def test_what_is_no_id_is_refused(text: str) -> None:
    """Whatever somebody sends."""
    with pytest.raises(InvalidInput):
        entry_name(KEY, CACHE, text)


def test_an_id_shows_nothing_of_the_name() -> None:
    """Neither tenant tag nor digest stand in it, in any form."""
    entry = name()
    shown = entry_id(KEY, entry)
    raw = base64.urlsafe_b64decode(shown[1:])
    for secret in (bytes.fromhex(entry.digest), base64.urlsafe_b64decode(entry.tenant_tag + "=")):
        assert not any(secret[at : at + 4] in raw for at in range(28))
    assert entry.tenant_tag not in shown


def test_ids_cannot_be_compared() -> None:
    """Ids of one digest in two tenants, or of two digests in one, have no more in common than by chance."""
    ids = [
        base64.urlsafe_b64decode(entry_id(KEY, name(tenant, digest))[1:])
        for tenant in (b"acme", b"other")
        for digest in ("ab" * 32, "ac" + "ab" * 31)
    ]
    for one in ids:
        for other in ids:
            if one is not other:
                assert sum(a == b for a, b in zip(one, other, strict=True)) < 8
