"""What a managed store holds, keyspace by keyspace: entries opened with the cache's key, as gateways do."""

from __future__ import annotations

import base64
import re
from collections import Counter
from typing import Final

import redis

from cachewright.keys.digest import EntryName, hash_tag, key_pattern, parse_digest_key
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.entry import decode_entry
from e2e.engine import version_in
from e2e.kubectl import Kubectl

_ENTRY: Final = re.compile(
    r"\{cw1:(?P<cache>[0-9a-f]{16}):(?P<tag>\d\d)\}:(?P<keyspace>[0-9a-f]{16}-\d+)"
    r":(?P<tenant>[-_\w]{43}):(?P<digest>[0-9a-f]{64})"
)


def versions_stored(kubectl: Kubectl, cache_id: str, name: str = "demo") -> dict[str, Counter[str]]:
    """Count by keyspace which engine versions said what is stored; a value that does not open fails."""
    key = parse_digest_key(_secret(kubectl, f"{name}-keys", "digest-key"))
    password = _secret(kubectl, f"{name}-redis", "gateway-password")
    found: dict[str, Counter[str]] = {}
    with (
        kubectl.forward(f"pod/{name}-redis-0", 6379) as port,
        redis.Redis(port=port, username="gateway", password=password) as store,
    ):
        for raw in store.scan_iter(match=key_pattern(cache_id), count=1000):
            parts = _ENTRY.fullmatch(raw.decode())
            if parts is None:
                continue  # the record's copies, counters, locks
            value = store.get(raw)
            if value is None:
                continue  # expired in between
            chosen = "" if hash_tag(parts["digest"]) == parts["tag"] else parts["tag"]
            keyspace = Keyspace.parse(parts["keyspace"])
            entry = decode_entry(
                bytes(value), EntryName(cache_id, keyspace, parts["tenant"], parts["digest"], chosen), key
            )
            assert entry is not None, f"{parts['keyspace']}: an entry does not open"
            found.setdefault(parts["keyspace"], Counter())[version_in(entry.body.decode())] += 1
    return found


def _secret(kubectl: Kubectl, name: str, key: str) -> str:
    return base64.b64decode(kubectl.get("secret", name)["data"][key]).decode().strip()
