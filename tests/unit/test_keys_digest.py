"""Digests: any difference in what an answer depends on is another key, and nothing else is."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cachewright.errors import AmbiguousJson, InvalidDocument
from cachewright.keys.canonical import canonical_json
from cachewright.keys.context import Context, Document
from cachewright.keys.digest import (
    EntryName,
    ExactQuestion,
    exact_digest,
    hash_tag,
    key_pattern,
    parse_digest_key,
    record_key,
    tenant_tag,
)
from cachewright.keys.fields import encode_fields, encode_list
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.scheme import EXCLUDED_FIELDS, TAGS
from tests.unit.test_keys_canonical import JSON_VALUES, shuffled

KEY = bytes(range(32))
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "ab"}],
    "temperature": 0,
    "tools": [{"name": "a"}, {"name": "b"}],
}
QUESTION = ExactQuestion("/v1/chat/completions", "", (("openai-beta", ()),), BODY, Context())


def digest(question: ExactQuestion, tenant: bytes = b"acme") -> str:
    """Return the digest of a question of one tenant."""
    return exact_digest(KEY, tenant_tag(KEY, tenant), question)


def with_body(**changes: object) -> ExactQuestion:
    """Return the question with some fields of its body changed."""
    return replace(QUESTION, body={**BODY, **changes})


@pytest.mark.parametrize(
    "other",
    [
        replace(QUESTION, path="/v1/completions"),
        replace(QUESTION, query="api-version=2"),
        replace(QUESTION, headers=(("openai-beta", ("x",)),)),
        replace(QUESTION, headers=(("openai-beta", ("",)),)),
        replace(QUESTION, headers=(("openai-betb", ()),)),
        with_body(model="n"),
        with_body(messages=BODY["messages"][::-1]),
        with_body(messages=[{"role": "system", "content": "sa"}, {"role": "user", "content": "b"}]),
        with_body(messages=[{"role": "user", "content": "s"}, {"role": "user", "content": "ab"}]),
        with_body(messages=[*BODY["messages"], {"role": "tool", "tool_call_id": "1", "content": "x"}]),
        with_body(tools=BODY["tools"][::-1]),
        with_body(temperature=0.1),
        with_body(seed=1),
        with_body(seed=None),
        with_body(a_field_nobody_knows_yet=False),
        with_body(logit_bias={"1": 2}),
    ],
)
def test_another_question_has_another_digest(other: ExactQuestion) -> None:
    """Path, query, vary headers and every part of the body count."""
    assert digest(other) != digest(QUESTION)


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAB"}}],
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}],
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        [{"type": "text", "text": "ab"}],
        "ab",
    ],
)
def test_content_parts_count(parts: object) -> None:
    """Other image bytes, detail, and other borders between parts are other questions."""
    one = with_body(
        messages=[
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
            }
        ]
    )
    assert digest(one) != digest(with_body(messages=[{"role": "user", "content": parts}]))


@pytest.mark.parametrize("name", sorted(EXCLUDED_FIELDS))
def test_excluded_fields_do_not_count(name: str) -> None:
    """Fields on the published list change nothing at the top level of a body."""
    assert digest(with_body(**{name: "x"})) == digest(QUESTION)


@pytest.mark.parametrize("name", sorted(EXCLUDED_FIELDS))
def test_excluded_fields_count_below_the_top(name: str) -> None:
    """Inside a message the same names are content."""
    assert digest(with_body(messages=[{"role": "user", "content": "ab", name: "x"}])) != digest(
        with_body(messages=[{"role": "user", "content": "ab"}])
    )


@given(st.dictionaries(st.text("abcxyz_", min_size=1, max_size=8), JSON_VALUES, max_size=3), st.data())
def test_any_change_of_any_field_changes_the_digest(extra: dict[str, Any], data: st.DataObject) -> None:
    """Whatever field, known or unknown, takes another value: the digest is another; order alone is not."""
    body = {**BODY, **extra}
    question = replace(QUESTION, body=body)
    assert digest(replace(QUESTION, body=shuffled(body))) == digest(question)
    name = data.draw(st.sampled_from(sorted(set(body) - EXCLUDED_FIELDS)))
    value = data.draw(JSON_VALUES)
    assume(canonical_json(value) != canonical_json(body[name]))
    assume(not isinstance(value, float) or not value.is_integer())  # parsed bodies hold no 1.0
    assert digest(replace(QUESTION, body={**body, name: value})) != digest(question)
    without = {key: body[key] for key in body if key != name}
    assert digest(replace(QUESTION, body=without)) != digest(question)


@given(st.lists(JSON_VALUES, min_size=2, max_size=5), st.randoms())
def test_permuted_arrays_are_another_question(items: list[Any], random: Any) -> None:
    """The order of messages, tools and parts counts."""
    other = list(items)
    random.shuffle(other)
    same = canonical_json(other) == canonical_json(items)
    assert (digest(with_body(tools=other)) == digest(with_body(tools=items))) == same


@given(
    st.lists(st.text(max_size=4), min_size=1, max_size=4),
    st.lists(st.text(max_size=4), min_size=1, max_size=4),
)
def test_boundaries_between_fields_cannot_shift(one: list[str], other: list[str]) -> None:
    """Different lists of parts never encode alike, however their texts run into each other."""
    assert (encode_list(one) == encode_list(other)) == (one == other)
    as_fields = [encode_fields("d", [(text, text.encode()) for text in texts]) for texts in (one, other)]
    assert (as_fields[0] == as_fields[1]) == (one == other)


CONTEXTS = [
    Context(template="v1"),
    Context(documents=(Document("a"),)),
    Context(documents=(Document("a", 1),)),
    Context(documents=(Document("a"), Document("b"))),
    Context(documents=(Document("b"), Document("a"))),
    Context(documents=(Document("ab"),)),
    Context(arm="v1"),
    Context(guardrail_version="v1"),
    Context(role="v1"),
    Context(user="v1"),
    Context(tenant_generation=1),
    Context(role_generation=1),
    Context(user_generation=1),
    Context(user_generation=11),
]


def test_every_part_of_the_context_counts() -> None:
    """Equal values under different names, other generations and another order of documents never meet."""
    hashes = {context.hash() for context in [Context(), *CONTEXTS]}
    assert len(hashes) == len(CONTEXTS) + 1
    digests = {digest(replace(QUESTION, context=context)) for context in [Context(), *CONTEXTS]}
    assert len(digests) == len(CONTEXTS) + 1


def test_the_context_has_every_field_of_the_scheme() -> None:
    """The fields that later layers fill are there from the first version on."""
    assert [field.name for field in fields(Context)] == [
        "template",
        "documents",
        "arm",
        "guardrail_version",
        "role",
        "tenant_generation",
        "role_generation",
        "user_generation",
        "layer_generations",
        "user",
    ]


def test_layers_count_once_they_were_raised() -> None:
    """Keys from before there were such counters stay what they are."""
    assert Context(layer_generations=(0, 0)).hash() == Context().hash()
    raised = [(1,), (1, 0), (0, 1), (2,), (1, 1)]
    hashes = {Context(layer_generations=generations).hash() for generations in raised}
    assert len(hashes | {Context().hash()}) == len(raised) + 1


def test_the_query_is_sorted_by_name() -> None:
    """The order of different names does not count, that of equal ones does, and nothing is decoded."""
    asked = [digest(replace(QUESTION, query=query)) for query in ("b=1&a=2", "a=2&b=1", "a=2&&b=1")]
    assert len(set(asked)) == 1
    others = [
        digest(replace(QUESTION, query=query)) for query in ("a=1&a=2", "a=2&a=1", "a=2&%62=1", "a=2&b=1")
    ]
    assert len(set(others)) == 4


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_tenants_share_nothing(one: bytes, other: bytes) -> None:
    """Different tenants have different tags, and different digests for one question."""
    assume(one != other)
    assert tenant_tag(KEY, one) != tenant_tag(KEY, other)
    assert digest(QUESTION, one) != digest(QUESTION, other)


def test_digests_need_the_key() -> None:
    """With another key the same tenant and question have other names."""
    other = bytes(32)
    assert tenant_tag(other, b"acme") != tenant_tag(KEY, b"acme")
    assert exact_digest(other, "tag", QUESTION) != exact_digest(KEY, "tag", QUESTION)


def test_names_of_entries_and_records_share_a_hash_tag() -> None:
    """A script can touch both in one slot of a cluster, and the cache's ACL pattern covers both."""
    name = EntryName("c" * 16, Keyspace("0" * 16, 3), "tag", "ff" + "0" * 62)
    assert name.key == "{cw1:cccccccccccccccc:63}:0000000000000000-3:tag:ff" + "0" * 62
    assert name.record_key == "{cw1:cccccccccccccccc:63}:record" == record_key("c" * 16, "63")
    assert name.key.startswith(key_pattern("c" * 16).removesuffix("*"))


def test_hash_tags_are_spread() -> None:
    """Every tag is used, and about equally often."""
    tags = [hash_tag(digest(with_body(seed=number))) for number in range(64 * 40)]
    counts = [tags.count(tag) for tag in TAGS]
    assert set(tags) == set(TAGS)
    assert max(counts) < 40 * 2.5


def test_a_lone_surrogate_has_no_digest() -> None:
    """It cannot be written as UTF-8, so it has no canonical form."""
    with pytest.raises(AmbiguousJson):
        digest(with_body(stop="\ud800"))


@pytest.mark.parametrize("text", ["", "zz", "ab" * 31, "ab" * 33, "é" * 64])
def test_a_wrong_digest_key_is_refused(text: str) -> None:
    """Only 64 hex digits make a key, and the message does not quote it."""
    with pytest.raises(InvalidDocument) as caught:
        parse_digest_key(text)
    assert not text or text not in str(caught.value)


def test_a_digest_key_may_end_with_a_line_feed() -> None:
    """Files written by hand end so."""
    assert parse_digest_key("ab" * 32 + "\n") == b"\xab" * 32
