"""Generations: which counters an answer hangs on, and that each raised one gives it another digest."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cachewright.keys.context import Context, Document
from cachewright.keys.digest import EntryName, ExactQuestion, exact_digest, hash_tag, record_key, tenant_tag
from cachewright.keys.generations import Dependence, Subject, layer_counter, subject_counter, tenant_counter
from cachewright.keys.keyspaces import Keyspace

KEY = bytes(range(32))
TAG = tenant_tag(KEY, b"acme")
CONTEXT = Context(role="admin", user="alice", documents=(Document("a"), Document("b")))
QUESTION = ExactQuestion("/v1/chat/completions", "", (), {"model": "m"}, CONTEXT)


def test_counters_are_those_of_tenant_role_user_documents_and_layers() -> None:
    """In this order, and only for what there is."""
    whole = Dependence.of(KEY, TAG, QUESTION, ("Exact", "Semantic"))
    assert whole.counters == (
        tenant_counter(TAG),
        subject_counter(KEY, Subject.ROLE, "admin"),
        subject_counter(KEY, Subject.USER, "alice"),
        subject_counter(KEY, Subject.DOCUMENT, "a"),
        subject_counter(KEY, Subject.DOCUMENT, "b"),
        "l:Exact",
        "l:Semantic",
    )
    bare = Dependence.of(KEY, TAG, replace(QUESTION, context=Context()))
    assert bare.counters == (tenant_counter(TAG), layer_counter("Exact"))


def test_names_of_counters_tell_nothing() -> None:
    """They are keyed digests: the same name is another under another key or for another kind of subject."""
    names = {
        subject_counter(key, subject, name)
        for key in (KEY, bytes(32))
        for subject in Subject
        for name in ("alice", "bob")
    }
    assert len(names) == 4 * len(Subject)
    assert all(re.fullmatch(r"[drup]:[\w-]{16}", name) for name in names)


def test_without_a_raise_the_digest_is_the_questions() -> None:
    """A counter that was never raised changes no key."""
    dependence = Dependence.of(KEY, TAG, QUESTION)
    assert dependence.digest_at((0,) * 6) == exact_digest(KEY, TAG, QUESTION)


@given(st.tuples(*[st.integers(0, 3)] * 6), st.tuples(*[st.integers(0, 3)] * 6))
def test_other_generations_are_another_digest(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    """Each counter counts for itself."""
    dependence = Dependence.of(KEY, TAG, QUESTION)
    assert (dependence.digest_at(one) == dependence.digest_at(other)) == (one == other)


def test_each_generation_stands_in_its_own_field() -> None:
    """The context has them where the scheme says."""
    context = Context(
        role="admin",
        user="alice",
        documents=(Document("a", 4), Document("b", 5)),
        tenant_generation=1,
        role_generation=2,
        user_generation=3,
        layer_generations=(6,),
    )
    dependence = Dependence.of(KEY, TAG, QUESTION)
    assert dependence.digest_at((1, 2, 3, 4, 5, 6)) == exact_digest(
        KEY, TAG, replace(QUESTION, context=context)
    )


def test_an_entry_lies_under_the_tag_of_its_unraised_digest() -> None:
    """Entry, lock and marks share the hash tag under which the counters were read."""
    name = EntryName("c" * 16, Keyspace("0" * 16, 1), TAG, "ab" * 32, chosen_tag="07")
    assert hash_tag(name.digest) != "07"
    assert name.key.startswith("{cw1:cccccccccccccccc:07}:")
    assert name.lock_key.startswith("{cw1:cccccccccccccccc:07}:")
    assert name.record_key == record_key("c" * 16, "07")


def test_a_dependence_shows_no_key() -> None:
    """Neither in logs nor in tracebacks."""
    assert KEY.hex() not in repr(Dependence.of(KEY, TAG, QUESTION))
    assert repr(KEY) not in repr(Dependence.of(KEY, TAG, QUESTION))
