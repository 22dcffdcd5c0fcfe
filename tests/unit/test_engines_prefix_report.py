"""What a chat log's prompts share, what breaks that, and what mending brings."""

from __future__ import annotations

import random
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.engines.prefix.breakers import FIXES, BreakerKind, find_breaker
from cachewright.engines.prefix.chat_log import LogFields, LoggedRequest, Passed, check_any, read_log
from cachewright.engines.prefix.mending import Mending
from cachewright.engines.prefix.prompts import render
from cachewright.engines.prefix.report import AnalysisSettings, PrefixReport, analyze
from cachewright.errors import InvalidInput
from tests.support.chat_logs import RULES, TOOLS, as_lines, chat, log_of

NAMES = ("Ann", "Bo", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ivy", "Joe")


def read(log: bytes) -> list[LoggedRequest]:
    """Read a log whole; nothing in it may be passed over."""
    passed = Passed()
    requests = list(read_log(log.splitlines(), LogFields(), passed))
    assert not passed.bad_lines
    assert not passed.not_chat
    return requests


def report(log: bytes, **settings: int | bool | None) -> PrefixReport:
    """Analyze a log."""
    return analyze(read(log), AnalysisSettings(**settings))  # type: ignore[arg-type]


def shuffled(number: int) -> str:
    """Give the rules in an order of their own."""
    lines = RULES.splitlines()
    random.Random(number).shuffle(lines)  # noqa: S311 - an order, no secret
    return "You help with orders.\n" + "\n".join(lines)


def json_in_any_order(number: int) -> str:
    """Give facts as JSON with keys in an order of their own."""
    facts = [("shop", "north"), ("currency", "EUR"), ("plan", "gold"), ("open", "9-17")]
    random.Random(number).shuffle(facts)  # noqa: S311 - an order, no secret
    return f"Facts: {orjson.dumps(dict(facts)).decode()}\n{RULES}"


HABITS: dict[BreakerKind, Callable[[int], str]] = {
    BreakerKind.TIMESTAMP: lambda n: f"It is 2026-11-28T10:{n:02}:00Z.\n{RULES}",
    BreakerKind.REQUEST_ID: lambda n: f"Session {(n + 7) * 0x1F2E3D4C5B6A7:016x}.\n{RULES}",
    BreakerKind.EMAIL: lambda n: f"You talk to {NAMES[n]}@example.com.\n{RULES}",
    BreakerKind.NAME: lambda n: f"You talk to {NAMES[n]}.\n{RULES}",
    BreakerKind.NUMBER: lambda n: f"There are {n * 13 + 1} tickets open.\n{RULES}",
    BreakerKind.JSON_ORDER: json_in_any_order,
    BreakerKind.LINE_ORDER: shuffled,
    BreakerKind.SPACING: lambda n: f"You help{' ' * (n + 1)}with orders.\n{RULES}",
    BreakerKind.DOCUMENTS: lambda n: f"Use this:\n{(NAMES[n] + ' wrote of it. ') * 40}\n{RULES}",
}


@pytest.mark.parametrize("kind", HABITS)
def test_each_habit_is_named(kind: BreakerKind) -> None:
    """Ten requests of one template with one bad habit: it leads the list, with a sentence on what to do."""
    found = report(log_of(10, HABITS[kind]))
    assert found.breakers[0].kind is kind
    assert found.breakers[0].requests >= 7
    assert found.breakers[0].fix == FIXES[kind]


@pytest.mark.parametrize(
    ("kind", "tools"),
    [
        (BreakerKind.TOOL_ORDER, lambda n: TOOLS[n % 5 :] + TOOLS[: n % 5]),
        (BreakerKind.TOOL_SET, lambda n: TOOLS[n % 4 :]),
        (BreakerKind.JSON_ORDER, lambda n: [dict(sorted(t.items(), reverse=n % 2 == 0)) for t in TOOLS]),
    ],
)
def test_habits_with_tools_are_named(
    kind: BreakerKind, tools: Callable[[int], list[dict[str, object]]]
) -> None:
    """Tools in another order, another choice of them, and keys in another order are told apart."""
    log = as_lines(chat(RULES, f"Question {n}?", tools(n)) for n in range(10))
    assert report(log).breakers[0].kind is kind


@pytest.mark.parametrize(
    "kind",
    [
        BreakerKind.TIMESTAMP,
        BreakerKind.REQUEST_ID,
        BreakerKind.EMAIL,
        BreakerKind.NAME,
        BreakerKind.NUMBER,
        BreakerKind.JSON_ORDER,
    ],
)
def test_mending_brings_most_of_it_back(kind: BreakerKind) -> None:
    """With the habit mended, all but the first request find the rules in the cache."""
    found = report(log_of(10, HABITS[kind]))
    assert found.total.rate < 0.2
    assert found.mended.rate > 0.6


def test_good_prompts_have_no_breaker() -> None:
    """A system text that never changes is found by all but the first request; nothing is complained of."""
    found = report(log_of(10, lambda _: RULES))
    assert found.breakers == []
    assert found.total.rate > 0.6
    assert found.mended.hit_tokens == found.total.hit_tokens


def test_a_conversation_is_no_breaker() -> None:
    """Turns that differ come after the system text and are what a conversation is."""
    log = as_lines(
        {
            "messages": [
                {"role": "system", "content": RULES},
                {"role": "user", "content": f"first {n}"},
                {"role": "assistant", "content": f"2026-11-{n + 10}"},
                {"role": "user", "content": "second"},
            ]
        }
        for n in range(10)
    )
    assert report(log).breakers == []


def test_tenants_share_nothing_unless_they_may() -> None:
    """Ten tenants with one template: no reuse with a salt each, much without."""
    log = as_lines(chat(RULES, "Hello?", tenant=f"tenant-{n}") for n in range(10))
    found = report(log)
    assert found.total.hit_tokens == 0
    assert found.shared.rate > 0.6
    assert set(found.by_tenant) == {f"tenant-{n}" for n in range(10)}
    assert report(log, per_tenant=False).total.hit_tokens == found.shared.hit_tokens


def test_models_share_nothing() -> None:
    """Another model computes other blocks."""
    log = as_lines({"model": f"m{n}", "messages": chat(RULES, "x")["body"]["messages"]} for n in range(5))
    assert report(log).total.hit_tokens == 0


def test_templates_are_named_by_the_log_or_by_how_they_begin() -> None:
    """A log's own name wins; else the first words of the system text stand for it."""
    log = as_lines(
        [chat("You help with orders.", "a", template="orders-v3"), chat("You help with orders.", "b")]
    )
    assert set(report(log).by_template) == {"orders-v3", "You help with orders."}


def test_a_small_cache_is_worth_less() -> None:
    """Two templates in turn push each other out of a cache that holds one."""
    log = as_lines(chat(f"{'AB'[n % 2]} {RULES}", f"q{n}") for n in range(10))
    assert report(log, capacity_tokens=96).total.hit_tokens < report(log).total.hit_tokens


def test_many_groups_are_summed_up() -> None:
    """Sixty tenants: fifty lines, and one for the rest."""
    log = as_lines(chat(RULES, "x", tenant=f"t{n}") for n in range(60))
    found = report(log).by_tenant
    assert len(found) == 51
    assert found["(others)"].requests == 10


def test_logs_of_several_forms_are_read() -> None:
    """Bare bodies, batch files and wrapped requests give the same."""
    body = chat(RULES, "x")["body"]
    lines = [body, {"custom_id": "1", "body": body}, {"request": body, "metadata": {"tenant": "a"}}]
    requests = list(read_log(map(orjson.dumps, lines), LogFields(tenant="metadata.tenant"), Passed()))
    assert [r.tenant for r in requests] == ["", "", "a"]
    assert len({render(r).text for r in requests}) == 1


def test_what_cannot_be_read_is_counted() -> None:
    """Broken lines are named by number, other kinds of request by count, and the rest is read."""
    passed = Passed()
    lines = [b"{", b"", b"[]", b'{"input": "an embedding"}', orjson.dumps(chat("s", "q"))]
    assert len(list(read_log(lines, LogFields(), passed))) == 1
    assert passed.bad_lines == [1, 3]
    assert passed.not_chat == 1


@pytest.mark.parametrize("lines", [[b"{"], [b'{"input": "x"}'], []])
def test_a_log_without_a_chat_request_is_refused(lines: list[bytes]) -> None:
    """The message says what a line must look like."""
    passed = Passed()
    requests = list(read_log(lines, LogFields(), passed))
    with pytest.raises(InvalidInput, match="messages"):
        check_any(requests, passed)


@given(st.lists(st.text(max_size=60), min_size=2, max_size=8))
def test_analysis_never_fails_and_is_pure(texts: list[str]) -> None:
    """Whatever the system texts are, hits stay within tokens, and twice gives the same."""
    requests = read(as_lines(chat(text.encode("utf-8", "ignore").decode(), "q") for text in texts))
    first = analyze(requests, AnalysisSettings(block_size=2))
    assert 0 <= first.total.hit_tokens <= first.total.tokens
    assert 0 <= first.mended.hit_tokens <= first.mended.tokens
    assert first.to_dict() == analyze(requests, AnalysisSettings(block_size=2)).to_dict()


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_same_prompt_has_no_breaker(system: str, question: str) -> None:
    """Nothing breaks where nothing differs, nor where only the question does."""
    one, other = (read(as_lines([chat(_valid(system), _valid(q))]))[0] for q in (question, question + "?"))
    assert find_breaker(render(one), render(one)) is None
    assert find_breaker(render(one), render(other)) is None


def _valid(text: str) -> str:
    return text.encode("utf-8", "ignore").decode()


def test_mending_loses_nothing() -> None:
    """What is moved out of the system text stands in the last user message."""
    log = log_of(3, HABITS[BreakerKind.TIMESTAMP])
    requests = read(log)
    breaker = find_breaker(render(requests[0]), render(requests[1]))
    assert breaker is not None
    mended = Mending.learn([(render(requests[1]), breaker)]).mend(requests[1])
    assert "2026-11-28T10:01:00Z" not in mended.messages[0]["content"]
    assert mended.messages[1]["content"].endswith("2026-11-28T10:01:00Z")
