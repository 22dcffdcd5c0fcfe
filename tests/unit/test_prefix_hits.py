"""How often an engine's prefix cache hits: what its pods are asked, and what is told of their counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from cachewright.api.conditions import ConditionType
from cachewright.controller.metrics import OperatorMetrics
from cachewright.controller.queue import CacheKey
from cachewright.crd.validation import load
from cachewright.engines.metrics import PrefixCounts
from cachewright.engines.serving import MetricsPlace, metrics_place, version_of_image
from cachewright.engines.settings import Engine
from cachewright.reconcile.prefix.hits import WINDOW_SECONDS, EngineHits, HitHistory
from cachewright.reconcile.prefix.scraping import MOST_BYTES, EngineScrapes
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.prefix.wish import PrefixWish, prefix_wish
from e2e.engine import Engine as StandIn
from e2e.engine import PrefixCache
from tests.support.caches import Document
from tests.support.passes import World
from tests.support.prefix import prefix_cache
from tests.support.waiting import PATIENCE_SECONDS

WORDS = ["serve", "m", "--enable-prefix-caching", "--enable-prompt-tokens-details"]
MINUTE = 60.0
"""Seconds until an engine is asked again."""


@pytest.mark.parametrize(
    ("engine", "words", "port", "place"),
    [
        (Engine.VLLM, ["serve", "m"], None, MetricsPlace(8000, "/metrics")),
        (Engine.VLLM, ["serve", "m", "--port", "9000"], None, MetricsPlace(9000, "/metrics")),
        (Engine.VLLM, ["--port=1", "--port=2"], None, MetricsPlace(2, "/metrics")),
        (Engine.VLLM, ["--port=9000"], 9100, MetricsPlace(9100, "/metrics")),
        (Engine.VLLM, ["--port=$(PORT)"], None, MetricsPlace(8000, "/metrics")),
        (Engine.VLLM, ["--port=99999"], None, MetricsPlace(8000, "/metrics")),
        (Engine.SGLANG, [], None, MetricsPlace(30000, "/metrics")),
        (Engine.TENSORRT_LLM, [], None, MetricsPlace(8000, "/prometheus/metrics")),
        (Engine.TRITON, ["--http-port=1", "--metrics-port=3"], None, MetricsPlace(3, "/metrics")),
    ],
)
def test_metrics_are_where_the_engine_is_told_to_serve(
    engine: Engine, words: list[str], port: int | None, place: MetricsPlace
) -> None:
    """The spec's port, else the arguments' last one, else the engine's default."""
    assert metrics_place(engine, words, port) == place


@pytest.mark.parametrize(
    ("engine", "image", "version"),
    [
        (Engine.VLLM, "vllm/vllm-openai:v0.11.2", "0.11.2"),
        (Engine.VLLM, "mirror.example:5000/vllm/vllm-openai:v0.11.2-x86_64@sha256:0", "0.11.2"),
        (Engine.VLLM, "vllm/vllm-openai:latest", None),
        (Engine.VLLM, "vllm/vllm-openai", None),
        (Engine.VLLM, "registry.example:5000/vllm/vllm-openai", None),
        (Engine.VLLM, "team/our-engine:2.1.0", None),
        (Engine.SGLANG, "lmsysorg/sglang:v0.5.3.post1-cu126", "0.5.3"),
        (Engine.TENSORRT_LLM, "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc5", "1.1.0"),
        (Engine.TRITON, "nvcr.io/nvidia/tritonserver:25.09-py3", None),
    ],
)
def test_only_images_of_the_engines_makers_say_a_version(
    engine: Engine, image: str, version: str | None
) -> None:
    """A tag of somebody's own image may count anything."""
    found = version_of_image(engine, image)
    assert (str(found) if found else None) == version


def test_a_rate_is_of_the_last_minutes_and_survives_restarts_of_engines() -> None:
    """Counters that fall began anew, pods that went count no more, and what is old is forgotten."""
    history, both = HitHistory(), frozenset({"a", "b"})
    history.take({"a": PrefixCounts(0, 4_000), "b": PrefixCounts(1_000, 6_000)}, both, 0.0)
    assert history.told(Engine.VLLM, "", None).rate == 0.1
    news = history.take({"a": PrefixCounts(6_000, 14_000), "b": PrefixCounts(500, 1_000)}, both, 60.0)
    assert news == PrefixCounts(6_500, 11_000)
    assert history.told(Engine.VLLM, "", None).rate == pytest.approx(7_500 / 21_000)
    history.take({}, frozenset({"a"}), WINDOW_SECONDS + 30.0)
    told = history.told(Engine.VLLM, "", None)
    assert told.pods == 1
    assert told.rate == pytest.approx(6_500 / 11_000)
    history.take({}, frozenset({"a"}), 2 * WINDOW_SECONDS)
    assert history.told(Engine.VLLM, "", None).rate is None  # nothing was asked lately


