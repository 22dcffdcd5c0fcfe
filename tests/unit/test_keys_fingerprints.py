"""Fingerprints: frozen values, since a change of one rotates the keyspaces of everybody who upgrades."""

from __future__ import annotations

import pytest

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.crd.validation import load
from cachewright.keys.fingerprints import (
    exact_binding,
    exact_fingerprint,
    semantic_binding,
    semantic_fingerprint,
)
from tests.api.documents import CREDENTIAL, EXTERNAL, FULL, MINIMAL, Document, changed

KEY_ID = "cafe0123"


def userless(document: Document) -> InferenceCacheSpec:
    """Read an object as it was before users could be set apart."""
    spec = load(document).spec
    return spec.model_copy(update={"tenancy": spec.tenancy.model_copy(update={"user": None})})


@pytest.mark.parametrize(
    ("document", "binding", "fingerprint"),
    [
        (
            FULL,
            "77ef6aa6a8897267148c6a1cfe8311a44771f3eb655d667cdd3ea406c2f508de",
            "0b0c56e8fcbf8896ca15586942e5d12a3bb0fb2f826c35a1430da3f9f4de4985",
        ),
        (
            EXTERNAL,
            "0dd1eef4e8e52cf61bfc0758193002cc39550918c719feabec61413c643159da",
            "c457615ad5b454bac880d45091d8f6a97bd36c28eb4908ce84671445c2534318",
        ),
        (
            MINIMAL,
            "118e870f959433e818dc47d60158170c32901bb1f8bac9feed9d0a9996fd6614",
            "56262d65074964fa1e559e7fba5eff0528e577b4b9dbff6d31785a4cc674bb6b",
        ),
        (
            CREDENTIAL,
            "4911927ee20f33e75fb403a0cc194d6d1bdd02043a2f73858209320b3c43e5ad",
            "0ff9a4a471cbae80159a5aef53aa95eb54243590efefd414e96d62c58ae5d2e6",
        ),
    ],
    ids=["header", "api-keys", "no-source", "credential"],
)
def test_fingerprints_are_frozen(document: Document, binding: str, fingerprint: str) -> None:
    """For each source of tenants."""
    spec = userless(document).model_copy(update={"prompt_template": None})
    assert exact_binding(spec, KEY_ID) == binding
    assert exact_fingerprint(spec, KEY_ID) == fingerprint


def test_users_set_apart_are_part_of_the_binding() -> None:
    """By where they come from; without them the binding is what it was before there were any."""
    sources = [{"header": "X-A"}, {"header": "x-b"}, {"bodyField": "User"}, {"bodyField": "SafetyIdentifier"}]
    specs = [load(changed(MINIMAL, spec__tenancy__user=source)).spec for source in sources]
    bindings = {exact_binding(spec, KEY_ID) for spec in (*specs, load(MINIMAL).spec)}
    assert len(bindings) == 5
    same = load(changed(MINIMAL, spec__tenancy__user={"header": "x-a"})).spec
    assert exact_binding(same, KEY_ID) == exact_binding(specs[0], KEY_ID)


def test_a_template_is_part_of_the_fingerprint_but_not_of_the_binding() -> None:
    """A changed template moves the keyspace and restarts no gateway; without one nothing is added."""
    with_one, with_other = (
        load(changed(MINIMAL, spec__promptTemplate={"version": version})).spec for version in ("v1", "v2")
    )
    without = load(MINIMAL).spec
    fingerprints = {exact_fingerprint(spec, KEY_ID) for spec in (with_one, with_other, without)}
    assert len(fingerprints) == 3
    assert len({exact_binding(spec, KEY_ID) for spec in (with_one, with_other, without)}) == 1


@pytest.mark.parametrize(
    ("document", "binding", "fingerprint"),
    [
        (
            FULL,
            "bc12e74247ff47e875c1a299db055dca30226ace74c08791c3829f2d8896259e",
            "66f3ccf50e10a856eb95b2bc74b3a0337ee2d1c8078d9c863dac451788835074",
        ),
        (
            EXTERNAL,
            "4b6cc9020213be5cac605b6d89b4f50ad288450cc3d356cd12e23dbe99a54933",
            "1b68572f727974e7047546168a5f5501cf8826f6b4cc43563678d2365c9adfb3",
        ),
    ],
    ids=["endpoint", "builtin"],
)
def test_fingerprints_of_the_semantic_layer_are_frozen(
    document: Document, binding: str, fingerprint: str
) -> None:
    """For each kind of embedder."""
    spec = userless(document)
    assert semantic_binding(spec, KEY_ID) == binding
    assert semantic_fingerprint(spec, KEY_ID) == fingerprint


@pytest.mark.parametrize(
    ("path", "value", "rotates", "binds"),
    [
        ("spec__model__version", "2", True, False),
        ("spec__embedder__revision", "3", True, True),
        ("spec__embedder__model", "other", True, True),
        ("spec__embedder__dimensions", 512, True, True),
        ("spec__embedder__url", "https://elsewhere:8080/v1", False, False),
        ("spec__layers__semantic__threshold", 0.5, False, False),
        ("spec__layers__semantic__guard", [], False, False),
        ("spec__layers__semantic__hnsw", {"m": 8}, False, False),
        ("spec__upstream__url", "https://other:8000/v1", True, True),
    ],
)
def test_the_semantic_keyspace_depends_on_answers_and_vectors(
    path: str, value: object, rotates: bool, binds: bool
) -> None:
    """And on nothing that only chooses among them."""
    before, after = load(FULL).spec, load(changed(FULL, **{path: value})).spec
    assert (semantic_fingerprint(before, KEY_ID) != semantic_fingerprint(after, KEY_ID)) is rotates
    assert (semantic_binding(before, KEY_ID) != semantic_binding(after, KEY_ID)) is binds
