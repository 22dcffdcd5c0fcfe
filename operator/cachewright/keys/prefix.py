"""Salts for the engines' own prefix caches: from a tenant and a keyspace to the field of a request. Pure.

An engine mixes `cache_salt` into the first block of a prompt, so prompts with different salts share nothing,
in memory or in time to the first token. The keyspace stands in it, so that a new one is a flush: what was
computed under the old salt is found by nobody and goes out of the engine's memory by itself.
Called by the gateway; the fingerprint by reconcile and by local mode.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.keys.fields import encode_fields
from cachewright.keys.scheme import KEY_SCHEME

PREFIX: Final = "Prefix"
"""The layer's name in the record."""

SALT_FIELD: Final = "cache_salt"
"""Field of a request in vLLM, SGLang and TensorRT-LLM."""


def prefix_binding(spec: InferenceCacheSpec, key_id: str) -> str:
    """Fingerprint what a gateway itself enacts of the prefix layer, as 64 hex digits."""
    fields = [
        ("scheme", KEY_SCHEME.encode()),
        ("key_id", key_id.encode()),
        ("model", spec.model.name.encode()),
    ]
    return _sha256("cachewright/binding/prefix", fields)


def prefix_fingerprint(spec: InferenceCacheSpec, key_id: str) -> str:
    """Fingerprint everything that what an engine computed for prompts depends on, as 64 hex digits."""
    fields = [
        ("binding", prefix_binding(spec, key_id).encode()),
        ("model_version", spec.model.version.encode()),
    ]
    return _sha256("cachewright/fingerprint/prefix", fields)


def tenant_salt(key: bytes, tenant_tag: str, keyspace: str) -> str:
    """Salt the prompts of one tenant: HMAC-SHA-256, base64url without padding (43 characters).

    vLLM takes up to 128 characters, and neither slashes of either kind nor `@`.
    """
    return _salt(key, [("tenant", tenant_tag.encode()), ("keyspace", keyspace.encode())])


def shared_salt(key: bytes, keyspace: str) -> str:
    """Salt prompts that all tenants share, in the same form."""
    return _salt(key, [("shared", b""), ("keyspace", keyspace.encode())])


def _salt(key: bytes, fields: list[tuple[str, bytes]]) -> str:
    digest = hmac.digest(key, encode_fields("cachewright/salt/prefix", fields), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _sha256(domain: str, fields: list[tuple[str, bytes]]) -> str:
    return hashlib.sha256(encode_fields(domain, fields)).hexdigest()
