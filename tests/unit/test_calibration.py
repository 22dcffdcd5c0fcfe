"""Calibration: reading pairs, counting with bounds, and choosing a threshold."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.calibration.bounds import Rate
from cachewright.calibration.measures import (
    NO_GUARD,
    Guard,
    Judged,
    by_class,
    curve,
    is_hit,
    point,
    recommended,
)
from cachewright.calibration.pairs import LabelledPair, read_pairs, read_samples, to_label
from cachewright.calibration.report import Wanted, as_json, as_text, make_report, patch
from cachewright.cli.calibrate import shipped_pairs
from cachewright.cli.calibrate_page import page
from cachewright.errors import InvalidDocument
from cachewright.policy.guard import GuardReason

HEAD = "text_a,text_b,same,class,language\n"


def judged(similarity: float | None, *, same: bool, kind: str = "k", refused: str = "") -> Judged:
    """Make a pair with what embedder and guard say of it."""
    reasons = frozenset(GuardReason(each) for each in refused.split())
    return Judged(LabelledPair("a?", "b?", same, kind), similarity, reasons)


def test_csv_json_and_jsonl_say_the_same() -> None:
    """With and without the optional columns, and with every spelling of yes and no."""
    csv = read_pairs('\ufefftext_a,text_b,same\n"How, then?",How?,yes\nWho?,Why?,0\n', "p.csv").pairs
    lines = read_pairs(
        '{"text_a": "How, then?", "text_b": "How?", "same": true}\n\n'
        '{"text_a":"Who?","text_b":"Why?","same":"no"}',
        "p.jsonl",
    ).pairs
    whole = read_pairs(
        '[{"text_a": "How, then?", "text_b": "How?", "label": 1},'
        ' {"text_a":"Who?","text_b":"Why?","label":0}]',
        "p.json",
    ).pairs
    assert csv == lines == whole
    assert csv == [LabelledPair("How, then?", "How?", same=True), LabelledPair("Who?", "Why?", same=False)]


def test_rows_without_a_label_are_counted_and_left_out() -> None:
    """A file may be labelled in several sittings."""
    found = read_pairs(f"{HEAD}a?,b?,,number,en\na?,c?,yes,,DE\n", "p.csv")
    assert found.unlabelled == 1
    assert found.pairs == [LabelledPair("a?", "c?", True, "unclassed", "de")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.txt", "", "p.txt: a file of pairs ends with .csv, .json or .jsonl"),
        ("p.csv", "", "p.csv:1: the first line names the columns, and lacks text_a, text_b, same"),
        ("p.csv", "text_a,text_b\na,b\n", "p.csv:1: the first line names the columns, and lacks same"),
        ("p.csv", f"{HEAD}a,b,yes\n", "p.csv:2: not as many fields as columns"),
        ("p.csv", f"{HEAD}a,b,yes,k,en,more\n", "p.csv:2: not as many fields as columns"),
        ("p.csv", f"{HEAD}a,b,perhaps,k,en\n", "p.csv:2: same is yes or no, not 'perhaps'"),
        ("p.csv", f"{HEAD}a,,yes,k,en\n", "p.csv:2: text_a and text_b are two questions"),
        ("p.csv", f'{HEAD}"a,b,yes,k,en\n', "p.csv:1: not CSV: unexpected end of data"),
        ("p.csv", f"{HEAD}a,b,,k,en\n", "p.csv: no labelled pair, and 1 rows whose `same` is empty"),
        ("p.csv", HEAD, "p.csv: no labelled pair"),
        ("p.json", "{}", "p.json: not a list of pairs"),
        ("p.json", "[1]", "p.json: pair 1: not an object"),
        ("p.jsonl", '{"text_a": "a"\n', "p.jsonl:1: not JSON"),
        (
            "p.jsonl",
            '{"text_a": "a", "text_b": 7, "same": true}',
            "p.jsonl:1: text_a and text_b are two questions",
        ),
    ],
)
def test_an_unreadable_file_says_where_and_what(name: str, text: str, message: str) -> None:
    """The line, or the number of the pair, and what to write there."""
    with pytest.raises(InvalidDocument) as caught:
        read_pairs(text, name)
    assert str(caught.value).startswith(message)


def test_samples_of_shadow_mode_become_rows_to_label() -> None:
    """Each pair once, the most similar first, with what the guard had against it as the class."""
    samples = read_samples(
        '[{"asked": "a?", "stored": "b?", "similarity": 0.93},'
        ' {"asked": "a?", "stored": "c?", "similarity": 0.97, "refused": ["numbers"]},'
        ' {"asked": "a?", "stored": "b?", "similarity": 0.93}]',
        "s.json",
    )
    assert to_label(samples) == [("a?", "c?", "", "numbers", ""), ("a?", "b?", "", "", "")]
    lines = '{"asked": "a?", "stored": "b?", "similarity": 0.93}\n'
    assert to_label(read_samples(lines, "s.jsonl")) == [("a?", "b?", "", "", "")]
    for bad in ("[{}]", '[{"asked": "a", "stored": "b", "similarity": 1, "refused": 3}]', "nothing"):
        with pytest.raises(InvalidDocument):
            read_samples(bad, "s.json")


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.3085),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (10, 10, 0.6915, 1.0),
        (3, 431, 0.0014, 0.0202),
        (0, 0, 0.0, 1.0),
        (61, 5000, 0.0093, 0.0156),
    ],
)
def test_bounds_are_those_of_clopper_and_pearson(count: int, of: int, low: float, high: float) -> None:
    """As statistics packages give them for 95 %."""
    rate = Rate(count, of)
    assert rate.low == pytest.approx(low, abs=5e-5)
    assert rate.high == pytest.approx(high, abs=5e-5)


@given(st.integers(1, 60).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_rate_lies_between_its_bounds(counted: tuple[int, int]) -> None:
    """And more trials at the same rate bring the bounds nearer."""
    rate, more = Rate(*counted), Rate(counted[0] * 4, counted[1] * 4)
    assert rate.value is not None
    assert 0 <= rate.low <= rate.value <= rate.high <= 1
    assert more.high - more.low < rate.high - rate.low


def test_a_hit_needs_similarity_an_embedding_and_the_guards_leave() -> None:
    """At the threshold itself it is one."""
    guard = Guard.of("numbers", (GuardCheck.NUMBERS,))
    assert is_hit(judged(0.9, same=False), 0.9, guard)
    assert not is_hit(judged(0.89, same=True), 0.9, guard)
    assert not is_hit(judged(None, same=True), 0.5, guard)
    assert not is_hit(judged(0.99, same=True, refused="numbers"), 0.9, guard)
    assert not is_hit(judged(0.99, same=True, refused="language"), 0.9, guard)
    assert is_hit(judged(0.99, same=True, refused="names order"), 0.9, guard)
    assert is_hit(judged(0.99, same=True, refused="language"), 0.9, NO_GUARD)
    lenient = Guard.of("numbers", (GuardCheck.NUMBERS,), other_languages=True)
    assert is_hit(judged(0.99, same=True, refused="language"), 0.9, lenient)


PAIRS = [
    judged(0.99, same=True),
    judged(0.96, same=True, refused="negation"),
    judged(0.91, same=True),
    judged(0.98, same=False, kind="n", refused="numbers"),
    judged(0.95, same=False, kind="n"),
    judged(0.80, same=False),
]


def test_precision_recall_and_false_hits_are_counted() -> None:
    """Over all pairs and by class, with the guard and without."""
    guard = Guard.of("default", DEFAULT_GUARD)
    found = point(PAIRS, 0.9, guard)
    assert (found.precision, found.recall, found.false_hits) == (Rate(2, 3), Rate(2, 3), Rate(1, 3))
    bare = point(PAIRS, 0.9, NO_GUARD)
    assert (bare.precision, bare.recall, bare.false_hits) == (Rate(3, 5), Rate(3, 3), Rate(2, 3))
    rows = {row.kind: row for row in by_class(PAIRS, 0.9, guard)}
    assert list(rows) == ["k", "n"]
    assert (rows["n"].false_hits, rows["n"].without_guard) == (Rate(1, 2), Rate(2, 2))
    assert (rows["k"].false_hits, rows["k"].recall) == (Rate(0, 1), Rate(2, 3))


def test_the_recommended_threshold_is_the_lowest_that_keeps_the_bound_from_there_on() -> None:
    """A lucky threshold below a bad one is not taken, and few pairs prove nothing."""
    different = [judged(0.5, same=False)] * 500
    pairs = [*different, *[judged(0.97, same=False)] * 30, *[judged(0.99, same=True)] * 20]
    found = recommended(curve(pairs, NO_GUARD), 0.01)
    assert found is not None
    assert found.threshold == 0.975
    assert recommended(curve(PAIRS, NO_GUARD), 0.01) is None
    assert recommended(curve([*different, judged(0.3, same=True)], NO_GUARD), 0.01) is None


@given(
    st.lists(
        st.tuples(st.none() | st.floats(-1, 1), st.booleans(), st.sampled_from(["", "numbers", "order"])),
        max_size=40,
    )
)
def test_a_higher_threshold_and_a_stricter_guard_never_let_more_through(
    rows: list[tuple[float | None, bool, str]],
) -> None:
    """For any pairs at all."""
    pairs = [judged(similarity, same=same, refused=refused) for similarity, same, refused in rows]
    hits = [each.precision.of for each in curve(pairs, NO_GUARD)]
    assert hits == sorted(hits, reverse=True)
    strict = [each.precision.of for each in curve(pairs, Guard.of("default", DEFAULT_GUARD))]
    assert all(guarded <= bare for guarded, bare in zip(strict, hits, strict=True))


def test_a_report_is_told_as_text_as_json_and_as_a_patch() -> None:
    """All three speak of the same threshold and the same guard."""
    pairs = [*[judged(0.5, same=False)] * 400, *[judged(0.99, same=True)] * 20, judged(None, same=False)]
    report = make_report(pairs, "builtin m", Wanted())
    assert patch(report) == {
        "spec": {"layers": {"semantic": {"threshold": 0.505, "guard": [str(each) for each in DEFAULT_GUARD]}}}
    }
    told = as_json(report)
    assert told["recommended"]["threshold"] == told["threshold"] == 0.505
    assert told["recommended"]["falseHits"] == {
        "count": 0,
        "of": 401,
        "rate": 0.0,
        "low": 0.0,
        "high": 0.009157,
    }
    assert told["notEmbeddable"] == 1
    assert [each["guard"] for each in told["guards"]][:2] == ["none", "Numbers alone"]
    text = as_text(report)
    assert "Recommended threshold: 0.505" in text
    assert "1 pairs never hit" in text
    unproven = make_report(PAIRS, "builtin m", Wanted())
    assert unproven.chosen is None
    assert "No threshold keeps the false-hit rate's upper bound within 2.0%" in as_text(unproven)
    assert as_json(unproven)["recommended"] is None


def test_the_shipped_pairs_are_many_distinct_and_of_every_class() -> None:
    """Each class of differences has pairs that differ, and what means the same is there to be kept."""
    pairs = shipped_pairs()
    assert len(pairs) >= 400
    assert len({frozenset((pair.text_a, pair.text_b)) for pair in pairs}) == len(pairs)
    assert sum(pair.language != "en" for pair in pairs) >= 40
    assert sum(pair.same for pair in pairs) >= 150
    different = Counter(pair.kind for pair in pairs if not pair.same)
    assert set(different) == {
        "number", "unit", "negation", "antonym", "direction", "date", "name", "scope", "person", "tense",
        "script", "emoji", "long_tail",
    }  # fmt: skip
    assert min(different.values()) >= 18
    assert all(pair.text_a != pair.text_b for pair in pairs)


def test_a_page_has_every_figure_and_needs_nothing_else() -> None:
    """Names are escaped, the threshold in use is marked, and nothing is fetched from elsewhere."""
    pairs = [LabelledPair(f"a {n}?", f"b {n}?", n % 2 == 0, "long_tail") for n in range(40)]
    told = [Judged(pair, 0.9 if pair.same else 0.6, frozenset()) for pair in pairs]
    report = make_report(told, "<model>", Wanted(most_false_hits=0.5, threshold=0.85))
    shown = page(report, "<svg></svg>")
    assert "<h1>Calibration of &lt;model&gt;</h1>" in shown
    assert '<tr class="chosen"><td>0.850</td><td>100.0%' in shown
    assert "<td>long tail</td>" in shown
    assert "threshold: 0.85" in shown
    assert not re.search(r"https?:|<script|<link|\bsrc=", shown)
