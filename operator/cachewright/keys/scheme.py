"""The key scheme's constants: its version, its hash tags and the fields it leaves out.

Used by fingerprints, digests and the stores. A change of any of them is a new scheme version.
"""

from __future__ import annotations

from typing import Final

KEY_SCHEME: Final = "cw1"
"""Version of canonical form, fields and digest; the first part of every key."""

TAGS: Final = tuple(f"{number:02d}" for number in range(64))
"""Hash tags of one cache, so that Redis Cluster spreads it and a script finds all it checks in one slot."""

EXCLUDE_LIST_VERSION: Final = 1
"""Version of EXCLUDED_FIELDS; part of every digest."""

EXCLUDED_FIELDS: Final = frozenset(
    {
        "cache_salt",
        "metadata",
        "priority",
        "prompt_cache_key",
        "request_id",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "user",
    }
)
"""Top-level fields of a request body that say how or for whom it is answered, never what the answer is.

Every field that is not named here is part of the key, known to us or not.
"""
