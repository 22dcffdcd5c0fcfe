"""Fingerprints: from the parts of a spec that a layer's entries depend on to a keyspace id.

The exact layer's fingerprint has two halves. The *binding* covers what a gateway itself enacts
(upstream, model name, tenancy, key): it is rendered into the gateway's policy and into the record, and a
gateway uses a keyspace only when both agree, so a pod with an old policy can never write into a new
keyspace. The model's version stands outside the binding: a bump needs no restart of any gateway.

Called by reconcile's plan and by local mode.
"""

from __future__ import annotations

import hashlib

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.tenancy import TenancySource, TenancySpec
from cachewright.keys.embedding_identity import identity_of
from cachewright.keys.fields import encode_fields, encode_list
from cachewright.keys.keyspaces import KEYSPACE_ID_LENGTH
from cachewright.keys.scheme import KEY_SCHEME


def exact_binding(spec: InferenceCacheSpec, key_id: str) -> str:
    """Fingerprint what a gateway itself enacts of the exact layer, as 64 hex digits.

    `key_id` names the cache's digest key, so that a new key is a new keyspace.
    """
    return _sha256(
        "cachewright/binding/exact",
        [
            ("scheme", KEY_SCHEME.encode()),
            ("key_id", key_id.encode()),
            ("upstream", _normal_url(spec.upstream.url).encode()),
            ("vary_headers", encode_list(sorted(name.lower() for name in spec.upstream.vary_headers))),
            ("model", spec.model.name.encode()),
            ("tenancy", _tenancy_fields(spec.tenancy)),
            ("normalize", b""),
        ],
    )


def exact_fingerprint(spec: InferenceCacheSpec, key_id: str) -> str:
    """Fingerprint everything that entries of the exact layer depend on, as 64 hex digits."""
    return _sha256(
        "cachewright/fingerprint/exact",
        [
            ("binding", exact_binding(spec, key_id).encode()),
            ("model_version", spec.model.version.encode()),
            ("prompt_template", template_field(spec)),
        ],
    )


def template_field(spec: InferenceCacheSpec) -> bytes:
    """Return the version of the object's prompt template; empty without one.

    One that a ConfigMap holds must have been put in its place, as the digest of its content.
    """
    return (spec.prompt_template.version or "").encode() if spec.prompt_template else b""


def semantic_binding(spec: InferenceCacheSpec, key_id: str) -> str:
    """Fingerprint what a gateway enacts of the semantic layer, as 64 hex digits; the spec has an embedder."""
    return _sha256(
        "cachewright/binding/semantic",
        [
            ("exact", exact_binding(spec, key_id).encode()),
            ("embedding", identity_of(spec.embedder).fingerprint.encode() if spec.embedder else b""),
            ("normalize", b""),
        ],
    )


def semantic_fingerprint(spec: InferenceCacheSpec, key_id: str) -> str:
    """Fingerprint everything that entries of the semantic layer depend on, as 64 hex digits.

    Everything that the exact layer's do, and what makes their vectors comparable.
    """
    return _sha256(
        "cachewright/fingerprint/semantic",
        [
            ("binding", semantic_binding(spec, key_id).encode()),
            ("exact", exact_fingerprint(spec, key_id).encode()),
        ],
    )


def keyspace_id(fingerprint: str) -> str:
    """Shorten a fingerprint to the id that store names carry."""
    return fingerprint[:KEYSPACE_ID_LENGTH]


def _tenancy_fields(tenancy: TenancySpec) -> bytes:
    source = tenancy.source
    header = source.trusted_header.name.lower() if source and source.trusted_header else ""
    fields = [
        ("mode", tenancy.mode.encode()),
        ("source", _source_kind(source).encode()),
        ("header", header.encode()),
        ("role_header", (tenancy.role.header.lower() if tenancy.role else "").encode()),
    ]
    if user := tenancy.user:  # else as before there were users, so that nothing rotates
        fields.append(("user", encode_list([(user.header or "").lower(), user.body_field or ""])))
    return encode_fields("tenancy", fields)


def _source_kind(source: TenancySource | None) -> str:
    if source is None:
        return "none"
    if source.trusted_header is not None:
        return "trustedHeader"
    return "apiKeys" if source.api_keys is not None else "clientCredential"


def _normal_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{host.lower()}{slash}{path}".rstrip("/")


def _sha256(domain: str, fields: list[tuple[str, bytes]]) -> str:
    return hashlib.sha256(encode_fields(domain, fields)).hexdigest()
