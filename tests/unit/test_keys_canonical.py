"""Canonical JSON: every spelling of one request is one form, and what readers disagree about is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.errors import AmbiguousJson, InvalidJson
from cachewright.keys.canonical import canonical_json, parse_json

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)


def canonical(text: str | bytes) -> bytes:
    """Return the canonical form of a text."""
    return canonical_json(parse_json(text.encode() if isinstance(text, str) else text))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1", b"1"),
        ("1.0", b"1"),
        ("1e0", b"1"),
        ("10E-1", b"1"),
        ("1e2", b"100"),
        ("100.0", b"100"),
        ("0.1", b"0.1"),
        ("1e-1", b"0.1"),
        ("0.10000000000000000001", b"0.1"),
        ("-0", b"0"),
        ("-0.0", b"0"),
        ("0.7", b"0.7"),
        ("18446744073709551615", b"18446744073709551615"),
        ("-9223372036854775808", b"-9223372036854775808"),
        ("9007199254740993", b"9007199254740993"),
        ("1e22", b"1e+22"),
        ("5e-324", b"5e-324"),
        ("true", b"true"),
        ("null", b"null"),
        ('"\\u0041\\/"', b'"A/"'),
        ('"\u00e9"', '"é"'.encode()),
        ('"e\u0301"', '"e\u0301"'.encode()),
        (' { "b" : [ 2 , 1 ] ,\n"a" : { } } ', b'{"a":{},"b":[2,1]}'),
    ],
)
def test_each_spelling_has_one_form(text: str, form: bytes) -> None:
    """Numbers of equal value, escapes and white space fall together; arrays and Unicode stay as sent."""
    assert canonical(text) == form


@pytest.mark.parametrize(
    ("one", "other"), [("1", "true"), ("0", "false"), ('"1"', "1"), ("null", '""'), ("[]", "{}")]
)
def test_different_values_stay_different(one: str, other: str) -> None:
    """Python's 1 == True and the like do not reach the key."""
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":1}',
        b'{"a":{"b":[{"c":1,"\\u0063":2}]}}',
        b"18446744073709551616",
        b"-9223372036854775809",
        b"1" + b"0" * 5000,
        b"1e400",
        b"-1e400",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b'{"\\udfff":1}',
        b"[" * 600 + b"]" * 600,
        b"[" * 100_000,
        '{"a":1}'.encode("utf-16"),
    ],
)
def test_ambiguous_bodies_are_refused(text: bytes) -> None:
    """Duplicate keys, big integers, non-finite numbers, bad Unicode and bottomless nesting have no form."""
    with pytest.raises(AmbiguousJson):
        canonical(text)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"{'a':1}", b"{} {}", b"01", b'"\n"', b"\xef\xbb\xbf{}", b"+1", b".5"]
)
def test_what_is_not_json_is_told_apart(text: bytes) -> None:
    """A body that is not JSON at all is not called ambiguous."""
    with pytest.raises(InvalidJson) as caught:
        parse_json(text)
    assert not isinstance(caught.value, AmbiguousJson)


@given(st.binary(max_size=200))
def test_no_input_raises_anything_else(body: bytes) -> None:
    """Whatever arrives, the parser ends with a value or with one of its two errors."""
    with contextlib.suppress(InvalidJson):
        canonical(body)


def shuffled(value: Any) -> Any:
    """Return the value with the keys of every object in reverse order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(JSON_VALUES)
def test_order_of_keys_does_not_matter(value: Any) -> None:
    """Permuted object keys at any depth, and another layout, give the same form."""
    plain = canonical(json.dumps(value))
    assert plain == canonical(json.dumps(shuffled(value), indent=2, ensure_ascii=False))


@given(JSON_VALUES)
def test_the_form_is_stable(value: Any) -> None:
    """The canonical form of a canonical form is itself, and it says the same as the text did."""
    form = canonical(json.dumps(value))
    assert canonical(form) == form
    assert json.loads(form) == value
