"""Digests of what is embedded: from one input of a request to the name of its vector. Pure.

A vector depends on the input, the embedder and nothing else: no role, no document, no prompt template. So
its keyspace is the embedder's fingerprint, and only its tenant's and its layer's counters retract it.
Called by the embedding layer and by its cold tier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from cachewright.keys.canonical import canonical_json
from cachewright.keys.context import Context
from cachewright.keys.digest import ExactQuestion
from cachewright.keys.embedding_identity import EmbeddingIdentity
from cachewright.keys.fields import encode_fields
from cachewright.keys.generations import layer_counter, tenant_counter
from cachewright.keys.scheme import KEY_SCHEME

EMBEDDING: Final = "Embedding"
"""The layer's name in the record."""

EMBEDDINGS_PATH: Final = "/v1/embeddings"


def embedding_binding(identity: EmbeddingIdentity, key_id: str, shared: bool) -> str:
    """Fingerprint what a gateway itself enacts of the embedding layer, as 64 hex digits.

    `shared` says whether tenants share vectors: the two ways must not meet in one keyspace.
    """
    fields = [
        ("scheme", KEY_SCHEME.encode()),
        ("key_id", key_id.encode()),
        ("embedder", identity.fingerprint.encode()),
        ("shared", b"1" if shared else b""),
    ]
    return hashlib.sha256(encode_fields("cachewright/binding/embedding", fields)).hexdigest()


def embedding_fingerprint(identity: EmbeddingIdentity, key_id: str, shared: bool) -> str:
    """Fingerprint everything that entries of the embedding layer depend on, as 64 hex digits."""
    fields = [("binding", embedding_binding(identity, key_id, shared).encode())]
    return hashlib.sha256(encode_fields("cachewright/fingerprint/embedding", fields)).hexdigest()


def embedding_question(given: str | list[int], settings: Mapping[str, Any]) -> ExactQuestion:
    """Return what one vector depends on beside its keyspace.

    `settings` are the request's further fields that may change a vector, such as `dimensions`.
    """
    return ExactQuestion(
        path=EMBEDDINGS_PATH,
        query="",
        headers=(),
        body={**settings, "input": given},
        context=Context(),
    )


def embedding_counters(tenant_tag: str) -> tuple[str, ...]:
    """Name the counters that retract the vectors of a tenant."""
    return tenant_counter(tenant_tag), layer_counter(EMBEDDING)


def normal_input(given: str | list[int]) -> bytes:
    """Write an input in the form in which it is compared; raises AmbiguousJson where there is none."""
    return canonical_json(given)
