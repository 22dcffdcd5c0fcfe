"""Reading YAML as kubectl reads it, with the place of every part."""

from __future__ import annotations

import json

import pytest

from cachewright.cli.manifests import Manifest, Position, plain_value, read_manifests
from cachewright.errors import InvalidDocument
from tests.support.scalars import SCALARS


def read(text: str) -> Manifest:
    """Return the one object of a text."""
    (manifest,) = read_manifests(text)
    return manifest


@pytest.mark.parametrize(("text", "value"), SCALARS.items())
def test_plain_scalars(text: str, value: object) -> None:
    """Booleans of YAML 1.1, no dates, no base 60."""
    assert plain_value(text) == value
    assert type(plain_value(text)) is type(value)


def test_quoted_and_tagged_scalars() -> None:
    """Quotes make text of anything; so does !!str."""
    value = read("a: '1'\nb: \"yes\"\nc: !!str 5\nd: !!int '5'\ne: |\n  12\nf: !odd 3\n").value
    assert value == {"a": "1", "b": "yes", "c": "5", "d": 5, "e": "12\n", "f": "3"}


def test_keys_become_text() -> None:
    """JSON has text keys only; numbers and booleans are written out."""
    assert read("1: a\nyes: b\n1.5: c\n").value == {"1": "a", "true": "b", "1.5": "c"}


def test_every_part_has_its_place() -> None:
    """Fields stand where their key is, items where they begin, both counted from 1."""
    manifest = read("# comment\nspec:\n  routes:\n  - name: a\n  - {name: b, layers: [Exact]}\n")
    assert manifest.positions == {
        (): Position(2, 1),
        ("spec",): Position(2, 1),
        ("spec", "routes"): Position(3, 3),
        ("spec", "routes", 0): Position(4, 5),
        ("spec", "routes", 0, "name"): Position(4, 5),
        ("spec", "routes", 1): Position(5, 5),
        ("spec", "routes", 1, "name"): Position(5, 6),
        ("spec", "routes", 1, "layers"): Position(5, 15),
        ("spec", "routes", 1, "layers", 0): Position(5, 24),
    }
    assert manifest.position(("spec", "upstream", "url")) == Position(2, 1)


def test_a_key_written_twice_is_a_defect() -> None:
    """The last one counts, as in kubectl, and the place of the second is noted."""
    manifest = read("a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert manifest.value == {"a": 3, "b": {"c": 2}}
    assert [defect.position for defect in manifest.defects] == [Position(2, 11), Position(3, 1)]


def test_what_json_cannot_hold_is_a_defect() -> None:
    """Infinity and NaN have no JSON form."""
    assert [defect.position.line for defect in read("a: .inf\nb: -.Inf\nc: .nan\nd: '.nan'\n").defects] == [
        1,
        2,
        3,
    ]


def test_anchors_and_merges() -> None:
    """Aliases repeat, merges fill in, own keys win, and neither is a doubled key."""
    value = read("base: &x {a: 1, b: 2}\none: {<<: *x, b: 3}\ntwo: {<<: [{a: 9}, *x]}\nsame: *x\n").value
    assert value["one"] == {"a": 1, "b": 3}
    assert value["two"] == {"a": 9, "b": 2}
    assert value["same"] == value["base"]


def test_documents_and_lists_are_taken_apart() -> None:
    """Each document and each item of a List is an object of its own, with its own places."""
    text = "---\n---\nkind: A\n---\nkind: List\nitems:\n- kind: B\n- kind: C\n  x: 1\n---\n# only a comment\n"
    manifests = list(read_manifests(text))
    assert [manifest.value["kind"] for manifest in manifests] == ["A", "B", "C"]
    assert manifests[2].position(("x",)) == Position(9, 3)


def test_characters_beyond_16_bits_in_json() -> None:
    """JSON's pair of escapes is one character."""
    assert read('{"a": "\\ud83d\\ude00"}').value == {"a": "\U0001f600"}


def test_json_with_tabs() -> None:
    """JSON may be indented with tabs, which YAML does not allow."""
    document = {"kind": "A", "spec": {"text": "a\tb", "list": [1, True, None]}}
    assert read(json.dumps(document, indent="\t")).value == document


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [\n", "line 2, column 1"),
        ("a: b: c\n", "line 1, column 5"),
        ("a: *nowhere\n", "line 1, column 4"),
        ("a: &a [*a]\n", "an alias contains itself"),
        ("a: &a {<<: *a}\n", "<< takes a mapping"),
        ("a: {<<: 5}\n", "<< takes a mapping"),
        ("? [a]\n: b\n", "a key must be text"),
        ("~: b\n", "a key must be text"),
        ("[" * 5000, "recursion"),
        ('a: "\\ud800"\n', "half a character"),
        ("a: \x00\n", "special characters are not allowed"),
    ],
)
def test_what_cannot_be_read_says_where(text: str, words: str) -> None:
    """The error has the place, and no text makes the reader fail in another way."""
    with pytest.raises(InvalidDocument) as caught:
        list(read_manifests(text))
    assert words in str(caught.value)


def test_aliases_cannot_multiply_without_end() -> None:
    """A short text that stands for billions of values is refused in little time."""
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))
    with pytest.raises(InvalidDocument, match="more than"):
        list(read_manifests(f"l0: &l0 [x]\n{levels}"))
