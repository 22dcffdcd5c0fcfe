"""Bodies with a salt: what is written where, for bodies whole and in parts of any size."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.gateway.upstream import blotted
from cachewright.policy.salted_request import Tail, opens_object, salted

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


async def parts_of(data: bytes, sizes: list[int]) -> AsyncIterator[bytes]:
    """Cut bytes into parts."""
    for size in sizes:
        yield data[:size]
        data = data[size:]
    yield data


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.text(" \n", max_size=3), st.booleans())
def test_the_salt_is_the_only_change(request: dict[str, object], blanks: str, has_own: bool) -> None:
    """An object gets the field, or has its own replaced, and says the same in all else."""
    sent = {"cache_salt": "own", **request} if has_own else request
    body = salted((blanks + json.dumps(sent) + blanks).encode(), "salt")
    assert json.loads(body) == {**request, "cache_salt": "salt"}
    assert body.count(b'"salt"') >= 1
    assert not has_own or b'"own"' not in body


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.lists(st.integers(0, 9), max_size=9))
def test_parts_come_out_as_the_whole_would(request: dict[str, object], sizes: list[int]) -> None:
    """However a body is cut, it is salted the same; what a client said is not last any more."""
    data = (json.dumps({"cache_salt": "own", **request}) + " \n").encode()
    tail, out = Tail("salt"), b""
    for size in sizes:
        out += tail.feed(data[:size])
        data = data[size:]
    out += tail.feed(data) + tail.finish()
    assert json.loads(out) == {**request, "cache_salt": "salt"}


def test_a_body_that_cannot_be_parsed_is_salted_last() -> None:
    """Two readers could see two values in it; both see ours."""
    body = salted(b'{"n": 123456789012345678901234567890, "cache_salt": "own"}', "salt")
    assert json.loads(body)["cache_salt"] == "salt"


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'"text"', '{"a": 1}'.encode("utf-16")])
def test_what_is_no_object_is_told(body: bytes) -> None:
    """Nothing is written into what is no JSON object in UTF-8."""
    assert not opens_object(body)
    assert body.endswith(b"}") or salted(body, "salt") == body


@given(st.lists(st.integers(0, 12), max_size=8), st.text("ab", max_size=12))
async def test_a_hidden_text_never_shows(sizes: list[int], around: str) -> None:
    """However an error is cut into parts, the text in it comes out as as many stars."""
    data = f"{around}SECRET{around}SECRET".encode()
    seen = b"".join([part async for part in blotted(parts_of(data, sizes), b"SECRET")])
    assert seen == data.replace(b"SECRET", b"******")
