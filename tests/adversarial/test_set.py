"""The adversarial set itself: large, varied, and each case really a pair."""

from __future__ import annotations

from collections import Counter

from tests.adversarial.cases import MARK, Request, load_cases

CASES = load_cases()


def test_set_is_large_and_varied() -> None:
    """There are 250 pairs that must stay apart, in 15 structural classes, none of them a token one."""
    apart = [case for case in CASES if not case.share]
    classes = Counter(case.kind for case in apart)
    assert len(apart) >= 250
    assert len(classes) >= 15
    assert min(classes.values()) >= 4


def test_every_case_has_a_name_of_its_own() -> None:
    """So that a report names one case."""
    ids = [case.id for case in CASES]
    assert len(set(ids)) == len(ids)


def test_pairs_differ_as_they_are_sent() -> None:
    """No pair that must stay apart consists of twice the same request."""

    def sent(request: Request) -> tuple[str, str, tuple[tuple[str, str], ...], str]:
        return request.path, request.query, request.headers, request.body

    assert not [case.id for case in CASES if not case.share and sent(case.a) == sent(case.b)]


def test_every_request_is_marked() -> None:
    """No case can meet the answers of another."""
    assert not [case.id for case in CASES for request in (case.a, case.b) if MARK not in request.body]