def test_engines_that_count_nothing_are_taken_at_their_word() -> None:
    """Several tell a mean; few look-ups tell nothing."""
    history, both = HitHistory(), frozenset({"a", "b"})
    history.take({"a": PrefixCounts(gauge=0.2), "b": PrefixCounts(gauge=0.4)}, both, 0.0)
    assert history.told(Engine.SGLANG, "", None).rate == pytest.approx(0.3)
    few = HitHistory()
    few.take({"a": PrefixCounts(900, 999)}, both, 0.0)
    assert few.told(Engine.VLLM, "", None).rate is None


def test_no_hit_in_much_traffic_is_told_of_now_and_of_ever() -> None:
    """Of an engine that never had one, and of one that had some before prompts changed."""
    never, lately = HitHistory(), HitHistory()
    only = frozenset({"a"})
    never.take({"a": PrefixCounts(0, 30_000)}, only, 0.0)
    never.take({"a": PrefixCounts(0, 30_001)}, only, 2 * WINDOW_SECONDS)
    assert never.told(Engine.VLLM, "", None).has_no_hits
    lately.take({"a": PrefixCounts(9_000, 30_000)}, only, 0.0)
    lately.take({"a": PrefixCounts(9_000, 60_000)}, only, 2 * WINDOW_SECONDS)
    assert lately.told(Engine.VLLM, "", None).has_no_hits
    lately.take({"a": PrefixCounts(9_001, 60_100)}, only, 2 * WINDOW_SECONDS + 60)
    assert not lately.told(Engine.VLLM, "", None).has_no_hits


def wish(**layer: Any) -> PrefixWish:
    """Want something of an engine."""
    document = prefix_cache(**layer)
    document["metadata"] |= {"namespace": "ml", "uid": "u"}
    found = prefix_wish(load(document).spec)
    assert found is not None
    return found


def pod(port: int, name: str = "vllm-0", **status: Any) -> Document:
    """Return a running pod whose engine serves at a port of this machine."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": {}},
        "spec": {"containers": [{"name": "engine", "args": [*WORDS, f"--port={port}"]}]},
        "status": {"phase": "Running", "podIP": "127.0.0.1", **status},
    }


class Scrapes:
    """Scrapes with a clock of their own."""

    def __init__(self, timeout_seconds: float = PATIENCE_SECONDS) -> None:
        self.now = 0.0
        self.scrapes = EngineScrapes(lambda: self.now, MINUTE, timeout_seconds)

    async def look(self, *pods: Document, **layer: Any) -> EngineHits | None:
        """Ask for an object called demo."""
        return await self.scrapes.look("ml", "demo", wish(**layer), PrefixSeen(pods=pods))


@asynccontextmanager
async def serving(handler: Any) -> AsyncIterator[int]:
    """Serve `/metrics` on a free port."""
    app = web.Application()
    app.router.add_get("/metrics", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_pods_are_asked_once_a_minute_and_what_they_count_is_told() -> None:
    """Two engines with real counts; in between nobody asks, and the last answer stands."""
    scrapes = Scrapes()
    async with StandIn(prefix_cache=PrefixCache()) as one, StandIn(prefix_cache=PrefixCache()) as two:
        ports = [urlsplit(engine.url).port or 0 for engine in (one, two)]
        pods = [pod(port, f"vllm-{port}") for port in ports]
        first = await scrapes.look(*pods)
        assert first == EngineHits(pods=2, news=PrefixCounts())
        await ask(one, 40)
        assert await scrapes.look(*pods) == EngineHits(pods=2)  # the minute is not over
        scrapes.now += MINUTE
        told = await scrapes.look(*pods)
        assert told is not None
        assert told.rate is not None
        assert told.rate > 0.8
        assert told.news is not None
        assert told.news.asked > 1_000
    scrapes.now += MINUTE
    gone = await scrapes.look(*pods)  # the engines are off, and what they told stands
    assert gone == EngineHits(pods=2, rate=told.rate, news=PrefixCounts())
    assert await scrapes.look(*pods, metrics={"enabled": False}) is None


async def ask(engine: StandIn, times: int) -> None:
    """Send prompts that begin alike."""
    system = " ".join(f"rule{number}" for number in range(100))
    async with aiohttp.ClientSession(engine.url) as client:
        for number in range(times):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": f"q{number}"}]
            body = {"model": "m", "messages": messages}
            async with client.post("/v1/chat/completions", json=body) as answer:
                assert answer.status == 200


async def test_why_nothing_is_told() -> None:
    """No connection, no answer in time, another answer, one too long: each is said, and none is followed."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        match kind:
            case "redirect":
                raise web.HTTPFound("/elsewhere")
            case "long":
                return web.Response(body=b"x" * (MOST_BYTES + 1))
            case "silent":
                await asyncio.Event().wait()
        return web.Response(text="up 1\n")

    problems = {}
    async with serving(answer) as port:
        for kind in ("redirect", "long", "silent", "other"):
            hits = await Scrapes(0.2 if kind == "silent" else PATIENCE_SECONDS).look(pod(port))
            assert hits is not None
            problems[kind] = hits.problem.removeprefix(f"port {port}, /metrics ")
    kind = "off"
    hits = await Scrapes().look(pod(port))
    assert hits is not None
    assert hits.problem.endswith("takes no connection")
    assert problems == {
        "redirect": "answers with status 302",
        "long": "answers with more than 2048 KiB",
        "silent": "gives no answer in time",
        "other": "says nothing of a prefix cache",
    }
    assert set(asked) == {"/metrics"}


