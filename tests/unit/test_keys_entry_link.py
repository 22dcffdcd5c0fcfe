"""Links between entries: whatever is packed comes back, and bytes that are no links lead nowhere."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cachewright.keys.digest import EntryName
from cachewright.keys.entry_link import LINK_BYTES, pack_link, unpack_links
from cachewright.keys.keyspaces import Keyspace

NAMES = st.builds(
    EntryName,
    cache_id=st.just("c" * 16),
    keyspace=st.builds(
        Keyspace,
        st.text("0123456789abcdef", min_size=16, max_size=16),
        st.integers(1, 10**18 - 1),
    ),
    tenant_tag=st.just("tag"),
    digest=st.binary(min_size=32, max_size=32).map(bytes.hex),
    chosen_tag=st.integers(0, 63).map(lambda number: f"{number:02d}"),
)


@given(st.lists(NAMES, max_size=4))
def test_links_put_together_come_apart_again(names: list[EntryName]) -> None:
    """Each leads to the key that it was made of."""
    found = unpack_links(b"".join(map(pack_link, names)), "c" * 16, "tag")
    assert [name.key for name in found] == [name.key for name in names]


def test_a_name_comes_back_as_it_was_made() -> None:
    """Also where its digest chose its hash tag by itself."""
    name = EntryName("c" * 16, Keyspace("0" * 16, 1), "tag", "ab" * 32)
    assert unpack_links(pack_link(name), "c" * 16, "tag") == [name]
    moved = replace(name, chosen_tag="07")
    assert unpack_links(pack_link(moved), "c" * 16, "tag") == [moved]


@given(st.binary(max_size=200))
def test_other_bytes_are_no_links(value: bytes) -> None:
    """What was cut off leads nowhere."""
    expected = len(value) // LINK_BYTES if len(value) % LINK_BYTES == 0 else 0
    assert len(unpack_links(value, "c" * 16, "tag")) == expected
