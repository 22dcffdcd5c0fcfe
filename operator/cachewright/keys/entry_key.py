"""Entry keys: from a key found in a store back to the cache, keyspace and entry that it belongs to.

Used by what walks over a store's keys: reclaiming, the sweep, and the counts of a retraction. A key that does
not parse is not ours, whatever it begins with, and is left alone.
"""

from __future__ import annotations

import re
from typing import Final

from cachewright.keys.digest import EntryName, hash_tag, key_prefix
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import KEY_SCHEME, TAGS

_KEY: Final = re.compile(
    rf"\{{{KEY_SCHEME}:([0-9a-f]{{16}}):([0-9]{{2}})\}}"
    r":([0-9a-f]{16}-[1-9][0-9]{0,17}):([A-Za-z0-9_-]+):([0-9a-f]{64})(:lock|:count)?"
)


def keyspace_of_key(cache_id: str, key: str) -> Keyspace | None:
    """Tell which keyspace of this cache an entry's key, lock or count lies in; None for all others."""
    match = _KEY.fullmatch(key)
    if match is None or match[1] != cache_id or match[2] not in TAGS:
        return None
    return Keyspace.parse(match[3])


def parse_entry_key(cache_id: str, key: str) -> EntryName | None:
    """Return the name of the entry of this cache that lies under a key; None for all other keys."""
    match = _KEY.fullmatch(key)
    if match is None or match[1] != cache_id or match[2] not in TAGS or match[6]:
        return None
    digest = match[5]
    chosen_tag = "" if hash_tag(digest) == match[2] else match[2]
    return EntryName(cache_id, Keyspace.parse(match[3]), match[4], digest, chosen_tag)


def lies_within(cache_id: str, keyspace: Keyspace | None, key: str) -> bool:
    """Tell whether a key is one of a keyspace; where that is None, whether it is one of the cache at all."""
    if keyspace is None:
        return key.startswith(key_prefix(cache_id))
    return keyspace_of_key(cache_id, key) == keyspace


def keyspace_pattern(cache_id: str, keyspace: Keyspace) -> str:
    """Match every key of one keyspace, as Redis' SCAN does."""
    return f"{{{KEY_SCHEME}:{cache_id}:??}}:{keyspace}:*"


def janitor_key(cache_id: str) -> str:
    """Name the hash in which the janitor reports."""
    return f"{{{KEY_SCHEME}:{cache_id}:{TAGS[0]}}}:janitor"


def probes_key(cache_id: str) -> str:
    """Name the hash in which gateways report on their layers."""
    return f"{{{KEY_SCHEME}:{cache_id}:{TAGS[0]}}}:probes"


def janitor_lock_key(cache_id: str) -> str:
    """Name the lock that makes one gateway of many the janitor."""
    return f"{janitor_key(cache_id)}:lock"


def sweep_pause_key(cache_id: str) -> str:
    """Name the key that is there while no sweep is due."""
    return f"{janitor_key(cache_id)}:swept"