async def test_pods_that_do_not_run_are_left_alone_and_few_are_asked() -> None:
    """Of twelve pods eight are asked; those without an address, or not running, never."""
    asked = 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.Response(text="vllm:prefix_cache_queries_total 5\n")

    async with serving(answer) as port:
        waiting = [pod(port, "a-0", phase="Pending"), pod(port, "a-1", podIP="")]
        hits = await Scrapes().look(*waiting, *(pod(port, f"b-{number:02}") for number in range(12)))
    assert hits is not None
    assert (hits.pods, asked) == (8, 8)


class Told:
    """A cache whose engine's pods run as wanted."""

    def __init__(self, image: str = "engine:1", **layer: Any) -> None:
        self.world = World(prefix_cache(**layer))
        self.pod = pod(8000)
        self.pod["spec"]["containers"][0]["image"] = image
        self.world.settle()

    def after(self, hits: EngineHits | None, minutes: float = 0.0) -> str:
        """Run a pass that saw this; returns the condition."""
        self.world.now += timedelta(minutes=minutes)
        self.world.step(prefix=PrefixSeen(pods=(self.pod,), hits=hits))
        condition = self.world.condition(ConditionType.PREFIX_CACHING_READY)
        return f"{condition['status']} {condition['reason']}: {condition['message']}"

    def rate(self) -> float | None:
        """Return the rate in status."""
        found: float | None = (self.world.document["status"].get("prefix") or {}).get("hitRate")
        return found


def test_what_the_engines_count_goes_before_what_their_flags_say() -> None:
    """Off, no hits, and metrics that cannot be read; none of it makes the object unready."""
    told = Told()
    assert told.after(EngineHits(1, rate=0.5)).startswith("True Ready: 1 of 1 pods of Deployment vllm run")
    assert told.after(EngineHits(1, has_no_hits=True)).startswith("False NoHitsWithTraffic: ")
    assert told.after(EngineHits(1, is_off=True)).startswith("False SwitchedOff: ")
    unread = told.after(EngineHits(0, problem="port 8000, /metrics takes no connection"))
    assert unread.startswith("True Ready: ")
    assert unread.endswith("is not known: port 8000, /metrics takes no connection.")


def test_an_image_of_another_version_is_told() -> None:
    """The spec says 0.32.0; a patch of it is the same, another minor is not."""
    told = Told("vllm/vllm-openai:v0.11.2").after(None)
    assert told.startswith("True EngineVersionUnknown: ")
    assert "vllm/vllm-openai:v0.11.2" in told
    assert "0.32.0" in told
    assert Told("vllm/vllm-openai:v0.32.1").after(None).startswith("True Ready: ")


def test_a_rate_is_rounded_and_written_rarely() -> None:
    """Steps of a twentieth, one write in a quarter of an hour; the last stands where none is known."""
    told = Told()
    told.after(None)
    assert told.rate() is None
    told.after(EngineHits(1, rate=0.52))
    assert told.rate() == 0.5
    written = dict(told.world.document["status"])
    told.after(EngineHits(1, rate=0.93), minutes=5)
    assert told.world.document["status"] == written
    told.after(EngineHits(1, rate=0.93), minutes=10)
    assert told.rate() == 0.95
    told.after(EngineHits(1), minutes=60)
    assert told.rate() == 0.95
    told.world.change(layers={"exact": {}})
    told.world.step()
    assert told.rate() is None


def test_the_operators_metrics_follow_the_engine_and_forget_it() -> None:
    """Look-ups add up, the share is the last one, and a cache that goes leaves no series."""
    metrics, key = OperatorMetrics(), CacheKey("ml", "demo")
    metrics.saw_engine(key, EngineHits(2, rate=0.25, news=PrefixCounts(30, 100)))
    metrics.saw_engine(key, EngineHits(2, rate=0.5, news=PrefixCounts(20, 20)))
    metrics.saw_engine(key, EngineHits(2, rate=0.5, news=PrefixCounts(5, 0)))
    metrics.saw_engine(key, EngineHits(2, rate=0.5))
    text = metrics.text().decode()
    labels = 'cache="demo",cache_namespace="ml"'
    assert f'cachewright_engine_prefix_lookups_total{{{labels},outcome="hit"}} 55.0' in text
    assert f'cachewright_engine_prefix_lookups_total{{{labels},outcome="miss"}} 70.0' in text
    assert f"cachewright_engine_prefix_hit_ratio{{{labels}}} 0.5" in text
    assert f"cachewright_engine_pods_read{{{labels}}} 2.0" in text
    metrics.saw_engine(key, None)
    assert "demo" not in metrics.text().decode()
