"""Credentials: from what a client presents to the upstream to the name of its marker in a store.

A marker says that the upstream accepted a credential lately. Its name is a keyed digest, so that a store
tells nobody whose credentials are in use. Called by the gateway where tenants come from `clientCredential`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cachewright.keys.digest import DIGEST_BYTES, hash_tag
from cachewright.keys.fields import encode_fields
from cachewright.keys.scheme import KEY_SCHEME


@dataclass(frozen=True, slots=True)
class MarkerName:
    """Where the marker of one credential is kept."""

    cache_id: str
    digest: str

    @property
    def key(self) -> str:
        """The marker's key in a store."""
        return f"{{{KEY_SCHEME}:{self.cache_id}:{hash_tag(self.digest)}}}:credential:{self.digest}"


def marker_name(key: bytes, cache_id: str, binding: str, ttl_seconds: float, credential: bytes) -> MarkerName:
    """Name the marker of a credential under one binding and TTL.

    Another upstream, which may know other credentials, has another binding; another TTL starts anew.
    """
    fields = [
        ("binding", binding.encode()),
        ("ttl_ms", str(round(ttl_seconds * 1000)).encode()),
        ("credential", credential),
    ]
    encoded = encode_fields("cachewright/credential", fields)
    return MarkerName(cache_id, hashlib.blake2b(encoded, digest_size=DIGEST_BYTES, key=key).hexdigest())
