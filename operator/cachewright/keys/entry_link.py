"""Links: from the name of an entry to a few bytes that another entry of the same tenant can hold, and back.

An answer that was found by similarity is kept for its new question too, as an exact entry. The two know of
each other by links, so that whoever removes one removes the other. Called by the layers and by purge.
"""

from __future__ import annotations

import struct
from typing import Final

from cachewright.keys.digest import EntryName, hash_tag
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import TAGS

_LINK: Final = struct.Struct(">8sQB32s")
"""Keyspace's id and incarnation, number of the hash tag, digest."""

LINK_BYTES: Final = _LINK.size


def pack_link(name: EntryName) -> bytes:
    """Render the name of an entry, but for its cache and tenant."""
    keyspace = name.keyspace
    return _LINK.pack(
        bytes.fromhex(keyspace.id), keyspace.incarnation, int(name.tag), bytes.fromhex(name.digest)
    )


def unpack_links(links: bytes, cache_id: str, tenant_tag: str) -> list[EntryName]:
    """Read links that were put one after another; of bytes that are none, an empty list."""
    if len(links) % LINK_BYTES:
        return []
    return [
        _name(cache_id, tenant_tag, *_LINK.unpack_from(links, at)) for at in range(0, len(links), LINK_BYTES)
    ]


def _name(
    cache_id: str, tenant_tag: str, keyspace_id: bytes, incarnation: int, number: int, raw_digest: bytes
) -> EntryName:
    digest, chosen = raw_digest.hex(), TAGS[number % len(TAGS)]
    keyspace = Keyspace(keyspace_id.hex(), incarnation)
    return EntryName(
        cache_id, keyspace, tenant_tag, digest, chosen_tag="" if chosen == hash_tag(digest) else chosen
    )
