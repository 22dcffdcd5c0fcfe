"""The numbers that people watch: taken from the gateway's metrics, told in lines and in a picture."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from cachewright.crd.validation import load
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.keys.record import Record
from cachewright.local.edition import UpstreamChoice, make_edition
from cachewright.local.facts import PARAPHRASE, Facts
from cachewright.local.lines import line, shown_seconds
from cachewright.local.numbers import History, Tally, quantile, take_tally
from cachewright.local.view import picture, sparkline
from tests.local.harness import QUICKSTART


def facts(**changes: object) -> Facts:
    """Return the facts of a run of the quickstart, with some fields of the spec changed."""
    document = yaml.safe_load(QUICKSTART.read_text())
    document["spec"].update(changes)
    edition = make_edition(
        load(document),
        {("keys", "k"): b"[]"},
        Record("0" * 16, 0, 0),
        "ab" * 32,
        "memory://",
        UpstreamChoice("http://127.0.0.1:1/v1", is_stand_in=True),
        datetime(2026, 11, 30, tzinfo=UTC),
    )
    token = Path("/run/token")
    return Facts(edition, "cache.yaml", "127.0.0.1", 8080, 1, 2, token, "Valkey", "STAND-IN: a fake")


def busy() -> GatewayMetrics:
    """Return the metrics of a gateway that has seen something of everything."""
    metrics = GatewayMetrics()
    for outcome, count in (("hit", 8), ("miss", 2), ("bypass", 3), ("upstream_error", 1)):
        metrics.requests.labels("exact", outcome, "default").inc(count)
    for _ in range(8):
        metrics.request_seconds.labels("hit").observe(0.0008)
    for seconds in (0.61, 0.69):
        metrics.request_seconds.labels("miss").observe(seconds)
    metrics.not_cached.labels("sampling").inc(3)
    metrics.not_stored.labels("status").inc(1)
    metrics.saved_seconds.labels("exact").inc(4.8)
    metrics.saved_tokens.labels("local", "prompt").inc(1000)
    metrics.saved_tokens.labels("exact", "completion").inc(234)
    return metrics


def test_a_tally_of_the_metrics() -> None:
    """Outcomes, reasons and times are those of the registry that Prometheus reads."""
    metrics = busy()
    tally = take_tally(metrics.registry, at=5.0)
    assert tally.requests == 14
    assert tally.hit_rate == 0.8
    assert tally.reasons == Counter(sampling=3)
    assert tally.refusals == Counter(status=1)
    half = tally.seconds("hit", 0.5)
    assert half is not None
    assert 0.0007 <= half <= 0.001
    assert tally.seconds("bypass", 0.5) is None
    assert tally.since(tally).saved_tokens == 0
    assert not tally.store_is_left_alone
    metrics.breaker_open.labels("redis").set(1)
    assert take_tally(metrics.registry, at=6.0).store_is_left_alone


def test_the_window_forgets() -> None:
    """Rates are those of the last minute; what was before counts in the whole alone."""
    metrics = busy()
    history = History(take_tally(metrics.registry, at=0.0))
    for second in range(1, 121):
        if second == 30:
            metrics.requests.labels("exact", "hit", "default").inc(5)
        history.add(take_tally(metrics.registry, float(second)))
    assert history.window.requests == 0
    assert history.latest.since(history.first).outcomes == Counter(hit=5)
    assert history.window_seconds == pytest.approx(60, abs=1.5)
    assert sum(step.requests for step in history.steps()) == 0


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ({}, 0.5, None),
        ({1.0: 0, float("inf"): 0}, 0.5, None),
        ({1.0: 10, float("inf"): 10}, 0.5, 0.5),
        ({1.0: 5, 2.0: 10, float("inf"): 10}, 0.75, 1.5),
        ({1.0: 0, 2.0: 10, float("inf"): 10}, 1.0, 2.0),
        ({1.0: 1, float("inf"): 10}, 0.99, 1.0),
    ],
)
def test_quantiles(buckets: dict[float, float], share: float, expected: float | None) -> None:
    """As Prometheus estimates them: by proportion within a bucket, the last bound for what is beyond it."""
    assert quantile(buckets, share) == expected


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.00084, "0.8 ms"), (0.0123, "12 ms"), (2.5, "2500 ms"), (12.0, "12 s")],
)
def test_times_for_people(seconds: float | None, text: str) -> None:
    """Three digits at most, in the unit that fits."""
    assert shown_seconds(seconds) == text


def test_a_line() -> None:
    """One line says how many, how well, how fast and why not."""
    text = line(take_tally(busy().registry, at=10.0), seconds=10.0)
    assert text.startswith("14 requests (1.4/s)  hit rate 80%  hit p50 0.")
    assert "not cached: sampling 3" in text
    assert "not stored: status 1" in text
    assert "\n" not in text


def test_a_line_names_the_most_frequent_reasons_alone() -> None:
    """However many reasons there are, the line stays a line."""
    reasons = Counter({f"reason{number}": number for number in range(1, 10)})
    text = line(Tally(1.0, Counter(bypass=45), reasons), seconds=1.0)
    assert "reason9 9, reason8 8, reason7 7, reason6 6, others 15" in text


def test_a_silent_store_is_told() -> None:
    """Neither line nor picture hides that the store does not answer."""
    tally = replace(take_tally(busy().registry, at=10.0), store_is_left_alone=True)
    assert "left alone" in line(tally, 1.0)
    assert "left alone" in drawn(facts(), tally)


def test_the_picture() -> None:
    """Address, rates, times, reasons, store, model and keyspace, and rows only for what happened."""
    shown = facts()
    text = drawn(shown, take_tally(busy().registry, at=10.0))
    expected = [
        *("http://127.0.0.1:8080/v1", "80%", "hit", "miss", "not looked up", "upstream failed"),
        *(
            "saved 5 s of waiting, 1,234 tokens",
            "sampling 3",
            "status 1",
            "demo-model at version 1",
            shown.keyspace,
            "Valkey",
            "STAND-IN",
        ),
    ]
    for part in expected:
        assert part in text
    assert "refused" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_bars() -> None:
    """Nothing is a flat line, the most is the tallest, and many are drawn in groups."""
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 1, 7]) == "▁▂█"
    assert len(sparkline([1] * 120)) == 30


@pytest.mark.parametrize(
    ("tenancy", "said"),
    [
        ({"mode": "Single"}, "all requests are one tenant's"),
        ({"source": {"trustedHeader": {"name": "X-T"}}}, "header X-T"),
        (
            {"source": {"trustedHeader": {"name": "X-T"}}, "role": {"header": "X-R"}},
            "header X-T, role from header X-R",
        ),
        ({"source": {"clientCredential": {}}}, "each client's own key of the upstream"),
        ({"source": {"apiKeys": {"secretRef": {"name": "keys", "key": "k"}}}}, "API keys, as bearer tokens"),
    ],
)
def test_the_greeting_fits_the_tenancy(tenancy: dict[str, object], said: str) -> None:
    """The requests to paste carry what makes them cached: tenant, role or key."""
    shown = facts(tenancy=tenancy)
    greeting = shown.greeting()
    assert said in greeting
    curls = [each for each in greeting.splitlines() if each.startswith("  curl -si")]
    assert len(curls) == 3
    for name in shown.headers:
        assert all(f"-H '{name}: " in curl for curl in curls)
    assert ("YOUR_API_KEY" in greeting) == shown.needs_key


def test_a_greeting_of_similar_questions_has_one_in_other_words() -> None:
    """Where the first route for chats looks for them, and nowhere else."""
    semantic: dict[str, object] = {
        "layers": {"exact": {}, "semantic": {"store": "Qdrant"}},
        "embedder": {"builtin": {}},
    }
    semantic["stores"] = {"redis": {"managed": {}}, "qdrant": {"managed": {}}}
    similar, exact = {"name": "faq", "layers": ["Exact", "Semantic"]}, {"name": "faq"}
    for routes, expected in ((None, 1), ([similar], 1), ([exact], 0)):
        assert facts(**semantic, routes=routes).greeting().count(PARAPHRASE) == expected


def drawn(shown: Facts, tally: Tally) -> str:
    """Draw the picture on a narrow terminal."""
    history = History(Tally(0.0))
    history.add(tally)
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as capture:
        console.print(picture(shown, history, 80))
    return capture.get()


def test_similar_questions_and_vectors_are_shown_where_there_are_any() -> None:
    """Each in a line of its own, and nothing of them where their layers are not used."""
    metrics = busy()
    assert "similar" not in drawn(facts(), take_tally(metrics.registry, 10.0))
    metrics.lookup_seconds.labels("semantic", "hit").observe(0.01)
    for _ in range(3):
        metrics.lookup_seconds.labels("semantic", "miss").observe(0.01)
    metrics.embedding_inputs.labels("hot").inc(5)
    metrics.embedding_inputs.labels("computed").inc(2)
    text = drawn(facts(), take_tally(metrics.registry, 10.0))
    assert "similar questions 1 of 4 looked for" in text
    assert "vectors 5 of 7 from the cache" in text
