"""The identity of an embedder and its fingerprint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cachewright.keys.embedding_identity import BUILTIN, EmbeddingIdentity

IDENTITY = EmbeddingIdentity("endpoint", "bge-m3", "2", 1024, 8192)


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "builtin"},
        {"model": "bge-m4"},
        {"revision": "3"},
        {"dimensions": 512},
        {"max_tokens": 512},
        {"normalized": True},
        {"input_type": "query: "},
    ],
    ids=str,
)
def test_every_part_of_the_identity_makes_another_space(change: dict[str, Any]) -> None:
    """Vectors that differ in anything are never compared."""
    assert replace(IDENTITY, **change).fingerprint != IDENTITY.fingerprint


def test_the_fingerprints_are_frozen() -> None:
    """A new release must not throw away anybody's vectors."""
    assert IDENTITY.fingerprint == "048ff275c38df94bd8af9a9ae0c12705695c6bd42a4577e9ee61ddf2a82c3174"
    assert BUILTIN.fingerprint == "36dccddd36e081daf58e94eb679972596afc2d93b729e04e431d2c975a39c0b0"
