"""The run itself: it finds the wrong hits of a cache that has them, and the soak knows a crossed answer."""

from __future__ import annotations

import json

import aiohttp
import pytest
from yarl import URL

from bench.load import Timing
from bench.results import Row, Target, verdict
from bench.traffic import Ask, Fate, judge
from bench.upstream import Upstream
from e2e.engine.http11 import Request, Response
from tests.adversarial.cases import load_cases
from tests.adversarial.runner import Verdict, count_by_class, run_cases
from tests.gateway.harness import ScriptedUpstream


async def test_a_cache_that_knows_only_messages_is_caught(upstream: Upstream) -> None:
    """A cache keyed by the messages alone mixes up tenants, parameters and tools, and the run says so."""
    kept: dict[str, Response] = {}

    async with aiohttp.ClientSession() as session:

        async def careless(request: Request) -> Response:
            try:
                key = json.dumps(json.loads(request.body)["messages"])
            except (ValueError, KeyError):
                return Response(400)
            if key not in kept:
                url = URL(f"{upstream.url}{request.path}", encoded=True)
                async with session.post(url, data=request.body) as answer:
                    kept[key] = Response(answer.status, await answer.read(), answer.content_type)
            return kept[key]

        async with ScriptedUpstream(careless) as gateway:
            results = await run_cases(gateway.url, load_cases())
    counted = count_by_class(results)
    for kind in ("tenant", "role", "parameter", "tools", "unknown_field", "vary_header", "path"):
        assert counted[kind][1] > counted[kind][0] / 2, kind
    for kind in ("system_prompt", "history", "image", "part_boundary"):
        assert counted[kind][1] == 0, kind
    assert not [result.case.id for result in results if result.verdict is Verdict.NOT_CACHED]


async def test_no_cache_at_all_is_told_apart(upstream: Upstream) -> None:
    """Without a cache nothing is wrong, but every pair is known to have proved nothing."""
    cases = [case for case in load_cases() if case.kind == "tenant"]
    results = await run_cases(upstream.url, cases)
    assert {result.verdict for result in results} == {Verdict.NOT_CACHED}


def answer(tenant: str, asked: str) -> bytes:
    """Return an answer that says for whom it was computed."""
    text = json.dumps({"call": 1, "tenant": tenant, "asked": asked})
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


@pytest.mark.parametrize(
    ("status", "body", "troubled", "fate"),
    [
        (200, answer("a", "q"), False, Fate.ANSWERED),
        (200, answer("b", "q"), False, Fate.CROSSED),
        (200, answer("a", "other"), True, Fate.CROSSED),
        (200, b'{"choices": [', False, Fate.LOST),
        (200, b'{"choices": [', True, Fate.BROKEN),
        (503, b"", False, Fate.LOST),
        (503, b"", True, Fate.FAILED),
        (500, b"", True, Fate.LOST),
        (0, b"", False, Fate.LOST),
        (0, b"", True, Fate.BROKEN),
    ],
)
def test_the_soak_knows_what_must_not_happen(status: int, body: bytes, troubled: bool, fate: Fate) -> None:
    """An answer of somebody else is crossed; a missing one is lost, unless the upstream broke."""
    ask = Ask("a", "q", b"", streamed=False, leaves=False)
    assert judge(ask, Timing(status, 0.1, 0.1, body), troubled) is fate


def test_a_stream_without_its_end_is_lost() -> None:
    """A stream that ends early says nothing wrong, and is no answer."""
    text = json.dumps({"call": 1, "tenant": "a", "asked": "q"})
    whole = b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"
    ask = Ask("a", "q", b"", streamed=True, leaves=False)
    assert judge(ask, Timing(200, 0.1, 0.1, whole), troubled=False) is Fate.LOST
    assert judge(ask, Timing(200, 0.1, 0.1, whole + b"data: [DONE]\n\n"), troubled=False) is Fate.ANSWERED


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (1.0, 5.0, "≤ 2.00: reached"),
        (3.0, 5.0, "≤ 2.00: **not reached**"),
        (3.0, 1.0, "≤ 2.00: **not reached**; **we lose**"),
    ],
)
def test_the_table_says_where_we_lose(ours: float, theirs: float, said: str) -> None:
    """A missed target and a better peer are both named."""
    values = {"cachewright": [ours], "LiteLLM": [theirs]}
    assert verdict(Row("s", "t", "p50", "ms", Target(2), values=values)) == said
