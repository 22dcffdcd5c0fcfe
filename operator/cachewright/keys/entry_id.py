"""Entry ids: from an entry's name to an opaque word that only the cache's key turns back into it.

An id travels in `Cache-Status`, and purge takes it back. It holds the whole name, encrypted, so that no index
has to be kept beside the entries: an id costs no write, is found on every replica, and cannot outlive or lose
what it points to. Without the key it tells nothing: neither tenant nor digest, nor what two ids have in
common, since names differ for each tenant and request and each name has one id that looks like chance.

The construction is deterministic authenticated encryption as in SIV (RFC 5297), with keyed BLAKE2b for both
of its parts: a tag over the name, and a key stream that starts from the tag. Called by the gateway.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from typing import Final

from cachewright.errors import InvalidInput
from cachewright.keys.digest import EntryName, hash_tag
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import TAGS

_FORMAT: Final = 1
_NAME: Final = struct.Struct(">BB8sQ32s32s")
"""Format, number of the hash tag, keyspace's id and incarnation, tenant tag, digest."""

_TAG_BYTES: Final = 14
_TAG_PERSON: Final = b"cw1 entry tag"
_STREAM_PERSON: Final = b"cw1 entry stream"
_PREFIX: Final = "e"
"""Begins every id, since a command line takes what begins with a hyphen for an option."""

_ID_LENGTH: Final = 129
"""Characters: the prefix, and 96 bytes in base64url, without padding."""


def entry_id(key: bytes, name: EntryName) -> str:
    """Return the id of an entry; `key` is the cache's digest key."""
    plain = _NAME.pack(
        _FORMAT,
        int(name.tag),
        bytes.fromhex(name.keyspace.id),
        name.keyspace.incarnation,
        base64.urlsafe_b64decode(name.tenant_tag + "="),
        bytes.fromhex(name.digest),
    )
    tag = _tag(key, plain)
    return _PREFIX + base64.urlsafe_b64encode(tag + _masked(key, tag, plain)).decode()


def entry_name(key: bytes, cache_id: str, text: str) -> EntryName:
    """Return the name that an id stands for; raises InvalidInput for what is no id of this cache and key."""
    is_id = len(text) == _ID_LENGTH and text.startswith(_PREFIX)
    try:
        sealed = base64.b64decode(text[1:], altchars=b"-_", validate=True) if is_id else b""
    except (binascii.Error, ValueError):
        sealed = b""
    tag, plain = sealed[:_TAG_BYTES], _masked(key, sealed[:_TAG_BYTES], sealed[_TAG_BYTES:])
    if not sealed or not hmac.compare_digest(tag, _tag(key, plain)):
        raise InvalidInput("not the id of an entry of this cache")
    _, number, keyspace_id, incarnation, tenant, digest = _NAME.unpack(plain)
    chosen = TAGS[number]
    return EntryName(
        cache_id,
        Keyspace(keyspace_id.hex(), incarnation),
        base64.urlsafe_b64encode(tenant).rstrip(b"=").decode(),
        digest.hex(),
        chosen_tag="" if chosen == hash_tag(digest.hex()) else chosen,
    )


def _tag(key: bytes, plain: bytes) -> bytes:
    return hashlib.blake2b(plain, digest_size=_TAG_BYTES, key=key, person=_TAG_PERSON).digest()


def _masked(key: bytes, tag: bytes, text: bytes) -> bytes:
    """Encrypt or decrypt: both are the same."""
    stream = b"".join(
        hashlib.blake2b(tag + bytes([block]), key=key, person=_STREAM_PERSON).digest() for block in range(2)
    )
    mask = int.from_bytes(stream[: len(text)]) ^ int.from_bytes(text)
    return mask.to_bytes(len(text))
