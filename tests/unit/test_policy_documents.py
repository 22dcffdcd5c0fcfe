"""Documents: where their ids are found, in which order, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.document import RoutePolicy
from cachewright.policy.documents import MAX_DOCUMENTS, MAX_ID_BYTES, find_documents
from cachewright.policy.reasons import BypassReason

ROUTE = RoutePolicy(name="rag", path="/v1/chat/completions", layers=("Exact",))
REQUIRED = ROUTE.model_copy(update={"documents_required": True})
MARKED = ROUTE.model_copy(update={"documents_between": ("[doc:", "]")})


def in_header(*values: bytes) -> tuple[str, ...] | BypassReason:
    """Find the documents of a request that names them in the header alone."""
    return find_documents(values, {}, ROUTE)


def in_metadata(declared: object) -> tuple[str, ...] | BypassReason:
    """Find the documents of a request that names them in its metadata alone."""
    return find_documents((), {"metadata": {"cachewright_documents": declared}}, ROUTE)


def in_text(*texts: str) -> tuple[str, ...] | BypassReason:
    """Find the documents of a request with these messages on a route with marks."""
    return find_documents((), {"messages": [{"role": "user", "content": text} for text in texts]}, MARKED)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([], ()),
        ([b""], ()),
        ([b"a"], ("a",)),
        ([b" b , a,,b "], ("b", "a")),
        ([b"a", b"b,c"], ("a", "b", "c")),
        ([b'["a, b", " c "]'], ("a, b", "c")),
        ([b"[]"], ()),
        (["ä,ö".encode()], ("ä", "ö")),
        ([b'["\\u00e4"]'], ("ä",)),
        ([b"\xe4"], BypassReason.DOCUMENTS),
        ([b'["a"'], BypassReason.DOCUMENTS),
        ([b'["a"], ["b"]'], BypassReason.DOCUMENTS),
        ([b"[1]"], BypassReason.DOCUMENTS),
        ([b'[""]'], BypassReason.DOCUMENTS),
        ([b'["\\ud800"]'], BypassReason.DOCUMENTS),
    ],
)
def test_the_header(values: list[bytes], found: tuple[str, ...] | BypassReason) -> None:
    """Ids with commas, or one JSON list a line."""
    assert in_header(*values) == found


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        (None, ()),
        ("", ()),
        ("a, b", ("a", "b")),
        ('["a", "b"]', ("a", "b")),
        (["b", "a", "b"], ("b", "a")),
        ([], ()),
        (7, BypassReason.DOCUMENTS),
        ({"a": 1}, BypassReason.DOCUMENTS),
        (["a", 7], BypassReason.DOCUMENTS),
        (["a", None], BypassReason.DOCUMENTS),
        ([["a"]], BypassReason.DOCUMENTS),
        (["\ud800"], BypassReason.DOCUMENTS),
    ],
)
def test_metadata(declared: object, found: tuple[str, ...] | BypassReason) -> None:
    """The same texts, or a real list; nothing else is guessed at."""
    assert in_metadata(declared) == found


@pytest.mark.parametrize("metadata", [None, [], "a", {"other": "x"}])
def test_other_metadata_names_nothing(metadata: object) -> None:
    """It is the client's own."""
    assert find_documents((), {"metadata": metadata}, ROUTE) == ()


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["no mark"], ()),
        (["[doc:a] text [doc: b ]", "[doc:a]"], ("a", "b")),
        (["[doc:] [doc:  ]"], ()),
        (["[doc:a"], ()),
        (["a]"], ()),
        (["[doc:never ended [doc:a] [doc:b"], ("a",)),
        (["[doc:a", "b]"], ()),
    ],
)
def test_marks_in_the_text(texts: list[str], found: tuple[str, ...]) -> None:
    """A mark without its counterpart, in a user's own words too, hides no id that follows."""
    assert in_text(*texts) == found


def test_marks_are_found_in_every_text_of_the_body() -> None:
    """In parts of messages, instructions and inputs, in an order that spelling does not change."""
    body: dict[str, Any] = {
        "prompt": ["[doc:4]"],
        "messages": [{"content": [{"type": "text", "text": "[doc:3]"}], "role": "user"}],
        "input": [{"content": [{"text": "[doc:2]"}]}],
        "instructions": "[doc:22]",
    }
    found = ("2", "22", "3", "4")
    assert find_documents((), body, MARKED) == found
    assert find_documents((), dict(reversed(body.items())), MARKED) == found
    assert find_documents((), body, ROUTE) == ()


def test_all_places_count_together() -> None:
    """Header, then metadata, then text; an id that comes again keeps its first place."""
    body = {"metadata": {"cachewright_documents": "b,a"}, "prompt": "[doc:c][doc:b]"}
    assert find_documents([b"a"], body, MARKED) == ("a", "b", "c")


def test_a_route_may_need_documents() -> None:
    """None at all is a reason of its own, and so is what cannot be read."""
    assert find_documents((), {}, REQUIRED) is BypassReason.NO_DOCUMENTS
    assert find_documents([b" , "], {"metadata": {}}, REQUIRED) is BypassReason.NO_DOCUMENTS
    assert find_documents([b"[1]"], {}, REQUIRED) is BypassReason.DOCUMENTS
    assert find_documents([b"a"], {}, REQUIRED) == ("a",)


def test_their_number_is_bounded() -> None:
    """Repeated ones count once."""
    ids = [f"d{number}" for number in range(MAX_DOCUMENTS)]
    assert in_metadata(ids * 2) == tuple(ids)
    assert in_metadata([*ids, "one more"]) is BypassReason.DOCUMENTS


def test_their_size_is_bounded() -> None:
    """In bytes of UTF-8, wherever they stand."""
    longest = "ä" * (MAX_ID_BYTES // 2)
    assert in_metadata([longest]) == (longest,)
    assert in_metadata([longest + "a"]) is BypassReason.DOCUMENTS
    assert in_text(f"[doc:{longest}a]") is BypassReason.DOCUMENTS


@given(st.text("[doc:]ab "))
def test_any_text_can_be_searched(text: str) -> None:
    """No id that is found holds a mark."""
    found = in_text(text)
    assert isinstance(found, tuple)
    assert not any("[doc:" in name or "]" in name for name in found)


@pytest.mark.parametrize("text", ["[doc:", "[doc:a", "]", "[doc:a]"])
def test_a_megabyte_of_marks_takes_no_time(text: str) -> None:
    """The search is linear in what it reads."""
    began = time.process_time()
    in_text(text * (2**20 // len(text)))
    assert time.process_time() - began < 1


def test_a_deeply_nested_body_can_be_searched() -> None:
    """As deep as what JSON we read may be."""
    body: Any = "[doc:a]"
    for _ in range(5000):
        body = [body]
    assert find_documents((), {"x": body}, MARKED) == ("a",)
