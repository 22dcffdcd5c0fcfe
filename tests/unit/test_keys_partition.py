"""Partitions: equal where two requests differ in the question alone, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.keys.context import Context, Document
from cachewright.keys.digest import ExactQuestion, exact_digest, tenant_tag
from cachewright.keys.generations import Dependence
from cachewright.keys.partition import partition_digest

KEY = bytes(range(32))
TAG = tenant_tag(KEY, b"acme")
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": ""}], "temperature": 0}
REST = ExactQuestion("/v1/chat/completions", "a=1", (("openai-beta", ("x",)),), BODY, Context())
WHERE = "messages/0/content@0"


def digest(rest: ExactQuestion = REST, where: str = WHERE, *, key: bytes = KEY, tag: str = TAG) -> str:
    """Digest a rest."""
    return partition_digest(key, tag, rest, where)


def test_the_digest_is_pinned() -> None:
    """A change of the scheme would orphan every vector, so it is made on purpose."""
    assert digest() == "3598043fc3724e025efe1efb4072e9bf1334675420383aa6c8459060fb974494"


@pytest.mark.parametrize(
    "other",
    [
        digest(where="messages/0/content@1"),
        digest(key=bytes(32)),
        digest(tag=tenant_tag(KEY, b"globex")),
        digest(replace(REST, path="/v1/completions")),
        digest(replace(REST, query="a=2")),
        digest(replace(REST, headers=(("openai-beta", ("y",)),))),
        digest(replace(REST, headers=())),
        digest(replace(REST, body={**BODY, "seed": 1})),
        digest(replace(REST, body={**BODY, "messages": []})),
        digest(replace(REST, context=Context(role="admin"))),
        digest(replace(REST, context=Context(user="admin"))),
        digest(replace(REST, context=Context(arm="b"))),
        digest(replace(REST, context=Context(template="v2"))),
        digest(replace(REST, context=Context(documents=(Document("a"),)))),
        exact_digest(KEY, TAG, REST),
    ],
)
def test_whatever_is_not_the_question_tells_partitions_apart(other: str) -> None:
    """Tenant, key, path, query, headers, body, context and the place of the cut."""
    assert other != digest()


def test_what_is_outside_the_key_is_outside_the_partition() -> None:
    """How an answer is delivered does not matter here either."""
    assert digest(replace(REST, body={**BODY, "stream": True, "user": "alice"})) == digest()
    assert digest(replace(REST, query="b=2&a=1")) == digest(replace(REST, query="a=1&b=2"))


@given(st.tuples(*[st.integers(0, 2)] * 5), st.tuples(*[st.integers(0, 2)] * 5))
def test_a_raised_generation_is_another_partition(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    """So a retraction is a retraction in this layer too."""
    context = Context(role="admin", user="alice", documents=(Document("a"),))
    dependence = Dependence.of(KEY, TAG, replace(REST, context=context))
    digests = [dependence.partition_at(generations, BODY, WHERE) for generations in (one, other)]
    assert (digests[0] == digests[1]) == (one == other)
