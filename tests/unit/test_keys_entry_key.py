"""Keys of entries, read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.keys.digest import EntryName, record_key, tenant_tag
from cachewright.keys.entry_key import janitor_key, keyspace_of_key, parse_entry_key
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import TAGS

CACHE = "0123456789abcdef"


@given(
    st.binary(min_size=8, max_size=8),
    st.integers(1, 10**18 - 1),
    st.binary(),
    st.binary(min_size=32, max_size=32),
    st.sampled_from(["", *TAGS]),
)
def test_a_name_is_read_from_its_key(
    keyspace: bytes, incarnation: int, tenant: bytes, digest: bytes, chosen: str
) -> None:
    """Whatever tenant, digest and hash tag; lock and count lie in the same keyspace and are no entries."""
    name = EntryName(
        CACHE, Keyspace(keyspace.hex(), incarnation), tenant_tag(b"k" * 32, tenant), digest.hex(), chosen
    )
    parsed = parse_entry_key(CACHE, name.key)
    assert parsed is not None
    assert (parsed.key, parsed.tag, parsed.keyspace) == (name.key, name.tag, name.keyspace)
    assert keyspace_of_key(CACHE, name.key) == keyspace_of_key(CACHE, name.lock_key) == name.keyspace
    assert keyspace_of_key(CACHE, name.count_key) == name.keyspace
    assert parse_entry_key(CACHE, name.lock_key) is parse_entry_key(CACHE, name.count_key) is None
    assert keyspace_of_key("f" * 16, name.key) is None


@pytest.mark.parametrize(
    "key",
    [
        "",
        "session:42",
        record_key(CACHE, "00"),
        janitor_key(CACHE),
        f"{{cw1:{CACHE}:64}}:{'a' * 16}-1:tag:{'0' * 64}",
        f"{{cw1:{CACHE}:00}}:{'a' * 16}-0:tag:{'0' * 64}",
        f"{{cw1:{CACHE}:00}}:{'a' * 16}-1:tag:{'0' * 63}",
        f"{{cw1:{CACHE}:00}}:{'a' * 16}-1:tag:{'0' * 64}:other",
        f"{{cw1:{CACHE}:00}}:{'a' * 16}-1:tag:{'0' * 64}\n",
        f"{{cw2:{CACHE}:00}}:{'a' * 16}-1:tag:{'0' * 64}",
        f"x{{cw1:{CACHE}:00}}:{'a' * 16}-1:tag:{'0' * 64}",
        f"{{cw1:{CACHE}:00}}:credential:{'0' * 64}",
    ],
)
def test_other_keys_are_not_entries(key: str) -> None:
    """Records, markers, keys of other schemes and of other applications."""
    assert keyspace_of_key(CACHE, key) is None
    assert parse_entry_key(CACHE, key) is None
