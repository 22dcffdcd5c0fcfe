"""Salts and fingerprints of the prefix layer: what they depend on, and their form."""

from __future__ import annotations

import re

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.crd.validation import load
from cachewright.keys.prefix import prefix_fingerprint, shared_salt, tenant_salt
from tests.support.caches import cache_document

KEY = bytes.fromhex("ab" * 32)


def test_a_salt_is_pinned() -> None:
    """A new release must not flush the engines' caches: salts stay what they are."""
    assert tenant_salt(KEY, "tag", "0123456789abcdef-1") == "xTXfofT7761qfXg44_2ASvuBt7LBmZRJehdTSlLqqXA"
    assert shared_salt(KEY, "0123456789abcdef-1") == "Pvc0cQV0vsfVa6iNxp2h55hjPMaAOvzBWkEHZ-8eTsU"


def test_a_salt_is_one_for_each_tenant_keyspace_and_key() -> None:
    """Any other of the three gives another salt, and no tenant's is the shared one."""
    salts = {
        tenant_salt(key, tag, keyspace)
        for key in (KEY, bytes(32))
        for tag in ("a", "b", "")
        for keyspace in ("0123456789abcdef-1", "0123456789abcdef-2")
    } | {shared_salt(KEY, "0123456789abcdef-1")}
    assert len(salts) == 13
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", salt) for salt in salts)


def spec_of(**changes: str) -> InferenceCacheSpec:
    """Build a spec whose model, or else upstream, differs from the usual."""
    url = changes.pop("url", "http://engine:8000/v1")
    model = {"name": "m", "version": "1", **changes}
    return load(cache_document(spec={"model": model, "upstream": {"url": url}})).spec


def test_the_fingerprint_covers_model_version_and_key() -> None:
    """A bump, another model and another key are each another keyspace; all else is not."""
    plain = prefix_fingerprint(spec_of(), "k")
    others = {
        prefix_fingerprint(spec_of(version="2"), "k"),
        prefix_fingerprint(spec_of(name="n"), "k"),
        prefix_fingerprint(spec_of(), "l"),
    }
    assert len(others - {plain}) == 3
    assert prefix_fingerprint(spec_of(url="http://other:8000/v1"), "k") == plain
