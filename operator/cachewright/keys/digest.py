"""Digests and key names: from a tenant and a request to the names of entries in a store.

    {cw1:<cache id>:<00-63>}:<keyspace>:<tenant tag>:<digest>

The digest is keyed, so that nobody can guess a prompt from a key; the hash tag is chosen by the digest.
Called by the exact layer, the stores and the gateway. Golden vectors pin the whole scheme.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cachewright.errors import InvalidDocument
from cachewright.keys.canonical import canonical_json
from cachewright.keys.context import Context
from cachewright.keys.fields import encode_fields, encode_list
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import EXCLUDE_LIST_VERSION, EXCLUDED_FIELDS, KEY_SCHEME, TAGS

DIGEST_KEY_BYTES: Final = 32
DIGEST_BYTES: Final = 32
KEY_ID_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class ExactQuestion:
    """Everything about a request that its answer may depend on."""

    path: str
    query: str
    """As sent, without the question mark."""
    headers: tuple[tuple[str, tuple[str, ...]], ...]
    """Vary headers by lower-case name with all their values; no values: absent."""
    body: Mapping[str, Any]
    """The parsed request; see `keys.canonical`."""
    context: Context


def parse_digest_key(text: str) -> bytes:
    """Read a digest key of 64 hex digits; raises InvalidDocument for anything else."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != DIGEST_KEY_BYTES:
        raise InvalidDocument(f"the digest key must be {2 * DIGEST_KEY_BYTES} hex digits")
    return key


def key_id_of(digest_key: str) -> str:
    """Name a digest key, given as its hex digits, without telling it."""
    return hashlib.sha256(digest_key.strip().encode()).hexdigest()[:KEY_ID_LENGTH]


def tenant_tag(key: bytes, tenant: bytes) -> str:
    """Name a tenant in keys without naming it: HMAC-SHA-256, base64url without padding (43 characters)."""
    return base64.urlsafe_b64encode(hmac.digest(key, tenant, "sha256")).rstrip(b"=").decode()


def exact_digest(key: bytes, tag: str, question: ExactQuestion) -> str:
    """Digest a request of the tenant with tag `tag`, as 64 hex digits.

    Raises AmbiguousJson where the body has no canonical form.
    """
    body = {name: value for name, value in question.body.items() if name not in EXCLUDED_FIELDS}
    fields = [
        ("scheme", KEY_SCHEME.encode()),
        ("excluded", str(EXCLUDE_LIST_VERSION).encode()),
        ("tenant", tag.encode()),
        ("path", question.path.encode()),
        ("query", encode_list(sort_query(question.query))),
        *((f"header:{name}", encode_list(values)) for name, values in sorted(question.headers)),
        ("body", canonical_json(body)),
        ("context", question.context.hash()),
    ]
    return hashlib.blake2b(
        encode_fields("cachewright/digest/exact", fields), digest_size=DIGEST_BYTES, key=key
    ).hexdigest()


def sort_query(query: str) -> Iterable[str]:
    """Split a query string and sort it by name; pairs of one name keep their order."""
    return sorted(filter(None, query.split("&")), key=lambda pair: pair.partition("=")[0])


def hash_tag(digest: str) -> str:
    """Choose one of the 64 hash tags."""
    return TAGS[int(digest[:2], 16) % len(TAGS)]


@dataclass(frozen=True, slots=True)
class EntryName:
    """Where one answer is kept."""

    cache_id: str
    keyspace: Keyspace
    tenant_tag: str
    digest: str
    chosen_tag: str = ""
    """Hash tag where another digest chose it; see `keys.generations`."""

    @property
    def tag(self) -> str:
        """The entry's hash tag."""
        return self.chosen_tag or hash_tag(self.digest)

    @property
    def key(self) -> str:
        """The entry's key in a store."""
        return f"{{{KEY_SCHEME}:{self.cache_id}:{self.tag}}}:{self.keyspace}:{self.tenant_tag}:{self.digest}"

    @property
    def lock_key(self) -> str:
        """Key of the lock on making this entry; it shares the entry's hash tag."""
        return f"{self.key}:lock"

    @property
    def count_key(self) -> str:
        """Key of the count that is kept for this entry; it shares the entry's hash tag."""
        return f"{self.key}:count"

    @property
    def record_key(self) -> str:
        """Key of the record's copy that shares the entry's hash tag."""
        return record_key(self.cache_id, self.tag)

    @property
    def heartbeat_key(self) -> str:
        """Key of the operator's heartbeat that shares the entry's hash tag."""
        return heartbeat_key(self.cache_id, self.tag)


def record_key(cache_id: str, tag: str) -> str:
    """Name the record's copy under one hash tag."""
    return f"{{{KEY_SCHEME}:{cache_id}:{tag}}}:record"


def heartbeat_key(cache_id: str, tag: str) -> str:
    """Name the operator's heartbeat under one hash tag."""
    return f"{{{KEY_SCHEME}:{cache_id}:{tag}}}:heartbeat"


def key_prefix(cache_id: str) -> str:
    """Return what every key of one cache begins with."""
    return f"{{{KEY_SCHEME}:{cache_id}:"


def key_pattern(cache_id: str) -> str:
    """Match every key of one cache, as Redis ACLs do."""
    return f"{key_prefix(cache_id)}*"
