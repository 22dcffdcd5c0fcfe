"""Entries: what was stored is what is read, and anything else is a miss."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cachewright.keys.digest import EntryName
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.entry import Entry, decode_entry, encode_dependence, encode_entry

KEY = bytes(range(32))
NAME = EntryName("c" * 16, Keyspace("0" * 16, 1), "tag", "ab" * 32)
ENTRY = Entry("application/json", b'{"a":1}', 1_790_000_000.125, 1800.0)


@given(
    st.builds(
        Entry,
        content_type=st.text("abc/;=é", max_size=20),
        body=st.binary(max_size=200),
        stored_at=st.integers(0, 10**13).map(lambda ms: ms / 1000),
        ttl_seconds=st.integers(1, 10**12).map(lambda ms: ms / 1000),
        usage=st.binary(max_size=50),
        upstream_seconds=st.integers(0, 10**9).map(lambda ms: ms / 1000),
        older_seconds=st.integers(0, 10**12).map(lambda ms: ms / 1000),
        source=st.binary(max_size=49),
        dependence=st.binary(max_size=99),
    )
)
def test_every_entry_comes_back_as_it_was(entry: Entry) -> None:
    """Body, type and times survive."""
    assert decode_entry(encode_entry(entry, NAME, KEY), NAME, KEY) == entry


def test_an_entry_knows_the_counters_it_depends_on() -> None:
    """By name, with their values, in their order; one that depends on none has none."""
    counters = ("t:acme", "d:a b", "l:Exact")
    entry = replace(ENTRY, dependence=encode_dependence(counters, (0, 7, 12)))
    assert entry.generations == {"t:acme": 0, "d:a b": 7, "l:Exact": 12}
    assert list(entry.generations) == list(counters)
    assert ENTRY.generations == {}


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_is_a_miss(place: int, difference: int) -> None:
    """Wherever a bit flips, nothing is served."""
    value = bytearray(encode_entry(ENTRY, NAME, KEY))
    value[place % len(value)] ^= difference
    assert decode_entry(bytes(value), NAME, KEY) is None


@given(st.integers(0, 10**6))
def test_a_truncated_value_is_a_miss(length: int) -> None:
    """Wherever it was cut off."""
    value = encode_entry(ENTRY, NAME, KEY)
    assert decode_entry(value[: length % len(value)], NAME, KEY) is None


@given(st.binary(max_size=100))
def test_foreign_bytes_are_a_miss(value: bytes) -> None:
    """Nobody without the key writes an entry."""
    assert decode_entry(value, NAME, KEY) is None
    assert decode_entry(b"\x01" + value, NAME, KEY) is None


def test_an_entry_counts_under_its_own_name_only() -> None:
    """Moved to another tenant, keyspace, cache or question, or read with another key, it is a miss."""
    value = encode_entry(ENTRY, NAME, KEY)
    for other in (
        replace(NAME, tenant_tag="other"),
        replace(NAME, keyspace=Keyspace("0" * 16, 2)),
        replace(NAME, cache_id="d" * 16),
        replace(NAME, digest="ac" * 32),
    ):
        assert decode_entry(value, other, KEY) is None
    assert decode_entry(value, NAME, bytes(32)) is None
